import { VERDICTS, breachesIn, type Verdict } from './checks'
import { nameOf, type Point } from './plan'
import type { CrashReport } from './run'

/** Prints a run, and the whole of its story where it broke something. */
export function tellCrash(
  { plan, state, verdict, story, lastedMs }: CrashReport,
  isStoryWanted: boolean,
): void {
  const breaches = breachesIn(verdict)
  const isBroken = breaches.length > 0
  say(`${plan.name}: ${state}, ${(lastedMs / 1_000).toFixed(1)} s${isBroken ? ', BROKEN' : ''}`)
  if (!isBroken && !isStoryWanted) return
  for (const line of [...breaches.map((breach) => `! ${breach}`), ...story]) say(`    ${line}`)
}

/** The table, and the exit code: 0 where all that must be none is none, and every point was hit. */
export function printTable(reports: readonly CrashReport[], points: readonly Point[]): void {
  const rows: [string, string | number][] = [
    ['runs', reports.length],
    ['processes that died', sum(reports.map(({ struck }) => struck.length))],
    [
      'runs in which what was planned never came',
      reports.filter(({ struck, plan }) => plan.crashes.length > 0 && struck.length === 0).length,
    ],
    ...coverageOf(reports, points),
    ...(Object.keys(VERDICTS) as (keyof Verdict)[]).map((name): [string, number] => [
      VERDICTS[name],
      sum(reports.map(({ verdict }) => verdict[name].length)),
    ]),
  ]
  const width = Math.max(...rows.map(([words]) => words.length))
  say('')
  for (const [words, count] of rows) say(`${words.padEnd(width)}  ${String(count).padStart(6)}`)
  const broken = reports.filter(({ verdict }) => breachesIn(verdict).length > 0)
  if (broken.length > 0) say(`\nbroken: ${broken.map(({ plan }) => plan.name).join('; ')}`)
  process.exitCode = broken.length === 0 ? 0 : 1
}

function coverageOf(reports: readonly CrashReport[], points: readonly Point[]): [string, number][] {
  const hit = new Set(reports.flatMap(({ struck }) => struck.map(nameOf)))
  const missed = points.map(nameOf).filter((name) => !hit.has(name))
  if (points.length > 0 && missed.length > 0) say(`\nnever hit: ${missed.join('; ')}`)
  return [
    ['points at which a process may die', points.length],
    ['points hit', points.length - missed.length],
  ]
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
