import { costOfOthers, dearestOf, meterEnded } from '../../activities/money/metering'
import { timesBilled } from '../../activities/settle/cost'
import type { SettleInput } from '../../core/activities'
import type { AttemptEnd } from '../../core/job/ledger'
import type { Metering } from '../../core/money/meter'
import type { Observation } from '../../core/observation'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Attempt } from './attempt'
import { billOf } from './bill'
import type { Control } from './control'
import { ANSWERED_WITHIN_MS } from './doubled'
import { TIMING } from './world'

/** From an end that the control plane has seen until the call to its provider: a beat, a look at the provider's pace, and the call. */
const REACTION_MS = 30 * SECOND_MS
/** Garbage collection ends what had no owner in two of its runs. */
const COLLECTED_WITHIN_MS = 20 * MINUTE_MS

/** What the job reports to its owner, and what the provider bills. */
export interface Settled {
  end: AttemptEnd
  costMicroUsd: number
  /** Once the machine is billed no more. */
  billMicroUsd: number
  basis: Metering['basis']
  /** Of one whose end was not reported, the time until it was looked for is metered, too. */
  isEndTold: boolean
  /** It was billed after its settlement: its lease had expired, and its provider did not answer. */
  isLeftBehind: boolean
  /** The most that an hour of it can have cost. */
  dearestMicroUsd: number
  /** How long it was billed before it was launched by our meter, and after its end by the provider's: what the two may differ by. */
  slackMs: number
}

/** Ends the machine where that takes a call, and adds up. */
export async function settle(
  attempt: Attempt,
  control: Control,
): Promise<Omit<Settled, 'billMicroUsd'> & { billOf: () => number }> {
  const { machine, world, order, handle, market, skewMs } = attempt
  const { clock, dice } = world
  const { isLeftBehind, seen } = await endMachine(attempt, control)
  const isEndTold = market.capabilities.billsUntil === 'exit' && attempt.isBeginTold && dice.chance(0.9)
  const nowMs = clock.nowMs + dice.between(0, MINUTE_MS)
  const isAnswered = market.capabilities.billsUntil === 'terminate' && machine.isCalled && !isLeftBehind
  const endedAtMs = isEndTold
    ? machine.billedToMs! + skewMs
    : isAnswered
      ? machine.billedToMs! + dice.between(0, ANSWERED_WITHIN_MS)
      : Math.max(nowMs, machine.billedToMs ?? 0) + skewMs
  await clock.until(world.store.overAtMs(clock.nowMs))
  const [billed] = await timesBilled({ order } as SettleInput, control.documents, {
    machines: [handle],
    lasts: [{ ...seen, ...attempt.look(), state: seen.state, endedAtMs }],
    hasSpoken: machine.hasSpoken,
    beat: undefined,
    nowMs,
    ranUntilMs: 0,
  })
  const { fromAtMs, toAtMs } = billed!
  const { costMicroUsd, metering } =
    fromAtMs === undefined
      ? { costMicroUsd: 0, metering: { basis: 'fixed' as const } }
      : await meterEnded(
          market.backend,
          { handle, order, fromAtMs, toAtMs },
          {
            signal: new AbortController().signal,
            wait: (durationMs) => clock.until(clock.nowMs + durationMs),
          },
        )
  world.count(`metered by ${metering.basis} prices`)
  const duplicatesMicroUsd = costOfOthers(attempt.doubled.ended, { order, handle, nowMs })
  return {
    end: machine.hasResult ? machine.end : (control.end ?? machine.end),
    costMicroUsd: costMicroUsd + duplicatesMicroUsd,
    basis: metering.basis,
    isEndTold,
    isLeftBehind,
    dearestMicroUsd: dearestOf({ handle, order }),
    billOf: () => billOf({ ...attempt.billing, fromMs: machine.runsFromMs, toMs: machine.billedToMs! }),
    slackMs:
      Math.max(0, machine.runsFromMs - ((fromAtMs ?? Infinity) - skewMs)) +
      Math.max(0, toAtMs - skewMs - (machine.billedToMs ?? toAtMs)) +
      // One that was never billed counts with its least, too.
      ((machine.billedToMs ?? Infinity) <= machine.runsFromMs ? market.terms.leastMs : 0) +
      SECOND_MS,
  }
}

interface Ended {
  /** What its provider said of it before. */
  seen: Observation
  isLeftBehind: boolean
}

/** Tells the provider to end it, as soon as everything answers, or settles without that once its lease is over. */
async function endMachine({ machine, world, market, look }: Attempt, control: Control): Promise<Ended> {
  const { clock, dice } = world
  const isAway = (): boolean =>
    [world.control, world.store, market.silence].some((one) => one.isNow(clock.nowMs))
  for (;;) {
    const seen = look()
    if (machine.billedToMs !== undefined) return { seen, isLeftBehind: false }
    await clock.until(world.control.overAtMs(clock.nowMs))
    await clock.until(world.store.overAtMs(clock.nowMs))
    if (!isAway()) {
      await clock.until(clock.nowMs + dice.between(SECOND_MS, REACTION_MS))
      if (isAway()) continue
      const last = look()
      world.count('ended by a settlement')
      machine.terminate()
      await clock.until(clock.nowMs + TIMING.powerOffMs)
      return { seen: last, isLeftBehind: false }
    }
    if (clock.nowMs > control.leaseOverAtMs) break
    await clock.until(Math.min(market.silence.overAtMs(clock.nowMs), control.leaseOverAtMs + 1))
  }
  world.count('settled while its provider was silent')
  void collect()
  return { seen: { state: 'gone' }, isLeftBehind: true }

  async function collect(): Promise<void> {
    while (isAway()) await clock.until(clock.nowMs + MINUTE_MS)
    await clock.until(clock.nowMs + dice.between(0, COLLECTED_WITHIN_MS))
    if (isAway()) return collect()
    machine.terminate()
  }
}
