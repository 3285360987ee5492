import type { Backend } from '../../backends/backend'
import type { SettleInput, Settlement } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import { spend } from '../../core/meter'
import type { Observation } from '../../core/observation'
import type { AttemptDocuments } from '../documents'
import { meterEnded } from '../metering'

/** The machines of an ended attempt, and the provider's last report on each. */
interface Ended {
  machines: MachineHandle[]
  lasts: Observation[]
  nowMs: number
  signal: AbortSignal
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
  const issued = await documents.readOrder()
  if (issued === undefined || lastWordAtMs === undefined) return 0
  const toAtMs = lastWordAtMs + timing.powerOffMs
  const usage = {
    fromAtMs: issued.issuedAtMs,
    toAtMs,
    priceMicroUsdPerHour: order.priceMaxMicroUsdPerHour,
    billedAtLeastMs: Math.max(0, ...order.offers.map(({ billedAtLeastMs = 0 }) => billedAtLeastMs)),
  }
  return spend(usage, toAtMs)
}

/** Duplicates too: they are billed even if they did no work. */
export async function costOfAll(
  backend: Backend,
  { order }: SettleInput,
  { machines, lasts, nowMs, signal }: Ended,
): Promise<Pick<Settlement, 'costMicroUsd' | 'metering'>> {
  const all = await Promise.all(
    machines.map((handle, index) => {
      const toAtMs = lasts[index]?.endedAtMs ?? nowMs
      return meterEnded(backend, { handle, order, fromAtMs: handle.launchedAtMs, toAtMs }, { signal })
    }),
  )
  const [first] = all
  return {
    costMicroUsd: all.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0),
    ...(first && { metering: first.metering }),
  }
}
