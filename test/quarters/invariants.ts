import { isHeld } from '../../core/reservation/reservation'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { TreasuryState } from '../../core/money/treasury'
import type { PromotedModel } from '../../core/retraining/retraining'
import { soldTwice, spentIn } from '../kit/sales'
import type { ScriptedMachine } from '../backends/scripted/scripted-machine'
import type { SeenRun } from './boundary'
import type { QuarterEnd, Year } from './year'

/** A run and its reservation are over by then. */
const RUN_MAX_MS = 60 * DAY_MS
/** The training begins so soon after the opening, or after the fleet is there again. */
const LAUNCH_MAX_MS = 60 * SECOND_MS
/** Five minutes, less some seconds for the asking. */
const REHEARSED_BEFORE_MS = 5 * MINUTE_MS - 10 * SECOND_MS
/** The server warns from there on, and ends a workflow at five times as much. */
const EVENTS_MAX = 10_240
const BYTES_MAX = 10 * 1024 * 1024

/** What one quarter came to, compared with what the provider really did. */
export function breachesOfQuarter(year: Year, end: QuarterEnd): string[] {
  const { plan, result, run } = end
  const trainings = trainingsOf(year, end)
  const [first] = trainings
  if (plan.ends === 'none') return breachesOfSkip(year, end)
  if (result === undefined) return [`${run.nominal}: it came to no end`]
  const wrong: string[] = []
  const say = (what: string): void => void wrong.push(`${run.nominal}: ${what}`)
  if (result.state !== plan.ends) say(`${result.state} instead of ${plan.ends}: ${result.message}`)
  if (result.message.trim() === '') say('it ended without a word')
  if (first === undefined) say('nothing was trained')
  const delayMs = launchDelayMs(year, end)
  if (plan.begins !== undefined && !result.warnings.some((word) => /^It begins .* after its date/.test(word)))
    say('it does not say that it begins late')
  if (plan.rehearses === true && !(end.rehearsalEndedAtMs! <= run.opensAtMs - REHEARSED_BEFORE_MS))
    say(`the rehearsal went on until ${end.rehearsalEndedAtMs}, and the window opens ${run.opensAtMs}`)
  const isHeldTo = plan.begins !== 'late-by-far' && delayMs !== undefined
  if (isHeldTo && !(delayMs >= 0 && delayMs <= LAUNCH_MAX_MS))
    say(`launched ${delayMs / SECOND_MS} s after the opening`)
  const wasReserved = first?.handle.realised.capacityType === 'reserved'
  if (first !== undefined && wasReserved !== (plan.trains === 'reserved'))
    say(`the training began as ${first.handle.realised.capacityType}`)
  for (const machine of trainings)
    if (machine.cause === 'interrupted' && plan.isTakenAway === undefined)
      say(`${machine.handle.attemptId} was still there at the cut-off`)
  if (trainings.some(({ state }) => state !== 'gone')) say('a machine of its training still runs')
  return [...wrong, ...breachesOfPurchases(year, end)]
}

/** A date that is left out is counted, and nothing is done for it. */
function breachesOfSkip(year: Year, { run, result, overlapped }: QuarterEnd): string[] {
  const machines = year.world.machines.filter(({ handle }) => handle.attemptId.startsWith(prefixOf(run)))
  if (result === undefined && overlapped === 1 && machines.length === 0) return []
  return [`${run.nominal}: ${result?.state ?? 'no run'}, ${overlapped} dates are counted as skipped`]
}

const prefixOf = ({ nominal }: { nominal: string }): string => `ranker-${nominal.replaceAll('-', '')}`

function trainingsOf({ world }: Year, { run }: QuarterEnd): ScriptedMachine[] {
  const prefix = prefixOf(run)
  return world.machines.filter(
    ({ handle }) => handle.attemptId.startsWith(prefix) && handle.attemptId.includes('-train'),
  )
}

/** From the moment from which the training could begin. */
export function launchDelayMs(year: Year, end: QuarterEnd): number | undefined {
  const { run, servedAtMs } = end
  const [first] = trainingsOf(year, end)
  if (first === undefined) return undefined
  const wasReserved = first.handle.realised.capacityType === 'reserved'
  const bought = purchasesOf(year.market.purchases, run).filter(({ isPaid }) => isPaid === true)
  const activeAtMs = (wasReserved && year.market.activeFromMs(bought[0]?.id ?? '')) || 0
  return first.handle.launchedAtMs - Math.max(run.opensAtMs, activeAtMs, servedAtMs)
}

