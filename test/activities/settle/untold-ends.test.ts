import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { AttemptDocuments } from '../../../activities/documents'
import type { SettleInput, Settlement } from '../../../core/activities'
import { spendOver } from '../../../core/money/meter'
import { microUsd } from '../../../core/money/money'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import type { WorldOptions } from '../../backends/scripted/world'
import { perform, Place, QUICK } from '../place'

/** A machine is shown as stopping for this long after the call that ends it. */
const STOPS_FOR_MS = 400
const UNTOLD: Partial<WorldOptions> = {
  stopsForMs: STOPS_FOR_MS,
  capabilities: { billsUntil: 'terminate', pace: { goneConfirmMs: 200 } },
}

let place: Place

beforeEach(async () => {
  place = await Place.make(UNTOLD)
})
afterEach(() => place.dispose())

const inputOf = (launched = place.launched()): SettleInput => ({
  ...launched,
  timing: { ...QUICK, powerOffMs: 0 },
  windowMs: 0,
  end: null,
  drainReason: null,
  recordSeq: 4,
})
const settle = (input: SettleInput): Promise<Settlement> => perform(place.verbs(), 'settle', input)
const firstEndMs = (): number => place.world.callsOf('terminate')[0]!.atMs

describe('the cost of a machine that a call ends, whose provider does not report its end', () => {
  it('is counted until that call was answered, not until the machine was gone', async () => {
    const { endedAtMs } = await settle(inputOf())
    const { stoppingSinceMs } = place.world.machines[0]!
    expect(endedAtMs).toBeGreaterThanOrEqual(stoppingSinceMs!)
    expect(endedAtMs).toBeLessThan(stoppingSinceMs! + STOPS_FOR_MS)
  })

  it('is counted until a later call if the first had no effect', async () => {
    place.world.faults.add('terminate', { kind: 'ignored' }, { times: 2 })
    const { endedAtMs } = await settle(inputOf())
    expect(endedAtMs).toBeGreaterThanOrEqual(place.world.machines[0]!.stoppingSinceMs!)
    expect(endedAtMs).toBeGreaterThan(firstEndMs())
  })

  it('is the same for a settlement that is repeated an hour later', async () => {
    const input = inputOf()
    const first = await settle(input)
    place.world.forgetEnded()
    place.aheadMs = HOUR_MS
    const { endedAtMs, costMicroUsd } = await settle({ ...input, recordSeq: 5 })
    expect([endedAtMs, costMicroUsd]).toEqual([first.endedAtMs, first.costMicroUsd])
  })

  describe('if another process ended it hours ago', () => {
    it('is counted until its end on record', async () => {
      const input = inputOf()
      const [machine] = place.world.machines
      machine!.handle.launchedAtMs -= HOUR_MS
      machine!.end('ended')
      const endedAtMs = machine!.endedAtMs!
      await new AttemptDocuments(place.store, input.order, place.now).putEnded(machine!.handle, endedAtMs)
      place.world.forgetEnded()
      place.aheadMs = 10 * HOUR_MS
      const settlement = await settle({ ...input, handle: machine!.handle })
      expect(settlement.endedAtMs).toBe(endedAtMs)
      expect(settlement.costMicroUsd).toBe(spendOver(endedAtMs - machine!.handle.launchedAtMs, microUsd(360)))
    })

    it('is counted until its end on record while the provider is silent', async () => {
      const input = inputOf()
      const endedAtMs = input.handle!.launchedAtMs + HOUR_MS
      await new AttemptDocuments(place.store, input.order, place.now).putEnded(input.handle!, endedAtMs)
      place.aheadMs = 24 * HOUR_MS
      place.world.faults.add('find', { kind: 'throws', failure: { class: 'transient', message: 'down' } })
      expect((await settle(input)).endedAtMs).toBe(endedAtMs)
    })

    it('is counted until our own call if the machine was still billed after the end on record', async () => {
      const input = inputOf()
      await new AttemptDocuments(place.store, input.order, place.now).putEnded(
        input.handle!,
        input.handle!.launchedAtMs,
      )
      const { endedAtMs } = await settle(input)
      expect(endedAtMs).toBeGreaterThanOrEqual(firstEndMs())
    })
  })
})

