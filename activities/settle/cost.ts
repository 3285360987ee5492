import type { Backend } from '../../backends/backend'
import type { SettleInput, Settlement } from '../../core/activities'
import type { Beat, Billing } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { spend } from '../../core/money/meter'
import type { Observation } from '../../core/observation'
import type { Order } from '../../core/job/plan'
import { isPlausible, startMaxMs, toldAtMs } from '../../core/time/machine-age'
import type { AttemptDocuments } from '../documents'
import { meterEnded } from '../money/metering'

/** A machine of an ended attempt, with the time that is billed. */
export interface EndedMachine {
  handle: MachineHandle
  /** Start of billing; missing if the machine was never billed. */
  fromAtMs: number | undefined
  toAtMs: number
}

/** The machines of an ended attempt, and the provider's last report on each before its end. */
interface Ended {
  machines: MachineHandle[]
  lasts: Observation[]
  /** Whether its runner has reported. */
  hasSpoken: boolean
  /** The last beat of the first machine, which worked on the attempt. */
  beat: Beat | undefined
  /** The first machine certainly ran up to this time. */
  ranUntilMs: number
  nowMs: number
}

/** Facts about the beginning of a machine's billing. */
interface Begun {
  handle: MachineHandle
  /** The provider's last report before its end. */
  last: Observation | undefined
  recorded: Billing | undefined
  /** Whether its runner has reported. */
  hasSpoken: boolean
}

/**
 * Returns when the billing of a machine began; undefined for one that never left its provider's queue. A machine that left the queue unseen
 * and then worked or was seen running counts from its launch. So does one that is gone from the queue without an explanation of the
 * provider, because it may have run meanwhile.
 */
function billedFrom({ runner }: Order, { handle, last, recorded, hasSpoken }: Begun): number | undefined {
  const { launchedAtMs } = handle
  if (runner.queueMs === undefined) return launchedAtMs
  const known = last?.billedFromAtMs ?? recorded?.fromAtMs ?? undefined
  const hasBegun = hasSpoken || last?.state === 'running' || last?.state === 'stopping'
  if (known !== undefined || hasBegun) return known ?? launchedAtMs
  if (last?.state === 'queued' || last?.cause === 'failed-to-start') return undefined
  const isLost = last?.state === 'gone' && (last.cause ?? 'unknown') === 'unknown'
  const wasQueued = recorded !== undefined && !isLost
  return wasQueued ? undefined : launchedAtMs
}

/** The billed times of an attempt's machines. */
export function timesBilled(
  { order }: SettleInput,
  documents: AttemptDocuments,
  { machines, lasts, hasSpoken, beat, nowMs, ranUntilMs }: Ended,
): Promise<EndedMachine[]> {
  const withOwnTime = async ({ fromAtMs, ...ended }: EndedMachine): Promise<EndedMachine> => {
    if (beat === undefined || fromAtMs === undefined) return { fromAtMs, ...ended }
    const dated = { fromAtMs, toAtMs: ended.toAtMs, startMaxMs: startMaxMs(order.runner) }
    if (isPlausible(dated, { beat, sinceBeatMs: 0 })) return { fromAtMs, ...ended }
    const sinceBeatMs = await documents.sinceBeatMs(ended.handle, ended.toAtMs)
    if (sinceBeatMs === undefined) return { fromAtMs, ...ended }
    const startMs = await documents.startMs()
    // A job could forge beats, but not the time that the watch has measured.
    const leastMs = (await documents.readLease())?.lease?.metered?.toAtMs ?? 0
    const toAtMs = Math.max(toldAtMs(dated, { beat, sinceBeatMs, startMs }), leastMs)
    return { ...ended, fromAtMs, toAtMs }
  }
  return Promise.all(
    machines.map(async (handle, index) => {
      const last = lasts[index]
      const recorded = order.runner.queueMs === undefined ? undefined : await documents.readBilling(handle.id)
      const ended = {
        handle,
        fromAtMs: billedFrom(order, { handle, last, recorded, hasSpoken }),
        toAtMs: Math.max(last?.endedAtMs ?? nowMs, index === 0 ? ranUntilMs : 0),
      }
      return index === 0 ? withOwnTime(ended) : ended
    }),
  )
}

/**
 * A machine that came, worked and ended while the launch's answer was lost is billed too: at most from its order to its runner's
 * last report, at the highest price that the order allows.
 */
export async function costOfUnseen(
  { order, timing }: SettleInput,
  documents: AttemptDocuments,
  lastWordAtMs: number | undefined,
): Promise<number> {
  const orderedAtMs = await documents.orderedAtMs()
  if (orderedAtMs === undefined || lastWordAtMs === undefined) return 0
  const toAtMs = lastWordAtMs + timing.powerOffMs
  const usage = {
    fromAtMs: orderedAtMs,
    toAtMs,
    priceMicroUsdPerHour: order.priceMaxMicroUsdPerHour,
    billedAtLeastMs: Math.max(0, ...order.offers.map(({ billedAtLeastMs = 0 }) => billedAtLeastMs)),
    billedInStepsOfMs: order.billedInStepsOfMs,
  }
  return spend(usage, toAtMs)
}

/** Returns the cost of all machines, including duplicates, which are billed even if they did no work. */
export async function costOfAll(
  backend: Backend,
  { order }: SettleInput,
  { machines, signal }: { machines: EndedMachine[]; signal: AbortSignal },
): Promise<Pick<Settlement, 'costMicroUsd' | 'duplicatesMicroUsd' | 'metering'>> {
  const billed = machines.flatMap(({ fromAtMs, ...one }) =>
    fromAtMs === undefined ? [] : { ...one, fromAtMs },
  )
  const all = await Promise.all(billed.map((one) => meterEnded(backend, { ...one, order }, { signal })))
  const [first] = all
  const costOf = (some: typeof all): number => some.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0)
  const duplicates = all.filter((_, index) => billed[index]!.handle.id !== machines[0]?.handle.id)
  return {
    costMicroUsd: costOf(all),
    duplicatesMicroUsd: duplicates.length > 0 ? costOf(duplicates) : undefined,
    metering: first ? first.metering : undefined,
  }
}
