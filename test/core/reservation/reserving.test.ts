import { expect, it } from '@jest/globals'
import { CHECKPOINT_PART_BYTES } from '../../../core/job/checkpoint'
import { isTaggedFor, type OwnedReservation } from '../../../core/reservation/reservation'
import { RESERVATION_ID_PATTERN, shareOfLimit } from '../../../core/reservation/reserving'

it.each([
  // A quarter of what is left, rounded down.
  [100, 20, 20],
  [101, 20, 20],
  [100, 100, 0],
  [100, 120, 0],
])(
  'of a limit of %d with %d spent, one of four places takes %d with it',
  (spendMaxMicroUsd, spentMicroUsd, share) => {
    expect(shareOfLimit({ spendMaxMicroUsd }, { total: 4, count: 1, spentMicroUsd })).toBe(share)
  },
)

it('each place of a limit counts, and no limit is not shared', () => {
  expect(shareOfLimit({ spendMaxMicroUsd: 100 }, { total: 4, count: 3, spentMicroUsd: 20 })).toBe(60)
  expect(shareOfLimit({}, { total: 4, count: 1, spentMicroUsd: 20 })).toBeUndefined()
})

it.each<[string, boolean]>([
  ['res-a', true],
  [`res-${'a'.repeat(40)}`, true],
  [`res-${'a'.repeat(41)}`, false],
  ['res-', false],
  ['xres-a', false],
  ['res-a/b', false],
  ['res-A', false],
])('%j is the id of a reservation: %s', (id, isLegal) => {
  expect(RESERVATION_ID_PATTERN.test(id)).toBe(isLegal)
})

const BOUGHT = { kind: 'prepaid', intent: 'res-a', deployment: 'dep-a', isShared: false } as const

it.each<[Partial<OwnedReservation>, boolean]>([
  [{}, true],
  [{ intent: 'res-b' }, false],
  [{ deployment: 'dep-b' }, false],
  [{ kind: 'hourly' }, false],
  // Another account wrote the tags of a reservation that it shares.
  [{ isShared: true }, false],
])('a reservation with %j is the one that was bought: %s', (difference, isBought) => {
  const one = { ...BOUGHT, ...difference } as OwnedReservation
  expect(isTaggedFor(one, BOUGHT)).toBe(isBought)
})

it('a checkpoint is uploaded in parts of 16 MiB', () => {
  expect(CHECKPOINT_PART_BYTES).toBe(16_777_216)
})