/** Every purchase is known to the reservation that wanted it, there is one for a run, and each was sent once. */
function breachesOfPurchases({ market }: Year, { run, plan, result }: QuarterEnd): string[] {
  const own = purchasesOf(market.purchases, run)
  const paid = own.filter(({ isPaid }) => isPaid !== false)
  const wrong: string[] = []
  const say = (what: string): void => void wrong.push(`${run.nominal}: ${what}`)
  if (paid.length !== plan.paid) say(`${paid.length} purchases are paid for instead of ${plan.paid}`)
  if (paid.filter(({ kind }) => kind === 'reservation').length > 1) say('a block was bought twice')
  if (soldTwice(own) > 0) say('one purchase had an effect twice')
  const price = paid.reduce((sum, { quote }) => sum + quote.upfrontMicro, 0)
  if (result!.capacityMicroUsd !== price)
    say(`it says ${result!.capacityMicroUsd} for capacity, the provider ${price}`)
  return wrong
}

/** Purchases of the run that was under way. */
export function purchasesOf<T extends { atMs: number }>(
  purchases: readonly T[],
  { startsAtMs }: { startsAtMs: number },
): T[] {
  return purchases.filter(({ atMs }) => atMs >= startsAtMs && atMs < startsAtMs + RUN_MAX_MS)
}

export interface YearFacts {
  year: Year
  treasuries: readonly TreasuryState[]
  production: readonly PromotedModel[]
  runs: readonly SeenRun[]
}

/** What holds for the whole year. */
export function breachesOfYear({ year, treasuries, production, runs }: YearFacts): string[] {
  return [
    ...breachesOfMoney(year, treasuries),
    ...breachesOfGate(year, production),
    ...breachesOfHistories(year, runs),
    ...runs
      .filter(({ events, bytes }) => events > EVENTS_MAX || bytes > BYTES_MAX)
      .map(({ workflowId, events, bytes }) => `${workflowId} has ${events} events of ${bytes} bytes`),
  ]
}

/** Where the server suggests it, long waits continue in fresh histories. */
function breachesOfHistories({ scenario }: Year, runs: readonly SeenRun[]): string[] {
  if (scenario.historyMax === undefined) return []
  return ['retrain', 'reserveCapacity']
    .filter((type) => !runs.some((run) => run.type === type && run.hasContinued))
    .map((type) => `${type} never continued in a fresh history`)
}

function breachesOfMoney({ market, world }: Year, treasuries: readonly TreasuryState[]): string[] {
  const spent = spentIn(treasuries)
  const paid = market.purchases.filter(({ isPaid }) => isPaid === true)
  const upfront = paid.reduce((sum, { quote }) => sum + quote.upfrontMicro, 0)
  const machines = world.machines.reduce((sum, machine) => sum + costOf(machine), 0)
  const wrong: string[] = []
  // A machine is paid for until its end is seen, and its price is rounded up.
  const slack = world.machines.reduce((sum, { handle }) => sum + slackOf(handle.realised), 0)
  const unexplained = spent - upfront - machines
  if (unexplained < 0 || unexplained > slack)
    wrong.push(`the months say ${spent}, the provider ${upfront} and ${machines} for machines`)
  for (const { month, promised } of treasuries)
    for (const id of Object.keys(promised)) wrong.push(`${id} is still promised in ${month}`)
  const still = market.held().filter(({ kind, phase }) => kind === 'hourly' && isHeld(phase))
  return [...wrong, ...still.map(({ id }) => `${id} is still held`)]
}

/** Of a quarter of an hour: the clock jumps by ten minutes while machines run. */
function slackOf({ priceMicroUsdPerHour }: { priceMicroUsdPerHour: number }): number {
  return priceMicroUsdPerHour / 4
}

function costOf({ handle, billedFromMs = 0, billedToMs }: ScriptedMachine): number {
  const forMs = (billedToMs ?? billedFromMs) - billedFromMs
  return Math.ceil((handle.realised.priceMicroUsdPerHour * forMs) / HOUR_MS)
}

/** The chain of production has exactly the models that are within a tenth of the one before. */
function breachesOfGate({ ends }: Year, production: readonly PromotedModel[]): string[] {
  const wrong: string[] = []
  const promoted = ends.filter(({ result }) => result?.state === 'promoted')
  if (production.length !== promoted.length)
    wrong.push(`${production.length} models went into production, and ${promoted.length} runs say so`)
  let best: number | undefined
  for (const { run, plan, result } of ends) {
    const mayPass = best === undefined || plan.loss <= best * 1.1
    if (result?.state === 'promoted' && !mayPass) wrong.push(`${run.nominal}: promoted past the gate`)
    if (result?.state === 'promoted') best = plan.loss
  }
  const windows = production.map(({ window }) => window.end)
  if (windows.some((window, index) => index > 0 && window <= windows[index - 1]!))
    wrong.push(`models of older data replaced newer ones: ${windows.join(', ')}`)
  return wrong
}
