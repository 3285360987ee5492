import { formatDuration, HOUR_MS } from '../../core/time/time'
import { chunked, harness, nothingAround, type Report, type Row } from '../kit/harness'
import { sum, total } from '../kit/table'
import { capsInWords } from './caps'
import { disagreements, liveThrough, type Cap, type Stopped } from './run'

/** Seeds whose hard stops the runner's own program computes again at once. */
const CHUNK = 250

interface Spending extends Report {
  seeds: number
  counts: Record<string, number>
  stopped: Stopped[]
  caps: Cap[]
  /** Hard stops that were computed again. */
  reckonings: number
}

/** Jobs of a month that spend money on random prices, with outages, against the provider's bill. */
export const MONEY = harness({
  seeds: 10_000,
  jobs: 1,
  isQuiet: true,
  options: {},
  around: nothingAround,
  draw: ({ seeds }) => chunked(seeds, CHUNK),
  live: ({ seeds }: ReturnType<typeof chunked>[number]) => spend(seeds),
  table,
})

/** Lives through seeds one after the other, and computes their hard stops again by the runner's own program. */
export async function spend(seeds: readonly number[]): Promise<Spending> {
  const counts: Record<string, number> = {}
  const count = (what: string, times: number): number => (counts[what] = (counts[what] ?? 0) + times)
  const all = { stopped: [] as Stopped[], caps: [] as Cap[], breaches: [] as string[], story: [] as string[] }
  const reckonings: Parameters<typeof disagreements>[0][number][] = []
  let firstBad: number | undefined
  for (const seed of seeds) {
    const report = await liveThrough(seed)
    const isBad = report.breaches.length > 0
    if (isBad) firstBad ??= seed
    for (const [what, times] of report.counts) count(what, times)
    for (const { reason } of report.jobs) count(`jobs: ${reason}`, 1)
    all.stopped.push(...report.stopped)
    all.caps.push(...report.caps)
    reckonings.push(...report.reckonings)
    all.breaches.push(...report.breaches.map((breach) => `seed ${seed}: ${breach}`))
    if (isBad || seeds.length === 1) all.story.push(...report.story)
  }
  const wrong = disagreements(reckonings)
  all.breaches.push(...wrong.slice(0, 10))
  if (wrong.length > 10) all.breaches.push(`${wrong.length - 10} more hard stops come out otherwise`)
  const again = firstBad === undefined ? undefined : ['--seed', `${firstBad}`]
  return { state: 'over', ...all, again, seeds: seeds.length, counts, reckonings: reckonings.length }
}

function table(reports: readonly Spending[]): (Row | string)[] {
  const stopped = reports.flatMap((report) => report.stopped)
  return [
    ...[...total(reports.map(({ counts }) => counts))].sort(),
    ["hard stops, computed again by the runner's own program", sum(reports.map((one) => one.reckonings))],
    ['seeds', sum(reports.map(({ seeds }) => seeds))],
    'Of its budget a job that was ended by it had used, and was left with so much time at the dearest price:',
    ...GROUPS.map(([name, isMeant]) => lineOf(name, stopped.filter(isMeant))),
    ...capsInWords(reports.flatMap(({ caps }) => caps)),
  ]
}

const GROUPS: [string, (one: Stopped) => boolean][] = [
  ['all', () => true],
  ['nothing had failed', ({ isCalm }) => isCalm],
  ['and the budget does for two hours or more', ({ isCalm, wholeMs }) => isCalm && wholeMs >= 2 * HOUR_MS],
]

function lineOf(name: string, jobs: Stopped[]): string {
  if (jobs.length === 0) return `  ${name}: no jobs`
  const used = jobs.map(({ usedPart }) => usedPart).sort((a, b) => a - b)
  const left = jobs.map(({ leftMs }) => leftMs).sort((a, b) => a - b)
  const percent = (part: number): string =>
    `${(used[Math.floor(part * (used.length - 1))]! * 100).toFixed(1)} %`
  const time = (part: number): string => formatDuration(left[Math.floor(part * (left.length - 1))]!)
  return `  ${name} (${jobs.length} jobs): least ${percent(0)}, median ${percent(0.5)}, most ${percent(1)}; left median ${time(0.5)}, most ${time(1)}`
}
