import type { CallContext, LookContext, ReservingBackend } from '../../../../backends/backend'
import { BackendError, failureOf } from '../../../../backends/errors'
import type { Failure } from '../../../../core/failure'
import type {
  CapacityRequest,
  ReservationOrder,
  ReserveOutcome,
} from '../../../../core/reservation/reservation'
import { sleep } from '../clock'
import type { ReservationMarket, ReservingFault, ReservingVerb } from './market'

/** Buying and holding over a scripted market. It keeps every promise of the contract but for what the market's script says. */
export function createScriptedReserving(market: ReservationMarket): ReservingBackend {
  const call = <T>(verb: ReservingVerb, ctx: CallContext, effect: () => T): Promise<T> =>
    answer(market, { verb, ctx, effect })
  return {
    account: (ctx) => call('account', ctx, () => market.account),
    reservable: (wish, ctx) =>
      call('reservable', ctx, () => {
        mustBeSold(market, wish)
        const within = wish.extends === undefined ? wish.regions : [wish.extends.region]
        return inRegions(market, { ctx, within }, (region) => market.quotes(wish, region))
      }),
    reservations: (ctx) =>
      call('reservations', ctx, () => inRegions(market, { ctx }, (region) => market.listed(region))),
    reserve: (order, ctx) =>
      answer<ReserveOutcome>(market, {
        verb: 'reserve',
        ctx,
        intent: order.intent,
        effect: (fault) => bought(market, order, fault),
        unknown: () => ({ kind: 'unconfirmed', failure: transient('the answer was lost').failure }),
      }),
    change: (ref, change, ctx) => call('change', ctx, () => market.change(ref, change)),
    releaseTerms: (ref, ctx) => call('releaseTerms', ctx, () => market.terms(ref)),
    release: (ref, terms, ctx) => call('release', ctx, () => market.release(ref, terms)),
  }
}

function bought(market: ReservationMarket, order: ReservationOrder, fault?: ReservingFault): ReserveOutcome {
  if (fault?.kind === 'refuses') return { kind: 'refused', failure: fault.failure }
  if (fault?.kind === 'gone') market.sellOut(order.quote)
  const outcome = market.buy(order)
  return 'class' in outcome
    ? { kind: 'refused', failure: outcome }
    : { kind: 'reserved', reservation: outcome }
}

/** A wish that is never satisfied, whatever the stock. */
function mustBeSold(market: ReservationMarket, wish: CapacityRequest): void {
  if (wish.kind === 'prepaid' && wish.durationMs === undefined)
    throw invalid('a prepaid reservation needs a duration')
  const sold = market.lots.flatMap((lot) => (lot.kind === wish.kind ? [lot.type] : []))
  if (wish.extends === undefined && !wish.types.some((type) => sold.includes(type)))
    throw invalid(`none of ${wish.types.join(', ')} is sold ${wish.kind}; these are: ${sold.join(', ')}`)
}

function inRegions<T>(
  market: ReservationMarket,
  { ctx, within = market.regions }: { ctx: LookContext; within?: readonly string[] | undefined },
  ask: (region: string) => T[],
): T[] {
  const wanted = within.filter((region) => ctx.within?.includes(region) ?? true)
  const lost = wanted.filter((region) => market.silent.has(region))
  const failure = (region: string): BackendError => transient(`${region} does not answer`)
  if (lost.length > 0 && (ctx.unseen === undefined || lost.length === wanted.length)) throw failure(lost[0]!)
  for (const region of lost) ctx.unseen?.(region, failure(region))
  return wanted.filter((region) => !market.silent.has(region)).flatMap(ask)
}

async function answer<T>(
  market: ReservationMarket,
  {
    verb,
    ctx,
    intent,
    effect,
    unknown,
  }: {
    verb: ReservingVerb
    ctx: CallContext
    intent?: string
    effect: (fault?: ReservingFault) => T
    unknown?: () => T
  },
): Promise<T> {
  const { clock } = market
  if (ctx.signal.aborted) throw left()
  market.calls.push({ verb, atMs: clock.now(), intent })
  const fault = market.faults.take(verb, intent === undefined ? [] : [intent])
  const lost = (): T => {
    if (unknown === undefined) throw transient('the answer was lost')
    return unknown()
  }
  switch (fault?.kind) {
    case 'throws':
      throw new BackendError(fault.failure)
    case 'slow':
      await sleep(clock, fault.durationMs, ctx.signal)
      if (ctx.signal.aborted) throw left()
      return effect(fault)
    case 'hangs':
      if (fault.hasEffect) effect(fault)
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      return lost()
    case 'loses-answer':
      if (fault.hasEffect) effect(fault)
      return lost()
    case 'late':
      clock.at(clock.now() + fault.effectAfterMs, () => void tried(() => effect(fault)))
      return lost()
    case 'refuses':
    case 'gone':
    case undefined:
      return effect(fault)
  }
}

/** No caller waits for its answer, whatever that is. */
function tried(effect: () => unknown): Failure | undefined {
  try {
    effect()
    return undefined
  } catch (error) {
    return failureOf(error)
  }
}

function transient(message: string): BackendError {
  return new BackendError({ class: 'transient', message })
}

function invalid(message: string): BackendError {
  return new BackendError({ class: 'invalid', message })
}

function left(): BackendError {
  return transient('the caller stopped waiting')
}
