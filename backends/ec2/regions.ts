import type { FindOutcome } from '../../core/activities'
import { defined } from '../../core/defined'
import type { MachineHandle, OwnedResource, ResourceHandle } from '../../core/handle'
import type { Observation } from '../../core/observation'
import type { DataTransfer, Offer } from '../../core/offer'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Backend, CallContext } from '../backend'
import { mergeProblems } from './check/regions'
import { invalid } from './errors'
import { inEach, type Look } from './each-region'
import { withoutRegion, withRegion } from './launch/region-pins'
import { reservingAcross } from './reserving/regions'
import type { StoreRegion } from './store-region'
import type { TransferBetween } from './market/transfer'

export interface RegionsOptions {
  /** Regions in which machines are bought, at least one; the first is the default. */
  regions: readonly string[]
  /** The backend of one Region, with separate clients, caches and rate limit. */
  open: (region: string) => Backend
  /** The store's Region, if known. */
  storeRegion: StoreRegion
  transferBetween: TransferBetween
}

/** A plan does without a Region that has not answered after this long: callers wait at most twenty seconds. */
const OFFERS_LIMIT_MS = 15 * SECOND_MS
/** Garbage collection has time, but not without limit. */
const LIST_LIMIT_MS = MINUTE_MS

/**
 * Combines several Regions of one account into one backend. A machine is looked up in the Region that its handle names, even if that is no
 * longer configured.
 */
export function acrossRegions({ regions, open, storeRegion, transferBetween }: RegionsOptions): Backend {
  const opened = new Map<string, Backend>()
  const at = (region: string): Backend => {
    const known = opened.get(region) ?? open(region)
    opened.set(region, known)
    return known
  }
  const first = at(regions[0]!)
  const of = (handle: ResourceHandle): Backend => at(regionOf(handle))
  const hasSeveral = regions.length > 1
  const look = { regions, at }
  const transferFrom = async (region: string, signal: AbortSignal): Promise<DataTransfer | undefined> => {
    const store = await storeRegion(signal)
    return store === undefined ? undefined : transferBetween(region, store, signal)
  }
  return {
    ...first,
    places: regions,
    placeOf: regionOf,
    check: async (ctx) =>
      hasSeveral
        ? mergeProblems(
            await Promise.all(
              regions.map(async (region) => ({ region, problems: await at(region).check(ctx) })),
            ),
          )
        : first.check(ctx),
    offers: async (request, ctx, pins) => {
      const found = await inEach(
        { ...look, ctx, limitMs: OFFERS_LIMIT_MS },
        async (backend, region, within) => {
          const own = hasSeveral ? withoutRegion(pins, region, regions[0]!) : pins
          const [transfer, offers] = await Promise.all([
            transferFrom(region, within.signal),
            backend.offers(request, within, own),
          ])
          return offers.map((offer) => inRegion(offer, { region, transfer, hasSeveral }))
        },
      )
      return found.flatMap(({ answer }) => answer)
    },
    launch: async (order, ctx) => {
      // Returns the Region of an order. The planner guarantees that all its offers are in one Region.
      const region = regionOf(order.offers[0])
      const outcome = await at(region).launch(order, ctx)
      return outcome.kind === 'launched' ? { ...outcome, handle: placed(outcome.handle, region) } : outcome
    },
    find: async (attemptId, ctx) =>
      joined(await inEach({ ...look, ctx }, (backend, _, within) => backend.find(attemptId, within))),
    start: (handle, order, ctx) => of(handle).start!(handle, order, ctx),
    drain: (handle, drain, ctx) => of(handle).drain!(handle, drain, ctx),
    observe: (handles, ctx) => observeAll(handles, { at, ctx }),
    prices: (handle, time, ctx) => of(handle).prices!(handle, time, ctx),
    terminate: (resource, ctx) => of(resource).terminate(resource, ctx),
    endAbruptly: (handle, ctx) => of(handle).endAbruptly!(handle, ctx),
    list: (deployment, ctx) =>
      listed({ ...look, ctx }, (backend, within) => backend.list(deployment, within)),
    leftovers: (deployment, ctx) =>
      listed({ ...look, ctx }, (backend, within) => backend.leftovers!(deployment, within)),
    logs: (handle, cursor, ctx) => of(handle).logs!(handle, cursor, ctx),
    ...(first.reserving !== undefined && { reserving: reservingAcross({ regions, at }) }),
  }
}

async function listed(
  look: Look,
  list: (backend: Backend, ctx: CallContext) => Promise<OwnedResource[]>,
): Promise<OwnedResource[]> {
  const found = await inEach({ ...look, limitMs: LIST_LIMIT_MS }, (backend, _, within) =>
    list(backend, within),
  )
  return found.flatMap(({ region, answer }) =>
    answer.map((resource) => ({ ...resource, handle: placed(resource.handle, region) })),
  )
}

/** With its Region, in which the provider is asked about it from then on. */
function placed<T extends { data?: Record<string, string> }>(bought: T, region: string): T {
  return { ...bought, data: { ...bought.data, region } }
}

/** The Region that `placed` noted. */
function regionOf(bought: { data?: Record<string, string> } | undefined): string {
  const region = bought?.data?.['region']
  if (region === undefined)
    throw invalid('a resource was recorded without its Region', 'Submit the job again.')
  return region
}

/** Joins the answers of the Regions about one attempt's machines. "None" holds only if every Region is certain. */
function joined(found: { region: string; answer: FindOutcome }[]): FindOutcome {
  const answers = found.map(({ answer }) => answer)
  const handles = found.flatMap(({ region, answer }) =>
    answer.kind === 'found' ? answer.handles.map((handle) => placed(handle, region)) : [],
  )
  if (handles.length > 0)
    return { kind: 'found', handles: handles.sort((a, b) => a.launchedAtMs - b.launchedAtMs) }
  const unsettled = answers.flatMap((one) => (one.kind === 'unsettled' ? [one.againInMs] : []))
  if (unsettled.length > 0) return { kind: 'unsettled', againInMs: Math.min(...unsettled) }
  const ended = answers.flatMap((one) => (one.kind === 'absent' ? (one.ended ?? []) : []))
  return { kind: 'absent', ended: ended.length > 0 ? ended : undefined }
}

async function observeAll(
  handles: MachineHandle[],
  { at, ctx }: { at: (region: string) => Backend; ctx: CallContext },
): Promise<(Observation | undefined)[]> {
  const regions = [...new Set(handles.map(regionOf))]
  const seen = new Map<MachineHandle, Observation | undefined>()
  await Promise.all(
    regions.map(async (region) => {
      const own = handles.filter((handle) => regionOf(handle) === region)
      const answers = await at(region).observe(own, ctx)
      own.forEach((handle, index) => seen.set(handle, answers[index]))
    }),
  )
  return handles.map((handle) => seen.get(handle))
}

function inRegion(
  offer: Offer,
  {
    region,
    transfer,
    hasSeveral,
  }: { region: string; transfer: DataTransfer | undefined; hasSeveral: boolean },
): Offer {
  return {
    ...placed(offer, region),
    ...(hasSeveral && { region }),
    ...(hasSeveral && offer.pins !== undefined && { pins: withRegion(offer.pins, region) }),
    ...defined({ transfer }),
  }
}
