import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { AttemptDocuments } from '../../../activities/documents'
import type { SettleInput, Settlement } from '../../../core/activities'
import { spendOver } from '../../../core/money/meter'
import { microUsd } from '../../../core/money/money'
import { HOUR_MS } from '../../../core/time/time'
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
