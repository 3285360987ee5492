import { describe, expect, it } from '@jest/globals'
import { AttemptDocuments } from '../../activities/documents'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { stoppingMs } from '../../core/time/timing'
import { ensureDeployment } from '../../storage/deployment'
import type { WorkerConfig } from '../../service/config'
import { endExpiredMachines } from '../../service/garbage'
import { QUICK, SPOT } from '../activities/place'
import { makeOrder } from '../backends/orders'
import { RealClock } from '../backends/scripted/clock'
import { MemoryStore } from '../backends/scripted/memory-store'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { ScriptedWorld } from '../backends/scripted/world'

const TIMING = { ...QUICK, leaseMs: HOUR_MS }
/** After a renewal, everything has certainly stopped this much later. */
const OVER_MS = HOUR_MS + stoppingMs(TIMING) + CLOCK_SLACK_MS

/** What `crucible gc --alone` does on a host whose clock is ahead of the store's. */
async function collect({
  aheadMs,
  renewedMsAgo,
}: {
  aheadMs: number
  renewedMsAgo: number
}): Promise<unknown> {
  let storeMs = (): number => Date.now() - aheadMs
  const store = new MemoryStore(() => storeMs())
  const world = new ScriptedWorld({
    clock: new RealClock(),
    store,
    wares: [SPOT],
    behave: () => ({ neverStarts: true }),
  })
  const deployment = await ensureDeployment(store, () => 'dep-0123456789')
  const order = { ...makeOrder({ store, offers: world.offers({}), timing: TIMING }), deployment }
  const renewedAtMs = storeMs() - renewedMsAgo
  const now = storeMs
  storeMs = () => renewedAtMs
  const documents = new AttemptDocuments(store, order, storeMs)
  await documents.putOrder(order.runner)
  world.buy(order)
  await documents.putLease({ seq: 1, answersBeat: 1, ttlMs: HOUR_MS })
  storeMs = now
  const read = { create: async () => createScriptedBackend(world), needsGrants: false, isRemote: false }
  const config = { backends: new Map([['scripted', read]]), grants: {}, discounts: new Map() }
  const signal = AbortSignal.timeout(10_000)
  const run = await endExpiredMachines(config as unknown as WorkerConfig, { store, isDryRun: false, signal })
  world.dispose()
  expect(Math.abs(run.clockAheadMs - aheadMs)).toBeLessThan(MINUTE_MS)
  return run.verdicts
}

describe('a collection without a server, on a host with clock skew', () => {
  it.each([HOUR_MS, -HOUR_MS])('counts by the clock of the store (ahead by %i ms)', async (aheadMs) => {
    expect(await collect({ aheadMs, renewedMsAgo: OVER_MS - MINUTE_MS })).toMatchObject([{ action: 'kept' }])
    expect(await collect({ aheadMs, renewedMsAgo: OVER_MS + MINUTE_MS })).toMatchObject([{ action: 'ended' }])
  })
})
