import type { Backend, PricedTime, PricePath } from '../../backends/backend'
import { defined } from '../../core/defined'
import type { EndedMachine } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { spend, type Metering, type PriceStep, type Rounding, type Usage } from '../../core/money/meter'
import type { MicroUsd } from '../../core/money/money'
import { dearestPriceOf, type Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { SECOND_MS } from '../../core/time/time'
import { pause } from '../heartbeat'

/** Prices recorded for one machine: a change every few hours, for some weeks. */
const PRICES_MAX = 200
/** Pauses between tries to get a machine's price; after the last one, the highest possible price counts. */
const ASKED_AGAIN_MS = [SECOND_MS, 5 * SECOND_MS]

/** A machine that is or was billed. */
export interface Billed {
  handle: MachineHandle
  order: Order
  fromAtMs: number
}

function offerOf({
  handle: { realised },
  order,
}: {
  handle: Pick<MachineHandle, 'realised'>
  order: Order
}): Offer | undefined {
  return order.offers.find(({ type, place }) => type === realised.type && place === realised.place)
}

/** The highest possible hourly price of the machine. */
export function dearestOf({ handle, order }: Pick<Billed, 'handle' | 'order'>): MicroUsd {
  const { realised } = handle
  const own = offerOf({ handle, order })
  const dearest = own === undefined ? order.priceMaxMicroUsdPerHour : dearestPriceOf(own)
  return Math.max(dearest, realised.priceMicroUsdPerHour)
}

/** Returns how the machine's time is rounded: by the bought offer, otherwise by the requested one. */
export function roundingOf({ handle: { realised }, order }: Pick<Billed, 'handle' | 'order'>): Rounding {
  const offer = offerOf({ handle: { realised }, order })
  return {
    billedAtLeastMs: realised.billedAtLeastMs ?? offer?.billedAtLeastMs,
    billedInStepsOfMs: realised.billedInStepsOfMs ?? offer?.billedInStepsOfMs,
  }
}

/** Options for asking a provider that may not answer immediately. */
interface Asking {
  signal: AbortSignal
  /** Wait between two tries; real time if missing. */
  wait?: (durationMs: number) => Promise<void>
}

/** The cost of an ended machine, and the prices behind it. */
export async function meterEnded(
  backend: Backend,
  billed: Billed & Required<PricedTime>,
  { signal, wait = (durationMs) => pause(durationMs, signal) }: Asking,
): Promise<{ costMicroUsd: MicroUsd; metering: Metering }> {
  const path = await askedAgain(() => pricesOf(backend, billed, signal), wait)
  const prices = path?.prices ?? [dearestStep(billed)]
  // In whole seconds, the end of a short-lived machine may precede its launch; it is billed anyway.
  const toAtMs = Math.max(billed.toAtMs, billed.fromAtMs + 1)
  const { billedAtLeastMs } = roundingOf(billed)
  const usage = { ...usageOf(prices, billed), toAtMs, ...defined({ billedAtLeastMs }) }
  const basis = path === undefined ? 'dearest' : path.knownToAtMs === undefined ? 'fixed' : 'told'
  return {
    costMicroUsd: spend(usage, toAtMs),
    metering: { basis, prices: [...prices.slice(0, 1), ...prices.slice(1).slice(-PRICES_MAX)] },
  }
}

/** `undefined` if the prices stay unknown. */
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

/**
 * Returns the highest possible cost of other machines of an order: duplicates that its provider made. One with an unknown end counts as
 * still billed.
 */
export function costOfOthers(
  ended: readonly EndedMachine[],
  { order, handle, nowMs }: { order: Order; handle: MachineHandle; nowMs: number },
): MicroUsd {
  const costs = ended
    .filter((one) => one.handle.id !== handle.id)
    .map(({ handle: other, endedAtMs }) => {
      const fromAtMs = other.launchedAtMs
      const priceMicroUsdPerHour = dearestOf({ handle: other, order })
      const toAtMs = Math.max(endedAtMs ?? nowMs, fromAtMs + 1)
      return spend({ fromAtMs, toAtMs, priceMicroUsdPerHour, ...roundingOf({ handle: other, order }) }, nowMs)
    })
  return costs.reduce((sum, cost) => sum + cost, 0)
}

/** The cost of a running machine. */
export interface SpentSoFar {
  /** Upper bound for costs that the provider has not reported yet. */
  atMostMicroUsd: MicroUsd
  /** By the reported prices, for people; missing if the provider did not answer. */
  asToldMicroUsd?: MicroUsd | undefined
  /** Current price, as far as it is known. */
  priceMicroUsdPerHour: MicroUsd
}

/**
 * Meters a running machine. Never throws: unknown prices count as the highest possible. The minimum billed duration is excluded, because
 * the remaining budget pays for it as the machine continues.
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
    asToldMicroUsd: told === undefined ? undefined : spend(usage, nowMs),
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

/** Returns the usage without the minimum billed duration, which only an ended machine is charged for. */
function usageOf([first, ...changes]: PriceStep[], { fromAtMs, ...billed }: Billed): Usage {
  const { billedInStepsOfMs } = roundingOf(billed)
  const priceMicroUsdPerHour = first?.priceMicroUsdPerHour ?? dearestOf(billed)
  return { fromAtMs, priceMicroUsdPerHour, changes, billedInStepsOfMs }
}
