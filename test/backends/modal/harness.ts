import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend } from '../../../backends/backend'
import { createModalBackend } from '../../../backends/modal'
import type { ModalConfig } from '../../../backends/modal/config'
import type { Health, JobRequest } from '../../../backends/modal/documents'
import type { ModalDeps } from '../../../backends/modal/host'
import type { Order } from '../../../core/job/plan'
import { layout } from '../../../storage/layout'
import type { Cloud } from '#small-cloud'
import { PaperMachine } from '../../../packages/small-cloud/test/support'
import type { MachineSpec } from '../../../packages/small-cloud/src/machines/machine'
import { FaultProxy, type Fault } from '../../support/fault-proxy'
import { parametersOfVariable, type BootstrapParameters } from '../../support/user-data'
import { until } from '../../support/until'
import { patiently, type Harness, type Traits, type WantedOrder } from '../harness'
import { TestHandOvers } from '../lambda/hand-overs'
import { WireStore } from '../lambda/wire-store'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import { openStandIn, type Gateway } from './gateways'
import { HOUR_MS } from '../../../core/time/time'
import { operatorOf } from '../../support/cloud-keys'

export const MODAL_TRAITS: Traits = {
  looksForTags: false,
  startsLater: false,
  keepsLogs: true,
  tellsEnds: true,
  interruptsMachines: false,
  takesHandOvers: true,
  queues: true,
  billsUntilCalled: false,
  confirmsEnds: true,
  duplicatesAre: 'processes',
}

/** As the small cloud's gateway answers, for tests that change a part of it. */
export const HEALTH: Health = {
  ok: true,
  api: 1,
  features: ['logs', 'requirements', 'volumes'],
  sdk: '1.6.4',
  environment: 'main',
  allowed: { registries: ['docker.io'], secrets: [], volumes: 'crucible-' },
}

export const CONFIG: ModalConfig = {
  url: 'http://127.0.0.1:9',
  token: { key: 'wk-0123456789', secret: 'ws-secret' },
  gpus: ['T4'],
  runMsMax: 24 * HOUR_MS,
  hasCache: true,
  imageSecrets: {},
  cacheUnusedMs: 7 * 86_400_000,
}

/** In the place of the runner: notes that it was started, and stays until it is ended. */
const STAND_IN = `import os, sys, time
root = sys.argv[sys.argv.index("--root") + 1]
with open(os.path.join(root, "starts"), "a") as file:
    file.write("x")
print("the stand-in runs", flush=True)
time.sleep(600)
`
const STAND_IN_SHA256 = createHash('sha256').update(STAND_IN).digest('hex')
const TYPE = 'T4x1'
/** Needs no time to be scheduled. */
const PAPER_TYPE = 'cpu'

type Sent = JobRequest & { key: string }

/** The deployment of the backend, and by default of its orders. */
const DEPLOYMENT = 'test'

/** Whether a key is that of an attempt, of any deployment. */
function isKeyOf(attemptId: string, key: string | undefined): boolean {
  return key === attemptId || key?.startsWith(`${attemptId}-`) === true
}

type SubmitFault =
  { fault: 'lost-answer'; instead?: 'silence' } | { fault: 'error'; code: string; status: number }

