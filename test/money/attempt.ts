import { attemptBudget, startsWithinMs } from '../../core/money/budget'
import type { Limits } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import type { Observation } from '../../core/observation'
import type { Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { Alone } from './alone'
import type { BilledTime } from './bill'
import { Control } from './control'
import { Doubled } from './doubled'
import { explain, type Excess } from './explained'
import { Machine } from './machine'
import type { Market } from './market'
import { settle, type Settled } from './settling'
import type { World } from './world'

/** What came of one order. */
export interface AttemptResult extends Settled {
  handle: MachineHandle
  kind: Market['kind']
  workedMs: number
  /** The most that an hour of all that its order allows can have cost. */
  orderMaxMicroUsd: number
  /** One, or two if its provider doubled it. */
  machines: number
  /** In which the provider bills. */
  stepMs: number
  excess: Excess
  breaches: string[]
}

/** How long a container waits for its runner at most (`GIVE_UP_SECONDS` of runner/bootstrap.py). */
const CONTAINER_GIVES_UP_MS = 15 * MINUTE_MS

/** One order: its machine, everybody who may end that, and what it cost. */
export class Attempt {
  readonly machine: Machine
  readonly handle: MachineHandle
  readonly market: Market
  limits: Limits
  /** Its provider reports when billing began and ended, by a clock that is not ours. */
  readonly isBeginTold: boolean
  readonly skewMs: number
  isLeftBehind = false
  private capMicroUsd: number
  readonly doubled: Doubled

  constructor(
    readonly world: World,
    readonly order: Order,
    { workMs, leftMicroUsd }: { workMs: number; leftMicroUsd: number },
  ) {
    const { dice, clock } = world
    const offer = dice.oneOf(order.offers)
    this.market = world.market(order.backend)
    this.capMicroUsd = leftMicroUsd
    const issuedAtMs = clock.nowMs
    const launchedAtMs = issuedAtMs + dice.between(SECOND_MS, 20 * SECOND_MS)
    this.isBeginTold = this.market.kind === 'ec2' || (this.market.kind === 'modal' && dice.chance(0.8))
    this.skewMs = this.isBeginTold ? world.providerSkewMs : 0
    this.handle = handleOf(order, offer, launchedAtMs + this.skewMs)
    this.limits = order.runner.limits
    this.machine = new Machine(world, {
      limits: this.limits,
      issuedAtMs,
      launchedAtMs,
      workMs,
      market: this.market,
      isTakenBack: this.market.isTakenBack(offer),
      beginsWithinMs: Math.min(
        startsWithinMs(order.runner),
        this.market.kind === 'modal' ? CONTAINER_GIVES_UP_MS : Infinity,
      ),
    })
    this.doubled = new Doubled(this)
  }

  /** New limits, as a person asks for them. */
  extend(leftMicroUsd: number): void {
    this.capMicroUsd = leftMicroUsd
    const budget = attemptBudget(leftMicroUsd, this.order)
    this.limits = { ...this.limits, seq: this.limits.seq + 1, budget }
    this.machine.readLimits(this.limits)
  }

  /** What its provider says of the machine now. */
  readonly look = (): Observation => {
    const { machine, world } = this
    if (machine.isQueued) return { state: 'queued' }
    const { runsFromMs } = machine
    const hasBegun = runsFromMs <= (machine.endedAtMs ?? world.clock.nowMs)
    const begun = hasBegun &&
      this.isBeginTold &&
      this.market.kind === 'modal' && { billedFromAtMs: runsFromMs + this.skewMs }
    if (machine.billedToMs === undefined) return { state: 'running', ...begun }
    return { state: 'gone', ...begun, cause: runsFromMs === Infinity ? 'failed-to-start' : undefined }
  }

  /** How its time is billed. */
  get billing(): Pick<BilledTime, 'prices' | 'leastMs' | 'stepMs'> {
    const { leastMs, stepMs } = this.market.terms
    return { prices: this.market.bill(this.handle), leastMs, stepMs }
  }

  async live(): Promise<AttemptResult> {
    const { machine, world, market } = this
    const living = machine.live()
    const control = new Control(this)
    const alone = new Alone(this, control)
    void alone.live()
    await this.doubled.live(alone)
    await control.live()
    const { billOf, ...settled } = await settle(this, control)
    this.isLeftBehind = settled.isLeftBehind
    await living
    // Whatever the job does next, the provider may go on billing.
    while (machine.billedToMs === undefined) await world.clock.until(world.clock.nowMs + MINUTE_MS)
    const billMicroUsd = billOf() + this.doubled.billMicroUsd
    const excess = explain(this, { billMicroUsd, capMicroUsd: this.capMicroUsd, doubled: this.doubled })
    world.count(`${market.kind}: attempts`)
    return {
      ...settled,
      handle: this.handle,
      kind: market.kind,
      workedMs: machine.savedMs,
      machines: 1 + this.doubled.ended.length,
      billMicroUsd,
      stepMs: market.terms.stepMs,
      excess,
      orderMaxMicroUsd: this.order.priceMaxMicroUsdPerHour,
      breaches: [...excess.breaches, ...alone.breaches()],
    }
  }
}

function handleOf(order: Order, offer: Offer, launchedAtMs: number): MachineHandle {
  const { billedAtLeastMs, billedInStepsOfMs, capacityType, type, place, priceMicroUsdPerHour } = offer
  return {
    backend: order.backend,
    kind: 'machine',
    id: 'i-1',
    attemptId: order.attemptId,
    realised: {
      capacityType,
      type,
      place,
      priceMicroUsdPerHour,
      billedAtLeastMs,
      billedInStepsOfMs,
    },
    // By a clock that is not ours.
    launchedAtMs,
  }
}
