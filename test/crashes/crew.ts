import { CompleteAsyncError, Context } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import { Worker, type ActivityInterceptorsFactory, type NativeConnection } from '@temporalio/worker'
import { backendQueue, launchQueue, ORCHESTRATOR_QUEUE, watchQueue } from '../../core/queues'
import type { CloudProvider } from '../clouds/provider'
import { freshNamespace } from '../support/namespace'
import type { TestConnection } from '../support/temporal'
import { TEST_WORKER, testWorkflowBundle } from '../support/workflow-bundle'
import { Workforce, type WorkerName } from '../workflows/harness'
import { callingProcess, gate } from './process'
import type { Role, Site } from './site'

const NAMES: Readonly<Record<WorkerName, readonly string[]>> = {
  orchestrator: [
    'resolveJob',
    'plan',
    'planWhenAvailable',
    'decide',
    'drain',
    'withdraw',
    'extend',
    'finishJob',
    'stopAttempt',
    'admitBudget',
    'promiseBudget',
    'collectStoreGarbage',
  ],
  verbs: ['offers', 'launch', 'find', 'start', 'drainMachine', 'settle', 'collectGarbage'],
  watches: ['watch'],
  launches: ['launch'],
}
const QUEUES: Readonly<Record<WorkerName, (backend: string) => string>> = {
  orchestrator: () => ORCHESTRATOR_QUEUE,
  verbs: backendQueue,
  watches: watchQueue,
  // Used where an account limits its launches.
  launches: launchQueue,
}
/** It names no job: the crew itself answers. */
const OF_NO_SITE = { servesLaunches: async () => true }
/** So many of all sites at once. */
const AT_ONCE_MAX = 1_000

/** What tells whose an activity is. */
interface Addressed {
  order?: { jobId: string }
  jobId?: string
  deployment?: string
}

/**
 * The workers of many sites in one namespace: they take tasks and report what came of them, and each task is done by the process of the
 * site that it is of, which may be dead before it is done.
 */
export class Crew extends Workforce {
  private readonly sites = new Map<string, Site>()
  /** By the id of the activity that asks for offers, which says nothing of its job. */
  private readonly asking = new Map<string, Site>()

  private constructor(
    at: TestConnection,
    namespace: string,
    /** Of all its sites. */
    readonly provider: CloudProvider,
  ) {
    super(at, namespace)
  }

  /** At work in a namespace of its own. */
  static async begin(at: TestConnection, provider: CloudProvider): Promise<Crew> {
    const crew = new Crew(at, await freshNamespace(at.client.connection as never), provider)
    await crew.startAll()
    return crew
  }

  private startAll(): Promise<void> {
    return this.start('orchestrator', 'verbs', 'watches', 'launches')
  }

  admit(site: Site): void {
    this.sites.set(site.options.jobId, site).set(site.options.deployment, site)
  }

  dismiss({ options: { jobId, deployment } }: Site): void {
    this.sites.delete(jobId)
    this.sites.delete(deployment)
  }

  /** All processes die, those of every site, and with them what took their tasks; answers when none of it is left. */
  async die(): Promise<void> {
    for (const site of new Set(this.sites.values())) site.die()
    await this.close()
  }

  /** Others in their place, over a connection of their own. */
  async revive(nativeConnection: NativeConnection): Promise<void> {
    this.at = { ...this.at, nativeConnection }
    await this.startAll()
  }

  /** The client that processes of a site have. */
  clientFor(siteOf: () => Site): Client {
    const { client } = this
    const execute: Client['activity']['execute'] = (type: string, options: { id: string }) => {
      this.asking.set(options.id, siteOf())
      return gate('ask the workers', () => client.activity.execute(type, options as never)).finally(() =>
        this.asking.delete(options.id),
      ) as never
    }
    const { options, workflow, workflowService } = client
    const withAbortSignal = client.withAbortSignal.bind(client)
    return { options, workflow, workflowService, activity: { execute }, withAbortSignal } as unknown as Client
  }

  protected async make(name: WorkerName): Promise<Worker> {
    const role: Role = name === 'orchestrator' ? 'orchestrator' : 'backend'
    const activities = NAMES[name].map(
      (each) => [each, (input: unknown) => callingProcess().perform(each, input)] as const,
    )
    const { interceptors, ...sealed } = this.authentication.workerOptions()
    return Worker.create({
      ...sealed,
      connection: this.at.nativeConnection,
      namespace: this.namespace,
      taskQueue: QUEUES[name](this.provider.name),
      workflowBundle:
        name === 'orchestrator' ? await this.authentication.guard(await testWorkflowBundle()) : undefined,
      activities: { ...Object.fromEntries(activities), ...OF_NO_SITE },
      interceptors: { activity: [this.dying(role), ...(interceptors?.activity ?? [])] },
      maxConcurrentActivityTaskExecutions: AT_ONCE_MAX,
      maxConcurrentLocalActivityExecutions: AT_ONCE_MAX,
      ...TEST_WORKER,
    })
  }

  /** Does each task in the name of a process; the remains of lost sites have no owner. */
  private dying(role: Role): ActivityInterceptorsFactory {
    return (context) => ({
      inbound: {
        execute: async (input, next) => {
          if (context.info.activityType in OF_NO_SITE) return next(input)
          const site = this.find(input.args[0] as Addressed)
          if (site === undefined) throw new CompleteAsyncError()
          return site.perform(role, context, () => next(input))
        },
      },
    })
  }

  private find({ order, jobId, deployment }: Addressed): Site | undefined {
    const key = order?.jobId ?? jobId ?? deployment
    return key === undefined ? this.asking.get(Context.current().info.activityId) : this.sites.get(key)
  }
}
