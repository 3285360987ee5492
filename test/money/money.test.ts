import { expect, it } from '@jest/globals'
import { chosen } from '../support/selection'
import { spend } from './harness'

/** `npm run proof -- money` lives through ten thousand. */
const [WORLDS] = chosen([800], [600]) as [number]

it('no job, owner or month spends more than it may, and the meter says what the bill says', async () => {
  const { breaches, counts, caps } = await spend(Array.from({ length: WORLDS }, (_, index) => index + 1))
  expect(breaches).toEqual([])
  // What would make the sentence above say nothing, had it not happened.
  for (const what of [
    'jobs: budget-reached',
    'jobs: completed',
    'jobs: refused by its first plan',
    'jobs: refused by month or owner',
  ])
    expect([what, (counts[what] ?? 0) > WORLDS / 10]).toEqual([what, true])
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
    expect([what, (counts[what] ?? 0) > 1]).toEqual([what, true])
  // Only a machine that our call ends can exceed its cap, and some do.
  expect(new Set(caps.filter(({ microUsd }) => microUsd > 0).map(({ kind }) => kind))).toEqual(
    new Set(['lambda']),
  )
}, 120_000)
