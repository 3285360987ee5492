import { harness, seeded, type Case, type Row } from '../kit/harness'
import { withConnection } from '../kit/server'
import { sum, tally } from '../kit/table'
import type { TestConnection } from '../support/temporal'
import { runPurchases, type PurchaseReport } from './run'

/** Reservations of one or two deployments of an account, at a scripted market. */
export const PURCHASES = harness({
  seeds: 1_000,
  seedsPerProcess: 100,
  jobs: 8,
  isQuiet: true,
  options: {},
  around: (_, use) => withConnection(use),
  draw: ({ seeds }) => seeded(seeds, () => ({})),
  live: ({ seed }: Case & { seed: number }, at: TestConnection) => runPurchases(at, seed),
  table,
})

function table(reports: readonly PurchaseReport[]): Row[] {
  const count = (pattern: RegExp): number =>
    sum(reports.map(({ breaches }) => breaches.filter((one) => pattern.test(one)).length))
  const ends = tally(reports.flatMap((report) => report.ends))
  return [
    ['wishes', sum(reports.map((one) => one.ends.length))],
    ...[...ends].map(([end, times]): Row => [`  ${end}`, times]),
    ['purchases that were made', sum(reports.map(({ bought }) => bought))],
    ['questions to a person', sum(reports.map(({ decidedByPerson }) => decidedByPerson))],
    ['double purchases', count(/times|twice/)],
    ['lost purchases', count(/: bought cr?|and is/)],
    ['unexplained money', count(/the provider|promised/)],
    ['other breaches', count(/stuck|old question|did not buy|no wish|Error/)],
  ]
}
