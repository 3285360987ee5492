import type { PlanInput } from '../../core/activities'
import { ACCEPTANCES, type JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER, type Avoidance, type Ledger } from '../../core/job/ledger'
import { affordableMs } from '../../core/money/budget'
import { formatUsd, MICRO_USD_PER_USD } from '../../core/money/money'
import { offerKey, placeKey } from '../../core/offer'
import type { BackendAnswer, Order, Plan, SilentBackend } from '../../core/job/plan'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { settle } from '../../core/money/treasury'
import { decide } from '../../planner/policy/decide'
import { makeOrder } from '../../planner/plan/order'
import { makePlan, outlook } from '../../planner/plan/plan'
import { SPEC } from '../support/spec'
import { promise } from '../support/treasury'
import { Attempt, type AttemptResult } from './attempt'
import { TIMING, type World } from './world'

/** A job that finds no machine for this long is given up: nothing more is learned of it. */
const WAITS_MAX = 100
const POLICY = { failuresMax: 3, interruptionsMax: 30, unclassifiedMax: 3 }

/** A job, what it may cost, and what it really did. */
export class Job {
  budgetMicroUsd: number
  spentMicroUsd = 0
  billMicroUsd = 0
  reason = 'never began'
  readonly attempts: AttemptResult[] = []
  /** What its plans did not say, and where they led it without its consent. */
  readonly breaches: string[] = []
  private readonly spec: JobSpec
  private leftMs: number
  private ledger: Ledger = EMPTY_LEDGER
  private avoided: (Avoidance & { untilMs: number })[] = []
  private running: { attempt: Attempt; order: Order } | undefined
  private isOver = false

  constructor(
    private readonly world: World,
    readonly id: string,
    readonly owner: string,
  ) {
    const { dice, markets } = world
    this.leftMs = dice.between(2 * MINUTE_MS, dice.oneOf([20 * MINUTE_MS, 3 * HOUR_MS, 12 * HOUR_MS]))
    const prices = markets.flatMap(({ pools }) => pools.map(({ onDemandMicroUsd }) => onDemandMicroUsd))
    const dearest = Math.max(...prices)
    // From far too little to more than it can ever need.
    const enough = (dearest * this.leftMs) / HOUR_MS
    this.budgetMicroUsd = Math.round(enough * dice.oneOf([0.1, 0.3, 0.6, 1, 2]) * (0.5 + dice.next()))
    const isDurationTold = dice.chance(0.5)
    this.spec = {
      ...SPEC,
      isInterruptible: dice.chance(0.85),
      accepts: ACCEPTANCES.filter(() => dice.chance(0.6)),
      ...(isDurationTold ? { durationMs: Math.round(this.leftMs * (0.3 + dice.next())) } : {}),
    }
  }

  async live(): Promise<void> {
    const { clock, control, dice } = this.world
    await clock.until(clock.nowMs + dice.between(0, 6 * HOUR_MS))
    await clock.until(control.overAtMs(clock.nowMs))
    if (!this.havePromised(this.budgetMicroUsd)) {
      this.reason = 'refused by month or owner'
      return
    }
    void this.extendNowAndThen()
    this.reason = await this.attemptAll()
    this.isOver = true
    this.world.treasury = settle(this.world.treasury, {
      jobId: this.id,
      owner: this.owner,
      spentMicroUsd: this.spentMicroUsd,
    })
  }

  private havePromised(microUsd: number): boolean {
    const { world, id, owner } = this
    const { state, answer } = promise(world.treasury, { jobId: id, owner, microUsd, limits: world.limits })
    world.treasury = state
    return answer.kind === 'promised'
  }

  private async extendNowAndThen(): Promise<void> {
    const { clock, dice, control, store } = this.world
    if (!dice.chance(0.25)) return
    await clock.until(clock.nowMs + dice.between(MINUTE_MS, 4 * HOUR_MS))
    await clock.until(control.overAtMs(clock.nowMs))
    const budgetMicroUsd = Math.round(this.budgetMicroUsd * (1 + dice.next()))
    if (this.isOver || !this.havePromised(budgetMicroUsd)) return
    this.budgetMicroUsd = budgetMicroUsd
    await clock.until(store.overAtMs(clock.nowMs))
    this.world.count('extended')
    this.running?.attempt.extend(this.budgetMicroUsd - this.spentMicroUsd)
  }

  private async attemptAll(): Promise<string> {
    const { clock, control } = this.world
    for (let waits = 0; waits < WAITS_MAX;) {
      await clock.until(control.overAtMs(clock.nowMs))
      const order = await this.plan()
      if (order === 'never') return this.attempts.length === 0 ? 'refused by its first plan' : 'no place left'
      if (order === 'wait') {
        waits += 1
        await clock.until(clock.nowMs + 10 * MINUTE_MS)
        continue
      }
      const attempt = new Attempt(this.world, order, {
        workMs: this.leftMs,
        leftMicroUsd: this.budgetMicroUsd - this.spentMicroUsd,
      })
      this.running = { attempt, order }
      const result = await attempt.live()
      this.running = undefined
      this.attempts.push(result)
      this.spentMicroUsd += result.costMicroUsd
      this.billMicroUsd += result.billMicroUsd
      this.leftMs = Math.max(SECOND_MS, this.leftMs - result.workedMs)
      const reason = await this.decide(order, result)
      if (reason !== undefined) return reason
    }
    return 'gave up waiting'
  }