/** How far the wall clock was set between launch and end. */
const STEPS = [
  ['2 h ahead', 2 * HOUR_MS],
  ['2 h back', -2 * HOUR_MS],
  ['30 d ahead', 30 * DAY_MS],
] as const

describe.each(STEPS)('the cost of a machine under whose life the wall clock was set %s', (_, byMs) => {
  const ranMs = HOUR_MS

  it.each(['the workers', 'the provider too'])(
    'is counted by its own time, with the clock of %s',
    async (whose) => {
      const input = inputOf()
      const { order } = input
      const [machine] = place.world.machines
      // It was launched an hour ago.
      machine!.handle.launchedAtMs -= ranMs
      const { launchedAtMs } = machine!.handle
      const phases = [{ name: 'starting' as const, startedAtMs: launchedAtMs + 1_000, durationMs: 0 }]
      await place.beat(order, { uptimeMs: ranMs - 1_000, phases })
      place.aheadMs = byMs
      if (whose === 'the provider too') {
        machine!.end('ended')
        machine!.endedAtMs! += byMs
      }
      const { costMicroUsd, endedAtMs } = await settle({ ...input, handle: machine!.handle })
      expect(costMicroUsd).toBeGreaterThanOrEqual(microUsd(360))
      expect(costMicroUsd).toBeLessThan(1.02 * microUsd(360))
      expect(endedAtMs! - launchedAtMs).toBeLessThan(1.02 * ranMs)
      // A repeated settlement counts the same.
      const again = await settle({ ...input, handle: machine!.handle, recordSeq: 5 })
      expect([again.endedAtMs, again.costMicroUsd]).toEqual([endedAtMs, costMicroUsd])
    },
  )
})

it('counts the time before the start by the store, if the wall clock was set then', async () => {
  const input = inputOf()
  const { order } = input
  const documents = new AttemptDocuments(place.store, order, place.now)
  await documents.putOrder(order.runner)
  await documents.putClaim('machine')
  const [machine] = place.world.machines
  machine!.handle.launchedAtMs -= 12 * MINUTE_MS
  await place.age(layout.order(order.jobId, order.attempt), 12 * MINUTE_MS)
  await place.age(layout.claim(order.jobId, order.attempt), 10 * MINUTE_MS)
  place.aheadMs = 30 * DAY_MS
  const phases = [{ name: 'starting' as const, startedAtMs: place.now() - 10 * MINUTE_MS, durationMs: 0 }]
  await place.beat(order, { uptimeMs: 10 * MINUTE_MS, phases })
  const { costMicroUsd } = await settle({ ...input, handle: machine!.handle })
  expect(costMicroUsd).toBeGreaterThanOrEqual(microUsd(72))
  expect(costMicroUsd).toBeLessThan(1.02 * microUsd(72))
})

it('counts what the watch has measured, whatever the beats of a machine claim', async () => {
  const input = inputOf()
  const { order } = input
  const documents = new AttemptDocuments(place.store, order, place.now)
  const [machine] = place.world.machines
  machine!.handle.launchedAtMs -= 5 * HOUR_MS
  const metered = { toAtMs: place.now() - MINUTE_MS, costMicroUsd: 1, priceMicroUsdPerHour: 1 }
  await documents.putLease({ seq: 1, answersBeat: 1, ttlMs: 1_000, metered })
  await place.beat(order, { uptimeMs: 0 })
  const { costMicroUsd } = await settle({ ...input, handle: machine!.handle })
  expect(costMicroUsd).toBeGreaterThanOrEqual(4.9 * microUsd(360))
})

describe('a machine that beat for an hour, was silent for ten and is still billed', () => {
  it('costs eleven', async () => {
    const input = inputOf()
    const [machine] = place.world.machines
    machine!.handle.launchedAtMs -= 11 * HOUR_MS
    await place.beat(input.order, { uptimeMs: HOUR_MS })
    await place.age(layout.beat(input.order.jobId, input.order.attempt), 10 * HOUR_MS)
    const { costMicroUsd } = await settle({ ...input, handle: machine!.handle })
    expect(costMicroUsd).toBeGreaterThanOrEqual(11 * microUsd(360))
  })
})
