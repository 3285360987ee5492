/** `npm run purchases -- --help`. */
import { inLanes, seedOptions, seedsOf, withConnection } from '../kit/runs'
import { readOptions } from '../support/options'
import { runPurchases, type PurchaseReport } from './run'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'purchases',
    about:
      'Buys capacity while workers die, answers are lost and histories go back, and compares it with what was really sold.',
    options: {
      ...seedOptions(1_000),
      'at-once': { default: 8, means: 'seeds at a time' },
    },
  })
  if (values === undefined) return
  const beganMs = performance.now()
  const reports = await withConnection((at) =>
    inLanes(seedsOf(values), { atOnce: values['at-once'] }, async (seed) => {
      const report = await runPurchases(at, seed).catch((error: Error) => crashed(seed, error))
      if (report.breaches.length > 0)
        for (const line of [`seed ${seed}`, ...report.breaches.map((one) => `! ${one}`), ...report.story])
          say(line)
      return report
    }),
  )
  for (const line of table(reports)) say(line)
  say(`${reports.length} seeds in ${((performance.now() - beganMs) / 1_000).toFixed(0)} s`)
  if (reports.some(({ breaches }) => breaches.length > 0)) process.exitCode = 1
}

function crashed(seed: number, error: Error): PurchaseReport {
  const breaches = [error.stack ?? error.message]
  return { seed, breaches, story: [], ends: ['crashed'], bought: 0, decidedByPerson: 0 }
}

function table(reports: readonly PurchaseReport[]): string[] {
  const count = (pattern: RegExp): number =>
    reports.reduce((sum, { breaches }) => sum + breaches.filter((one) => pattern.test(one)).length, 0)
  const ends = new Map<string, number>()
  for (const { ends: each } of reports) for (const end of each) ends.set(end, (ends.get(end) ?? 0) + 1)
  const sum = (of: (report: PurchaseReport) => number): number =>
    reports.reduce((all, one) => all + of(one), 0)
  const rows: [string, number][] = [
    ['wishes', sum((one) => one.ends.length)],
    ...[...ends].map(([end, times]): [string, number] => [`  ${end}`, times]),
    ['purchases that were made', sum((one) => one.bought)],
    ['questions to a person', sum((one) => one.decidedByPerson)],
    ['double purchases', count(/times|twice/)],
    ['lost purchases', count(/: bought cr?|and is/)],
    ['unexplained money', count(/the provider|promised/)],
    ['other breaches', count(/stuck|old question|did not buy|no wish|Error/)],
  ]
  return rows.map(([what, times]) => `${String(times).padStart(8)}  ${what}`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

void main()
