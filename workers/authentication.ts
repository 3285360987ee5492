import { Client, type ConnectionLike } from '@temporalio/client'
import type { WorkerOptions } from '@temporalio/worker'
import { failureInterceptor } from '../activities/failures'
import { onlyFor } from '../activities/only-for'
import { sentId } from '../activities/sent-id'
import { stampCheck } from '../activities/stamp-check'
import { stampingInterceptors } from '../core/stamping'
import { PayloadSeal } from '../storage/payload-seal'
import { sealedBundle } from './bundle'

type ActivityInterceptor = NonNullable<NonNullable<WorkerOptions['interceptors']>['activity']>[number]

type Bundle = NonNullable<WorkerOptions['workflowBundle']>

/**
 * Authenticates the callers of a worker: holders of the deployment's key. Without a key everything is accepted, for tests of other
 * features.
 */
export class Authentication {
  constructor(
    private readonly key?: Buffer,
    private readonly now: () => number = Date.now,
  ) {}

  /**
   * Options of all workers of a deployment; with its id they refuse the tasks of other deployments.
   * @param measure an interceptor that sees what Temporal sees of each activity
   */
  workerOptions(
    deployment?: string,
    measure?: ActivityInterceptor,
  ): Pick<WorkerOptions, 'interceptors' | 'dataConverter'> {
    const isRequired = this.key !== undefined
    return {
      interceptors: {
        activity: [
          ...(measure === undefined ? [] : [measure]),
          ...(deployment === undefined
            ? []
            : [(context: Parameters<typeof onlyFor>[0]) => ({ inbound: onlyFor(context, deployment) })]),
          (context) => ({ inbound: stampCheck(context, isRequired) }),
          () => ({ inbound: failureInterceptor }),
        ],
      },
      ...this.converter('mark'),
    }
  }

  /** Adds the check of their input to the workflows. */
  async guard(bundle: Bundle, deployment?: string): Promise<Bundle> {
    return this.key === undefined ? bundle : sealedBundle(bundle, deployment)
  }

  /** A client whose requests the workers accept, and which accepts only their answers. */
  client(connection: ConnectionLike, namespace: string, deployment?: string): Client {
    return new Client({
      connection,
      namespace,
      interceptors: stampingInterceptors(this.now, sentId, async () => deployment),
      ...this.converter('throw'),
    })
  }

  private converter(onRefused: 'mark' | 'throw'): Pick<WorkerOptions, 'dataConverter'> {
    const { key } = this
    if (key === undefined) return {}
    return { dataConverter: { payloadCodecs: [new PayloadSeal({ key: async () => key, onRefused })] } }
  }
}