/** The backend over HTTP, to a gateway whose machines really run what they are sent. */
export class ModalHarness implements Harness {
  readonly store = new WireStore(
    (attemptId) => this.#claimantOf(attemptId),
    (machine) => ({ machine }),
  )
  readonly handOvers = new TestHandOvers(this.store, {
    keptOf: (attemptId) =>
      this.sendsOf(attemptId).map((sent) => ({
        userData: '#cloud-config\n{"write_files":[]}',
        rest: unpacked(sent),
      })),
    // The gateway makes one machine of each key: what comes again is the same send.
    repeatSend: async (order) => void (await this.backend.launch(order, patiently())),
    takenOf: async (attemptId) => {
      await until(() => this.#isSettled(attemptId))
      return this.#sandboxesOf(attemptId).filter(({ id }) => this.#read(id, attemptId, 'starts') !== '')
        .length
    },
  })
  readonly config: ModalConfig
  readonly deps: ModalDeps = { clock: Date.now, deployment: DEPLOYMENT, handOver: this.handOvers.issue }
  backend!: Backend

  private constructor(
    readonly gateway: Gateway,
    readonly directory: string,
    private readonly proxy: FaultProxy,
    private readonly type: string,
  ) {
    this.config = {
      ...CONFIG,
      url: `${proxy.url}${new URL(gateway.endpoint).pathname}`,
      token: gateway.token,
    }
  }

  /** @param isOnPaper its machines have no processes */
  static async make({ open = openStandIn, isOnPaper = false } = {}): Promise<ModalHarness> {
    const directory = mkdtempSync(join(tmpdir(), 'crucible-modal-'))
    const createMachine = isOnPaper ? (spec: MachineSpec) => new PaperMachine(spec) : undefined
    const gateway = await open({}, { directory, createMachine })
    const proxy = await FaultProxy.open(gateway.endpoint)
    const made = new ModalHarness(gateway, directory, proxy, isOnPaper ? PAPER_TYPE : TYPE)
    await made.store.listen()
    await made.store.put(layout.runner(STAND_IN_SHA256), STAND_IN)
    made.backend = await made.reopen()
    return made
  }

  get cloud(): Cloud {
    return this.gateway.cloud
  }

  reopen(changes: Partial<ModalConfig> = {}): Promise<Backend> {
    return createModalBackend({ ...this.config, ...changes }, this.deps)
  }

  async order(wanted: WantedOrder & Partial<OrderOptions> = {}): Promise<Order> {
    const { isStuck = false, ...rest } = wanted
    const offers = await this.backend.offers({}, patiently())
    const order = makeOrder({
      store: this.store,
      offers: offers.filter(({ type }) => type === this.type).slice(0, 1),
      runnerSha256: STAND_IN_SHA256,
      ...rest,
    })
    await issueOrder(this.store, order, Date.now())
    if (isStuck) this.cloud.addFault({ fault: 'no-boot', where: { tags: { key: order.token } } })
    return order
  }

  /** From now on every request whose method and path match fails in this way. */
  fail(fault: Fault, match = '', times = Infinity): void {
    this.proxy.rules.push({ match, fault, times })
  }

  /** Another version of the gateway, or another deployment, answers to `health`. */
  answerHealth(changes: Partial<Health>): void {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ ...HEALTH, ...changes })
    this.proxy.rules.unshift({
      match: '/v1/health$',
      fault: { kind: 'answer', status: 200, body, headers },
      times: Infinity,
    })
  }

  goDown(): Promise<void> {
    return this.proxy.goDown()
  }

  async recover(): Promise<void> {
    this.proxy.rules.length = 0
    await this.proxy.comeUp()
  }

  async startsOf(attemptId: string): Promise<number> {
    await until(() => this.#isSettled(attemptId))
    const sandboxes = this.#sandboxesOf(attemptId)
    const starts = sandboxes.reduce((sum, { id }) => sum + this.#read(id, attemptId, 'starts').length, 0)
    return Math.max(sandboxes.length, starts)
  }

  async runningOf(attemptId: string): Promise<number> {
    return this.#sandboxesOf(attemptId).filter(({ state }) => state === 'running').length
  }

  async fill(): Promise<void> {
    this.cloud.addFault({ fault: 'no-capacity', where: { service: 'modal' } })
  }

  holdQueue(): () => void {
    return this.cloud.addFault({ fault: 'no-capacity', where: { service: 'modal' } })
  }

  async breakDown(): Promise<void> {
    const where = { service: 'modal' } as const
    this.cloud.addFault({ fault: 'error', code: 'gateway', message: 'modal-http: gone', status: 404, where })
  }

  stall(): void {
    this.#onSubmit({ fault: 'lost-answer', instead: 'silence' })
  }

  failNextLaunch(): void {
    this.#onSubmit({ fault: 'error', code: 'rate-limited', status: 429 })
  }

  launchesSent(): number {
    return this.cloud.journal.calls({ service: 'modal', action: 'submit' }).length
  }

  /** The backend asks the gateway what it knows. */
  loseNextAnswer(): boolean {
    this.#onSubmit({ fault: 'lost-answer' })
    return false
  }

  /** A second Sandbox that the gateway did not make. */
  async duplicate({ attemptId }: Order): Promise<void> {
    const { tags } = this.#sandboxesOf(attemptId)[0]!
    const body = {
      app: 'crucible-jobs',
      name: '',
      tags,
      command: ['sleep', '600'],
      env: {},
      dockerfile: '',
      timeoutMs: 600_000,
      gpu: null,
      milliCpu: 1000,
      memoryMiB: 512,
      volumes: {},
    }
    const headers = operatorOf(this.gateway.cloud)
    const url = `${this.gateway.endpoint}/control/sandboxes`
    const { status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    if (status !== 200) throw new Error(`the control plane answered ${status}`)
  }

  async dispose(): Promise<void> {
    await this.store.close()
    await this.proxy.close()
    await this.gateway.close()
    rmSync(this.directory, { recursive: true, force: true })
  }

  #sandboxesOf(attemptId: string): ReturnType<Cloud['instances']> {
    return this.cloud.instances().filter(({ tags }) => isKeyOf(attemptId, tags['key']))
  }

  /** Each of its Sandboxes is over, or has begun to work; and one has come of what was accepted. */
  #isSettled(attemptId: string): boolean {
    const sandboxes = this.#sandboxesOf(attemptId)
    const isSettled = ({ id, state }: { id: string; state: string }): boolean =>
      state === 'ended' || this.#read(id, attemptId, 'starts') !== ''
    return sandboxes.length > 0 && sandboxes.every(isSettled)
  }

  #claimantOf(attemptId: string): string | undefined {
    const begun = this.#sandboxesOf(attemptId).find(({ id }) => this.#read(id, attemptId, 'starts') !== '')
    return begun && this.#read(begun.id, attemptId, 'machine-id').trim()
  }

  /** What Modal was asked for, by its own journal. */
  sendsOf(attemptId: string): Sent[] {
    return this.cloud.journal
      .calls({ service: 'modal', action: 'submit' })
      .map(({ parameters }) => parameters as Sent)
      .filter(({ key }) => isKeyOf(attemptId, key))
  }

  #onSubmit(fault: SubmitFault): void {
    this.cloud.addFault({ ...fault, times: 1, where: { service: 'modal', action: 'submit' } })
  }

  #read(sandboxId: string, attemptId: string, name: string): string {
    try {
      return readFileSync(join(this.directory, sandboxId, 'var/lib/crucible', attemptId, name), 'utf8')
    } catch {
      return ''
    }
  }
}

/** The parameters of the bootstrap in a container's variables. */
export function parametersOfContainer({ env }: Pick<JobRequest, 'env'>): BootstrapParameters {
  return parametersOfVariable(env['CRUCIBLE_BOOTSTRAP']!)
}

function unpacked({ command, env }: Sent): string {
  const values = Object.values(env).map((value) => Buffer.from(value, 'base64').toString())
  return [...command, JSON.stringify(env), ...values].join('\n')
}
