import type {
  createApi,
  LambdaApi,
  LambdaInstance,
  LaunchRequest,
  SshKey,
} from '../../../backends/lambda/api'
import { HttpError } from '../../../backends/http'

/** A call of the API that fails instead, once or from now on; `name` of the launch that it is. */
type Fault = (name?: string) => Promise<never> | undefined

export const KEY: SshKey = {
  id: 'key-1',
  name: 'crucible',
  public_key: 'ssh-ed25519 AAAA made-by-crucible-setup',
}

export function refusal(status: number, code: string, message = code): HttpError {
  return new HttpError(`Lambda answered ${status}`, {
    ...{ reach: 'answered', status, body: { error: { code, message } } },
  })
}

export const lostAnswer = (): HttpError => new HttpError('Lambda did not answer', { reach: 'unanswered' })

const TYPE = {
  name: 'gpu_1x_a10',
  gpu_description: 'A10 (24 GB PCIe)',
  price_cents_per_hour: 129,
  specs: { vcpus: 30, memory_gib: 200, storage_gib: 1400, gpus: 1 },
}

/** Behaves as Lambda's API does towards one account, as far as the backend can see. */
export class FakeLambda {
  instances: LambdaInstance[] = []
  /** Ended ones are known by their id only. */
  ended: LambdaInstance[] = []
  sshKeys: SshKey[] = [KEY]
  fileSystems = [{ id: 'fs-1', name: 'cache', region: { name: 'us-east-1' }, is_in_use: false }]
  regions = ['us-east-1', 'us-west-1']
  stock = 10
  launches: LaunchRequest[] = []
  calls: string[] = []
  /** Instances that the list does not show yet. */
  hidden = new Set<string>()
  /** Before the effect, and after it. */
  readonly before = new Map<string, Fault>()
  readonly after = new Map<string, Fault>()
  onLaunch: (request: LaunchRequest) => void = () => undefined
  private count = 0

  /** The `createApi` of an account; several share it. */
  readonly open: typeof createApi = () => this.api()

  private api(): LambdaApi {
    const call = async <T>(name: string, signal: AbortSignal, act: () => T, of?: string): Promise<T> => {
      this.calls.push(name)
      if (signal.aborted) throw lostAnswer()
      await (this.before.get(name) ?? this.before.get('*'))?.(of)
      const answer = act()
      await this.after.get(name)?.(of)
      return answer
    }
    return {
      types: (signal) =>
        call('types', signal, () => ({
          [TYPE.name]: {
            instance_type: TYPE,
            regions_with_capacity_available: this.isFull() ? [] : this.regions.map((name) => ({ name })),
          },
        })),
      regions: (signal) => call('regions', signal, () => [...this.regions]),
      instances: async (signal, onSend) =>
        call('instances', signal, () => {
          onSend?.()
          return this.instances.filter(({ id }) => !this.hidden.has(id))
        }),
      instance: (id, signal) =>
        call('instance', signal, () => [...this.instances, ...this.ended].find((one) => one.id === id)),
      launch: (request, signal) =>
        call(
          'launch',
          signal,
          () => {
            this.launches.push(request)
            return [this.launch(request).id]
          },
          request.name,
        ).catch(async (error: unknown) => {
          if (error !== STALLED) throw error
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          throw lostAnswer()
        }),
      terminate: (id, signal) =>
        call('terminate', signal, () => {
          const instance = this.instances.find((one) => one.id === id)
          if (instance !== undefined) this.end(instance, 'terminated')
        }),
      sshKeys: (signal) => call('ssh-keys', signal, () => [...this.sshKeys]),
      addSshKey: (key, signal) =>
        call('add-ssh-key', signal, () => {
          const made = { id: `key-${this.sshKeys.length + 1}`, ...key }
          this.sshKeys.push(made)
          return made
        }),
      deleteSshKey: (id, signal) =>
        call(
          'delete-ssh-key',
          signal,
          () => void (this.sshKeys = this.sshKeys.filter((key) => key.id !== id)),
        ),
      fileSystems: (signal) => call('file-systems', signal, () => this.fileSystems),
      close: async () => undefined,
    }
  }

  launch(request: LaunchRequest): LambdaInstance {
    if (this.isFull())
      throw refusal(400, 'instance-operations/launch/insufficient-capacity', 'Not enough capacity.')
    const instance: LambdaInstance = {
      id: `instance-${++this.count}`,
      status: 'active',
      region: { name: request.region_name },
      instance_type: TYPE,
      tags: request.tags,
    }
    this.instances.push(instance)
    this.onLaunch(request)
    return instance
  }

  end(instance: LambdaInstance, status: 'terminated' | 'preempted'): void {
    this.instances = this.instances.filter(({ id }) => id !== instance.id)
    this.ended.push({ ...instance, status })
  }

  /** The next call of a name fails before its effect. */
  failNext(name: string, error: HttpError): void {
    this.before.set(name, () => {
      this.before.delete(name)
      return Promise.reject(error)
    })
  }

  /** The next call of a name has its effect, and its answer is lost. */
  loseNext(name: string): void {
    this.after.set(name, () => {
      this.after.delete(name)
      return Promise.reject(lostAnswer())
    })
  }

  /** From now on launches have their effect and are never answered. */
  stall(): void {
    this.after.set('launch', () => Promise.reject(STALLED))
  }

  private isFull(): boolean {
    return this.instances.length >= this.stock
  }
}

const STALLED = new HttpError('stalled', { reach: 'unanswered' })
