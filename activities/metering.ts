import type { Backend, PricedTime, PricePath } from '../backends/backend'
import type { Metering } from '../core/activities'
import type { MachineHandle } from '../core/handle'
import { spend, type PriceStep, type Usage } from '../core/meter'
import type { MicroUsd } from '../core/money'
import { dearestPriceOf } from '../core/offer'
import type { Order } from '../core/plan'
import { SECOND_MS } from '../core/time'
import { pause } from './heartbeat'

/** Prices of one machine kept on record: a change every few hours, for some weeks. */
const PRICES_MAX = 200
/** Pauses between tries to learn what a machine has cost; then it counts as dear as it can have been. */
const ASKED_AGAIN_MS = [SECOND_MS, 5 * SECOND_MS]

/** A machine that is billed, or was. */
export interface Billed {
  handle: MachineHandle
  order: Order
  fromAtMs: number
}

/** The most that an hour of the machine can have cost. */
export function dearestOf({ handle: { realised }, order }: Pick<Billed, 'handle' | 'order'>): MicroUsd {
  const own = order.offers.find(({ type, place }) => type === realised.type && place === realised.place)
  const dearest = own === undefined ? order.priceMaxMicroUsdPerHour : dearestPriceOf(own)
  return Math.max(dearest, realised.priceMicroUsdPerHour)
}

/** How a provider is asked that may not answer at once. */
interface Asking {
  signal: AbortSignal
  /** Between two tries; by the clock of this process when missing. */
  wait?: (durationMs: number) => Promise<void>
}

/** What an ended machine has cost, and from which prices that follows. */
export async function meterEnded(
  backend: Backend,
  billed: Billed & Required<PricedTime>,
  { signal, wait = (durationMs) => pause(durationMs, signal) }: Asking,
): Promise<{ costMicroUsd: MicroUsd; metering: Metering }> {
  const path = await askedAgain(() => pricesOf(backend, billed, signal), wait)
  const prices = path?.prices ?? [dearestStep(billed)]
  const { billedAtLeastMs } = billed.handle.realised
  // Told in whole seconds, the end of a machine that came and went may lie before its launch: it is billed all the same.
  const toAtMs = Math.max(billed.toAtMs, billed.fromAtMs + 1)
  const usage = { ...usageOf(prices, billed), toAtMs, ...(billedAtLeastMs && { billedAtLeastMs }) }
  const basis = path === undefined ? 'dearest' : path.knownToAtMs === undefined ? 'fixed' : 'told'
  return {
    costMicroUsd: spend(usage, toAtMs),
    metering: { basis, prices: [...prices.slice(0, 1), ...prices.slice(1).slice(-PRICES_MAX)] },
  }
}

/** `undefined` where nobody tells in the end. */
async function askedAgain<T>(
  ask: () => Promise<T>,
  wait: (durationMs: number) => Promise<void>,
): Promise<T | undefined> {
  for (const pauseMs of [...ASKED_AGAIN_MS, 0]) {
    try {
      return await ask()
    } catch {
      await wait(pauseMs)
    }
  }
  return undefined
}

/** What a machine that still runs has cost. */
export interface SpentSoFar {
  /** It cannot be more, whatever its provider has not told yet. */
  atMostMicroUsd: MicroUsd
  asToldMicroUsd: MicroUsd
  /** In force now, as far as it is told. */
  priceMicroUsdPerHour: MicroUsd
}

/**
 * Never throws: what nobody tells counts as dear as it can be. Without the least that is billed: that is paid for by what is left, as
 * the machine goes on.
 */
export async function meterRunning(
  backend: Pick<Backend, 'prices'>,
  { nowMs, ...billed }: Billed & { nowMs: number },
  signal: AbortSignal,
): Promise<SpentSoFar> {
  const unknown = dearestStep(billed)
  const told = await pricesOf(backend, billed, signal).catch(() => undefined)
  const { prices, knownToAtMs = Infinity } = told ?? { prices: [unknown] }
  const usage = usageOf(prices, billed)
  const known = prices.slice(1).filter(({ fromAtMs }) => fromAtMs < knownToAtMs)
  const changes = knownToAtMs === Infinity ? known : [...known, { ...unknown, fromAtMs: knownToAtMs }]
  return {
    atMostMicroUsd: spend({ ...usage, changes }, nowMs),
    asToldMicroUsd: spend(usage, nowMs),
    priceMicroUsdPerHour: prices.at(-1)!.priceMicroUsdPerHour,
  }
}

async function pricesOf(
  backend: Pick<Backend, 'prices'>,
  { handle, order: _, ...time }: Billed & PricedTime,
  signal: AbortSignal,
): Promise<PricePath> {
  if (backend.prices !== undefined) return backend.prices(handle, time, { signal })
  return { prices: [{ fromAtMs: time.fromAtMs, priceMicroUsdPerHour: handle.realised.priceMicroUsdPerHour }] }
}

function dearestStep(billed: Billed): PriceStep {
  return { fromAtMs: billed.fromAtMs, priceMicroUsdPerHour: dearestOf(billed) }
}

function usageOf([first, ...changes]: PriceStep[], { fromAtMs, ...billed }: Billed): Usage {
  return { fromAtMs, priceMicroUsdPerHour: first?.priceMicroUsdPerHour ?? dearestOf(billed), changes }
}
