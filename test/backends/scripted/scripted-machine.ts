import { defined } from '../../../core/defined'
import { UNNAMED_MACHINE, type Claim, type Drain } from '../../../core/documents'
import type { MachineHandle, OwnerTags } from '../../../core/handle'
import type { Observation } from '../../../core/observation'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import { SECOND_MS } from '../../../core/time/time'
import { StoreError, type ObjectStore } from '../../../storage/store'
import { parametersOfUserData, readHandOver, type BootstrapParameters } from '../../support/user-data'
import type { Behaviour } from './behaviour'
import type { Clock } from './clock'
import { ScriptedRunner } from './scripted-runner'
import type { HandOvers } from './world'

const RETRY_MS = SECOND_MS

export interface MachineOptions {
  clock: Clock
  store: ObjectStore
  id: string
  order: Order
  offer: Offer
  behaviour: Behaviour
  bootMs: number
  /** How long it waits in the provider's queue, unbilled; missing where nothing is queued. */
  queueMs?: number | undefined
  /** The provider ends it this long after it began. */
  runMsMax?: number | undefined
  /** How much longer it runs once its provider shows it as gone; missing where an end is confirmed. */
  endsAfterMs?: number | undefined
  /** How long it is shown as stopping, unbilled, when its owner ends it; then the provider never tells when it ended. */
  stopsForMs?: number | undefined
  /** Whether the provider tells when billing began. */
  tellsBilling?: boolean
  /** The name of the send that made it, which its tag shows. */
  send?: string | undefined
  /** What it runs at its boot: takes what its runner needs from the hand-over, with `ask`. Missing where it just knows that. */
  userData?: string | undefined
  ask?: HandOvers['ask'] | undefined
  /** Missing if it cannot learn it; then it claims with its send. */
  knowsItsId: boolean
  /** Whether booting starts the runner, or a call of `start` does. */
  startsRunner: boolean
  /** Whether the machine is off, and billed no more, once its runner has powered it off. */
  endsWithRunner: boolean
  /** The end of the use of its reservation, as the provider says now. */
  usableUntilMs?: () => number | undefined
  onGone: (machine: ScriptedMachine) => void
}

/** A machine of the scripted world: boots, runs a runner, and is ended by its own power-off, its owner or its provider. */
export class ScriptedMachine {
  readonly handle: MachineHandle
  readonly owner: OwnerTags
  state: 'queued' | 'pending' | 'running' | 'gone' = 'queued'
  cause: Observation['cause']
  /** When it was really billed from, and to. */
  billedFromMs: number | undefined
  endedAtMs: number | undefined
  /** When its owner ended it, if it stops slowly: then its bill ended. */
  stoppingSinceMs: number | undefined
  /** Its provider shows it as gone, although it may still run. */
  isShownGone = false
  noticeAtMs: number | undefined
  /** How often its runner was started. */
  starts = 0
  /** When its workload was started; missing if it never was. */
  workedFromMs: number | undefined
  /** What came of its hand-over; missing before, and where it needs none. */
  taken: 'taken' | 'nothing' | undefined
  #runner: ScriptedRunner | undefined
  readonly #o: MachineOptions
  #forget: () => void

  constructor(options: MachineOptions) {
    this.#o = options
    const { clock, id, order, offer, send, queueMs = 0 } = options
    const { deployment, jobId, attemptId } = order
    const { capacityType, type, place, priceMicroUsdPerHour, reservationId } = offer
    const { billedAtLeastMs, billedInStepsOfMs } = offer
    const launchedAtMs = clock.now()
    this.owner = { deployment, jobId, attemptId }
    this.handle = {
      backend: offer.backend,
      kind: 'machine',
      id,
      attemptId,
      launchedAtMs,
      send,
      realised: {
        capacityType,
        type,
        place,
        priceMicroUsdPerHour,
        reservationId,
        billedAtLeastMs,
        billedInStepsOfMs,
      },
    }
    this.#forget = () => undefined
    if (queueMs === 0) this.begin()
    else if (queueMs !== Infinity) this.#forget = clock.at(launchedAtMs + queueMs, () => this.begin())
  }

  /** It leaves the queue, if it was in one: from now on it is billed. */
  begin(): void {
    if (this.state !== 'queued') return
    const { clock, bootMs, behaviour, runMsMax } = this.#o
    this.#forget()
    this.state = 'pending'
    this.billedFromMs = clock.now()
    if (!behaviour.neverBoots) this.#forget = clock.at(this.billedFromMs + bootMs, () => this.#boot())
    if (runMsMax !== undefined) clock.at(this.billedFromMs + runMsMax, () => this.end('interrupted'))
  }

  get order(): Order {
    return this.#o.order
  }

  /** Its runner has lost its way to the store. */
  get isSilent(): boolean {
    return this.#runner?.isSilent ?? false
  }

