import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { endMachine } from '../../../activities/machine/backend-machines'
import type { Backend } from '../../../backends/backend'
import type { SettleInput, Settlement } from '../../../core/activities'
import { HOUR_MS } from '../../../core/time/time'
import { perform, Place, QUICK } from '../place'

let place: Place

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

describe('a machine that works no more, and is billed until it is ended', () => {
  /** Its provider reports every living machine as unusable. */
  const unusable = (): Backend => ({
    ...place.backend,
    observe: async (handles, ctx) =>
      (await place.backend.observe(handles, ctx)).map((look) =>
        look!.state === 'gone' ? look : { state: 'gone', cause: 'failed-to-start', isStillBilled: true },
      ),
  })

  it('is ended before its end is believed, again if that had no effect, and is not waited for', async () => {
    const pace = { goneConfirmMs: 100 }
    await place.dispose()
    place = await Place.make({ capabilities: { billsUntil: 'terminate', pace } })
    const failure = { class: 'capacity', message: 'The machine never started.' } as const
    const end = { kind: 'failed', isLaunched: true, failure } as const
    const input: SettleInput = {
      ...place.launched(),
      timing: QUICK,
      windowMs: HOUR_MS,
      end,
      drainReason: null,
      recordSeq: 4,
    }
    place.world.faults.add('terminate', { kind: 'ignored' }, { times: 2 })
    const settlement: Settlement = await perform(place.verbs({ backend: unusable() }), 'settle', input)
    expect([place.lives(), settlement.end]).toEqual([['gone'], end])
    // Twice in vain, once with effect, and at least once for its leftovers after its end was confirmed.
    const ends = place.world.callsOf('terminate').map(({ atMs }) => atMs)
    expect(ends.length).toBeGreaterThanOrEqual(4)
    expect(ends.at(-1)! - ends[2]!).toBeGreaterThanOrEqual(pace.goneConfirmMs - 1)
  })

  it('gets its time to save if its attempt was lost: it may work', async () => {
    await place.dispose()
    place = await Place.make({ capabilities: { billsUntil: 'terminate' } })
    const windowMs = 300
    const input: SettleInput = {
      ...place.launched(),
      timing: QUICK,
      windowMs,
      end: null,
      drainReason: null,
      recordSeq: 4,
    }
    const askedAtMs = place.now()
    await perform(place.verbs({ backend: unusable() }), 'settle', input)
    const [first] = place.world.callsOf('terminate')
    expect(first!.atMs - askedAtMs).toBeGreaterThanOrEqual(windowMs)
  })

  it('is ended as well if it is a duplicate', async () => {
    const { handle } = place.launched()
    place.world.faults.add('terminate', { kind: 'ignored' }, { times: 1 })
    const { signal } = new AbortController()
    await endMachine(unusable(), handle, { everyMs: 1, signal })
    expect(place.lives()).toEqual(['gone'])
  })
})
