import { expect, it } from '@jest/globals'
import { chosen } from '../support/selection'
import { disagreements, liveThrough, type Cap } from './run'

/** `npm run money` lives through ten thousand. */
const [WORLDS] = chosen([800], [600]) as [number]

it('no job, owner or month spends more than it may, and the meter says what the bill says', async () => {
  const counts = new Map<string, number>()
  const breaches: string[] = []
  const caps: Cap[] = []
  for (let seed = 1; seed <= WORLDS; seed++) {
    const report = await liveThrough(seed)
    caps.push(...report.caps)
    breaches.push(...report.breaches, ...disagreementsOfSome(seed, report.reckonings))
    for (const [what, times] of report.counts) counts.set(what, (counts.get(what) ?? 0) + times)
    for (const { reason } of report.jobs) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  expect(breaches).toEqual([])
  // What would make the sentence above say nothing, had it not happened.
  for (const what of [
    'budget-reached',
    'completed',
    'refused by its first plan',
    'refused by month or owner',
  ])
    expect([what, (counts.get(what) ?? 0) > WORLDS / 10]).toEqual([what, true])
  for (const what of [
    'extended',
    'metered by dearest prices',
    'ended by the timer on the machine',
    'drained by a notice',
    'modal: attempts',
    'lambda: attempts',
    'given up in the queue',
    'handed over at a run limit',
    'lost the answer to its launch',
    'ended by gc --alone',
  ])
    expect([what, (counts.get(what) ?? 0) > 1]).toEqual([what, true])
  // Only a machine that our call ends can exceed its cap, and some do.
  expect(new Set(caps.filter(({ microUsd }) => microUsd > 0).map(({ kind }) => kind))).toEqual(
    new Set(['lambda']),
  )
}, 120_000)

/** A process for each world would take most of the time. */
function disagreementsOfSome(seed: number, reckonings: Parameters<typeof disagreements>[0]): string[] {
  return seed % 30 === 0 ? disagreements(reckonings) : []
}