  /** Where the runner is started by a call: harmless to repeat. False while the machine cannot take it. */
  start(): boolean {
    if (this.state !== 'running') return false
    const { clock, store, order, behaviour, endsWithRunner, knowsItsId, send } = this.#o
    if (this.starts > 0 || behaviour.neverStarts) return true
    this.starts++
    const { jobId, attempt } = order
    const onOver = (how: 'finished' | 'died'): void => {
      // A machine that ends during its notice counts as taken back.
      if (how === 'died' || endsWithRunner) this.end(this.noticeAtMs === undefined ? 'ended' : 'interrupted')
    }
    const onWork = (): void => {
      this.workedFromMs ??= clock.now()
    }
    const claim: Claim = knowsItsId
      ? { machine: this.handle.id }
      : { machine: UNNAMED_MACHINE + this.handle.id, send }
    const beganAtMs = this.billedFromMs!
    this.#runner = new ScriptedRunner({
      clock,
      store,
      jobId,
      attempt,
      behaviour,
      claim,
      beganAtMs,
      onWork,
      onOver,
    })
    return true
  }

  /** Somebody tells it to drain by another way than the store. */
  drain(order: Drain): void {
    this.#runner?.drain(order)
  }

  /** The provider takes the machine back: now, or after a notice. */
  interrupt(noticeMs: number | null): void {
    if (this.state === 'gone' || (noticeMs !== null && this.noticeAtMs !== undefined)) return
    if (noticeMs === null) return this.end('interrupted')
    this.noticeAtMs = this.#o.clock.now() + noticeMs
    this.#o.clock.at(this.noticeAtMs, () => this.end('interrupted'))
    this.#runner?.notice(this.noticeAtMs)
  }

  /** Its owner ends it: at once, or, where that is only a request, some time after its provider shows it as gone. */
  terminate(): void {
    const { clock, endsAfterMs, stopsForMs } = this.#o
    if (stopsForMs !== undefined && this.state !== 'queued') return this.#stop(stopsForMs)
    if (endsAfterMs === undefined || this.state === 'queued') return this.end('ended')
    if (this.isShownGone || this.state === 'gone') return
    this.isShownGone = true
    clock.at(clock.now() + endsAfterMs, () => this.end('ended'))
  }

  #stop(stopsForMs: number): void {
    const { clock } = this.#o
    if (this.state === 'gone' || this.stoppingSinceMs !== undefined) return
    this.stoppingSinceMs = clock.now()
    this.#forget()
    this.#runner?.cut()
    this.#runner = undefined
    clock.at(this.stoppingSinceMs + stopsForMs, () => this.end('ended'))
  }

  /** When it was billed no more. */
  get billedToMs(): number | undefined {
    return this.stoppingSinceMs ?? this.endedAtMs
  }

  end(cause: Observation['cause']): void {
    if (this.state === 'gone') return
    this.state = 'gone'
    this.cause = cause
    this.endedAtMs = this.#o.clock.now()
    this.#forget()
    this.#runner?.cut()
    this.#runner = undefined
    this.#o.onGone(this)
  }

  observation(): Observation {
    const { cause, endedAtMs, noticeAtMs, billedFromMs } = this
    const { endsAfterMs, queueMs, stopsForMs, tellsBilling = true } = this.#o
    const billedFromAtMs = queueMs !== undefined && tellsBilling ? billedFromMs : undefined
    if (this.isShownGone || (endsAfterMs !== undefined && this.state === 'gone'))
      return {
        state: 'gone',
        cause: cause === 'interrupted' ? cause : 'unknown',
        billedFromAtMs,
      }
    const isStopping = this.stoppingSinceMs !== undefined && this.state !== 'gone'
    return {
      state: isStopping ? 'stopping' : this.state,
      cause: isStopping ? 'ended' : cause,
      noticeAtMs,
      billedFromAtMs,
      ...(stopsForMs === undefined && defined({ endedAtMs })),
      usableUntilMs: this.#o.usableUntilMs?.(),
    }
  }

  /** What the provider keeps of it. */
  get userData(): string | undefined {
    return this.#o.userData
  }

  #boot(): void {
    this.state = 'running'
    const { startsRunner, userData } = this.#o
    if (userData !== undefined) return void this.#take(parametersOfUserData(userData))
    if (startsRunner) this.#begin()
  }

  #begin(): void {
    this.start()
    if (this.noticeAtMs !== undefined) this.#runner?.notice(this.noticeAtMs)
  }

  /** As `runner/bootstrap.py`: reads the hand-over, deletes it, and starts the runner; without it, nothing. */
  async #take(parameters: BootstrapParameters): Promise<void> {
    const { clock, ask, endsWithRunner, behaviour } = this.#o
    if (behaviour.neverStarts) return
    try {
      const told = await readHandOver(parameters, ask!)
      if (told === undefined) {
        this.taken = 'nothing'
        if (endsWithRunner) this.end('ended')
        return
      }
      await ask!('DELETE', told.deleteUrl)
      this.taken = 'taken'
      if (this.state !== 'gone') this.#begin()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      this.#forget = clock.at(clock.now() + RETRY_MS, () => this.#take(parameters))
    }
  }
}
