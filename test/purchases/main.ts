/** `npm run purchases -- --help`. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { inLanes, seedOptions, seedsOf, withConnection } from '../kit/runs'
import { readOptions } from '../support/options'
import { runPurchases, type PurchaseReport } from './run'

/** Seeds of one process: a worker that has ended keeps its workflows in memory. */
const BATCH = 100

async function main(): Promise<void> {
  const values = readOptions({
    name: 'purchases',
    about:
      'Buys capacity while workers die, answers are lost and histories go back, and compares it with what was really sold.',
    options: {
      ...seedOptions(1_000),
      'at-once': { default: 8, means: 'seeds at a time' },
      json: { default: false, means: 'print the reports instead of their table' },
    },
  })
  if (values === undefined) return
  const beganMs = performance.now()
  const reports = values.count > BATCH ? await inBatches(values) : await inThisProcess(values)
  if (values.json) return say(JSON.stringify(reports))
  for (const { seed, breaches, story } of reports)
    if (breaches.length > 0)
      for (const line of [`seed ${seed}`, ...breaches.map((one) => `! ${one}`), ...story]) say(line)
  for (const line of table(reports)) say(line)
  say(`${reports.length} seeds in ${((performance.now() - beganMs) / 1_000).toFixed(0)} s`)
  if (reports.some(({ breaches }) => breaches.length > 0)) process.exitCode = 1
}

interface Seeds {
  from: number
  count: number
  'at-once': number
}

function inThisProcess(seeds: Seeds): Promise<PurchaseReport[]> {
  return withConnection((at) =>
    inLanes(seedsOf(seeds), { atOnce: seeds['at-once'] }, (seed) =>
      runPurchases(at, seed).catch((error: Error) => crashed(seed, error)),
    ),
  )
}

/** One process after another. */
async function inBatches({ from, count, 'at-once': atOnce }: Seeds): Promise<PurchaseReport[]> {
  const reports: PurchaseReport[] = []
  for (let done = 0; done < count; done += BATCH) {
    const seeds = ['--from', `${from + done}`, '--count', `${Math.min(BATCH, count - done)}`]
    const args = [...process.execArgv, '--', ...seeds, '--at-once', `${atOnce}`, '--json']
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 28 })
    const batch = JSON.parse(stdout) as PurchaseReport[]
    reports.push(...batch)
    const breaches = batch.reduce((sum, one) => sum + one.breaches.length, 0)
    process.stderr.write(
      `${reports.length} of ${count} seeds, ${breaches} breaches in the last ${batch.length}\n`,
    )
  }
  return reports
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
