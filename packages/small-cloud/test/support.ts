import { EC2Client } from '@aws-sdk/client-ec2'
import { IAMClient } from '@aws-sdk/client-iam'
import { PricingClient } from '@aws-sdk/client-pricing'
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas'
import { SSMClient } from '@aws-sdk/client-ssm'
import { STSClient } from '@aws-sdk/client-sts'
import { startCloud, DrivenClock, type Cloud, type CloudOptions, type WorldText } from '../src/index'
import type { AgentAnswer, AgentCommand, Machine, MachineSpec, PowerOff } from '../src/machines/machine'

/** A machine without processes: what it is asked is kept, and what it answers is said by the test. */
export class PaperMachine implements Machine {
  readonly id: string
  readonly metadataEndpoint = 'http://127.0.0.1:9'
  readonly commands: AgentCommand[] = []
  readonly cancelled: string[] = []
  isDead = false
  answer: (command: AgentCommand) => Promise<AgentAnswer> = async () => ({
    exitCode: 0,
    stdout: 'done\n',
    stderr: '',
    timedOut: false,
  })
  private listener: (how: PowerOff) => void = () => undefined

  constructor(readonly spec: MachineSpec) {
    this.id = spec.id
  }

  async boot(): Promise<void> {}

  async run(command: AgentCommand): Promise<AgentAnswer> {
    this.commands.push(command)
    return this.answer(command)
  }

  cancel(commandId: string): void {
    this.cancelled.push(commandId)
  }

  async shutDown(): Promise<void> {}

  async kill(): Promise<void> {
    this.isDead = true
  }

  onPowerOff(listener: (how: PowerOff) => void): void {
    this.listener = listener
  }

  owns(): boolean {
    return false
  }

  async console(): Promise<string> {
    return `console of ${this.id}\n`
  }

  powerOff(how: PowerOff): void {
    this.listener(how)
  }

  metadata(path: string): string | undefined {
    const value = this.spec.metadata[path]
    return typeof value === 'function' ? value() : value
  }
}

export interface TestCloud {
  cloud: Cloud
  clock: DrivenClock
  machines: Map<string, PaperMachine>
  clients: Clients
}

export interface Clients {
  ec2: EC2Client
  ssm: SSMClient
  sts: STSClient
  iam: IAMClient
  pricing: PricingClient
  quotas: ServiceQuotasClient
}

export interface ClientWords {
  accessKeyId?: string
  secretAccessKey?: string
  sessionToken?: string
  region?: string
  maxAttempts?: number
}

const running: Cloud[] = []

/** The clients of a caller; without keys, of the cloud's own user. */
export function clientsOf(endpoint: string, words: ClientWords = {}): Clients {
  const own = running.find((cloud) => cloud.endpoint === endpoint)?.credentials
  const {
    accessKeyId = own?.accessKeyId ?? 'nobody',
    secretAccessKey = own?.secretAccessKey ?? 'nobody',
    sessionToken,
    region = 'us-east-1',
    maxAttempts = 1,
  } = words
  const credentials = {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
  }
  const config = { endpoint, region, credentials, maxAttempts }
  return {
    ec2: new EC2Client(config),
    ssm: new SSMClient(config),
    sts: new STSClient(config),
    iam: new IAMClient(config),
    pricing: new PricingClient(config),
    quotas: new ServiceQuotasClient(config),
  }
}

/** A cloud on a driven clock with machines of paper. */
export async function testCloud(
  world: WorldText = {},
  options: Omit<CloudOptions, 'world'> = {},
): Promise<TestCloud> {
  const clock = new DrivenClock(Date.now())
  const machines = new Map<string, PaperMachine>()
  const cloud = await startCloud({
    world,
    clock,
    createMachine: (spec) => {
      const machine = new PaperMachine(spec)
      machines.set(spec.id, machine)
      return machine
    },
    ...options,
  })
  running.push(cloud)
  return { cloud, clock, machines, clients: clientsOf(cloud.endpoint) }
}

/** For `afterEach`. */
export async function stopClouds(): Promise<void> {
  await Promise.all(running.splice(0).map((cloud) => cloud.stop()))
}

/** The headers of the cloud's operator, for requests below `/_sim/`. */
export function operatorOf({ controlKey }: Cloud): Record<string, string> {
  return { authorization: `Bearer ${controlKey}`, 'content-type': 'application/json' }
}

/** The code, status and message of a call that is refused; fails when it is not. */
export async function refusal(
  call: Promise<unknown>,
): Promise<{ code: string; status: number | undefined; message: string }> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown as Error & { $metadata?: { httpStatusCode?: number } },
  )
  if (error === undefined) throw new Error('the call was answered')
  return { code: error.name, status: error.$metadata?.httpStatusCode, message: error.message }
}

/** What every launch of these tests needs. */
export const IMAGE_PARAMETER =
  '/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id'
export const IMAGE = `resolve:ssm:${IMAGE_PARAMETER}`
/** Longer than it takes from a launch to a registered agent. */
export const UP_MS = 5_000