  private async plan(): Promise<Order | 'wait' | 'never'> {
    const { clock, markets } = this.world
    const nowMs = clock.nowMs
    const signal = new AbortController().signal
    // The prices of EC2 come from elsewhere than its offers.
    const answering = markets.filter(({ kind, silence }) => kind === 'ec2' || !silence.isNow(nowMs))
    const answers = await Promise.all(
      answering.map(async ({ kind, capabilities, backend }): Promise<BackendAnswer> => ({
        backend: kind,
        capabilities,
        offers: await backend.offers({}, { signal }),
      })),
    )
    const silentBackends: SilentBackend[] = markets
      .filter((market) => !answering.includes(market))
      .map(({ kind }) => ({ backend: kind, reason: 'it does not answer' }))
    this.avoided = this.avoided.filter(({ untilMs }) => untilMs > nowMs)
    const input: PlanInput = {
      jobId: this.id,
      deployment: 'dep',
      recordSeq: 0,
      attempt: this.attempts.length + 1,
      resolved: { spec: this.spec, policy: POLICY, timing: TIMING, runnerSha256: '', storeUrl: '' },
      bundle: null,
      ledger: { ...this.ledger, spentMicroUsd: this.spentMicroUsd },
      avoid: this.avoided,
      budgetMicroUsd: this.budgetMicroUsd,
    }
    const plan = makePlan({
      spec: this.spec,
      timing: TIMING,
      answers,
      silentBackends,
      avoid: this.avoided,
      nowMs,
      isFirst: input.attempt === 1,
      remainingMicroUsd: this.budgetMicroUsd - this.spentMicroUsd,
    })
    this.breaches.push(...named(plan, answers, this.spec))
    if (plan.placements.length === 0) return outlook(plan) === 'wait' ? 'wait' : 'never'
    return makeOrder(plan, input, answers)
  }

  private async decide(order: Order, { end, handle, workedMs }: AttemptResult): Promise<string | undefined> {
    const { clock } = this.world
    const leftMicroUsd = this.budgetMicroUsd - this.spentMicroUsd
    const { decision, ledger } = decide({
      end,
      drainReason: null,
      offerKeys: order.offers.map(offerKey),
      ledger: this.ledger,
      policy: POLICY,
      hasSaved: workedMs > 0,
      machine: keysOf({ ...handle.realised, backend: order.backend }),
      budget: { leftMicroUsd, priceMaxMicroUsdPerHour: order.priceMaxMicroUsdPerHour },
    })
    const isPlanned = end.kind === 'stopped' && end.by === 'expired' && workedMs > 0
    if (isPlanned && ledger.interruptions > this.ledger.interruptions)
      this.breaches.push('a planned hand-over counted as an interruption')
    this.ledger = ledger
    if (decision.kind === 'finish') return decision.reason
    if (end.kind === 'stopped' && end.by === 'budget') this.world.count('went on with what a stop had left')
    if (isPlanned) this.world.count('handed over at a run limit')
    this.avoided.push(...decision.avoid.map((each) => ({ ...each, untilMs: clock.nowMs + each.forMs })))
    await clock.until(clock.nowMs + decision.afterMs)
    return undefined
  }

  /** Of a job that its budget ended. */
  get stopped(): { usedPart: number; leftMs: number; wholeMs: number } {
    const dearest = this.attempts.at(-1)!.orderMaxMicroUsd
    const [leftMs, wholeMs] = [this.budgetMicroUsd - this.spentMicroUsd, this.budgetMicroUsd].map(
      (microUsd) => affordableMs(microUsd, dearest),
    ) as [number, number]
    return { usedPart: this.billMicroUsd / this.budgetMicroUsd, leftMs, wholeMs }
  }

  inWords(): string[] {
    const usd = (amount: number): string => `${formatUsd(amount)} (${amount / MICRO_USD_PER_USD})`
    return [
      `${this.id} of ${this.owner}: ${this.reason}, budget ${usd(this.budgetMicroUsd)}, metered ${usd(this.spentMicroUsd)}, billed ${usd(this.billMicroUsd)}`,
      ...this.attempts.map(
        ({ end, handle, costMicroUsd, billMicroUsd, basis }) =>
          `  ${handle.backend} ${handle.realised.capacityType} ${handle.realised.type}: ${end.kind === 'stopped' ? end.by : end.kind}, metered ${usd(costMicroUsd)} by ${basis} prices, billed ${usd(billMicroUsd)}`,
      ),
    ]
  }
}

function keysOf(offer: Parameters<typeof offerKey>[0]): { offerKey: string; placeKey: string } {
  return { offerKey: offerKey(offer), placeKey: placeKey(offer) }
}

/**
 * A machine that is billed until a call ends it may cost more than the budget, which the plan must say before the job begins: as a risk
 * where the job file consents to it, and otherwise as the reason to leave it out.
 */
function named(plan: Plan, answers: BackendAnswer[], { accepts = [] }: JobSpec): string[] {
  const unbounded = answers.filter(({ capabilities }) => capabilities.billsUntil === 'terminate')
  const isUnbounded = ({ backend }: { backend: string }): boolean =>
    unbounded.some((one) => one.backend === backend)
  const isAccepted = accepts.includes('billed-until-terminated')
  return [
    ...plan.placements
      .filter(({ offer }) => isUnbounded(offer))
      .flatMap(({ risks }) => [
        ...(isAccepted ? [] : ['a machine that only a call ends is used without consent']),
        ...(risks.some((risk) => /billed until .* ends it/.test(risk) && /budget/.test(risk))
          ? []
          : ['the plan does not say that the budget may not hold']),
      ]),
    ...plan.rejections
      .filter(({ offerKey: key }) => !isAccepted && isUnbounded({ backend: key.split('/')[0]! }))
      .filter(({ reason }) => !/billed until .*budget.*accept: billed-until-terminated/.test(reason))
      .map(({ reason }) => `left out for another reason than its missing consent: ${reason}`),
  ]
}
