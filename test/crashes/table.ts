import { SECOND_MS } from '../../core/time/time'
import type { BlackoutReport } from './blackout'
import { OUTAGES, type Outage } from './blackout-plan'
import { PROVIDER_NAMES } from '../clouds/providers'
import { ATTACHED_WITHIN_MS, VERDICTS, breachesIn, type Verdict } from './checks'
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

/** The table; the exit code becomes 1 where something is not none that must be. */
export function printTable(reports: readonly CrashReport[], points: readonly Point[]): void {
  const rows: [string, string | number][] = [
    ['runs', reports.length],
    ['processes that died', sum(reports.map(({ struck }) => struck.length))],
    [
      'runs in which what was planned never came',
      reports.filter(({ struck, plan }) => plan.crashes.length > 0 && struck.length === 0).length,
    ],
    ...coverageOf(reports, points),
    ...countsOf(reports),
  ]
  printRows(rows)
  const broken = reports.filter(({ verdict }) => breachesIn(verdict).length > 0)
  if (broken.length > 0) say(`\nbroken: ${broken.map(({ plan }) => plan.name).join('; ')}`)
  if (broken.length > 0) process.exitCode = 1
}

/** Prints a blackout: its jobs that broke something, in words. */
export function tellBlackout({ plan, jobs, attachedAfterMs, lastedMs }: BlackoutReport): void {
  const slowest = Math.max(0, ...attachedAfterMs)
  const broken = jobs.filter(({ verdict }) => breachesIn(verdict).length > 0)
  const down = plan.downMs.map(seconds).join(', ')
  say(
    `seed ${plan.seed} at ${plan.provider.name}, ${plan.outage} down for ${down}: ${jobs.length} jobs, ${attachedAfterMs.length} at work, the last taken up after ${seconds(slowest)}, ${seconds(lastedMs)}${broken.length > 0 ? ', BROKEN' : ''}`,
  )
  for (const { state, verdict } of broken)
    for (const breach of breachesIn(verdict)) say(`    ! ${state}: ${breach}`)
}

export function printBlackouts(reports: readonly BlackoutReport[], hourMs: number): void {
  const jobs = reports.flatMap((report) => report.jobs)
  const after = reports.flatMap(({ attachedAfterMs }) => attachedAfterMs).sort((a, b) => a - b)
  const late = after.filter((ms) => ms > ATTACHED_WITHIN_MS).length
  printRows([
    ['an hour is', seconds(hourMs)],
    ...OUTAGES.map((outage): [string, number] => [
      OUTAGE_WORDS[outage],
      reports.filter(({ plan }) => plan.outage === outage).length,
    ]),
    ...PROVIDER_NAMES.map((name): [string, number] => [
      `blackouts at ${name}`,
      reports.filter(({ plan }) => plan.provider.name === name).length,
    ]),
    ['jobs', jobs.length],
    ['attempts at work when the server was back', after.length],
    ['re-attached after, median', seconds(after[Math.floor(after.length / 2)] ?? 0)],
    ['re-attached after, 95 of 100', seconds(after[Math.floor(after.length * 0.95)] ?? 0)],
    ['re-attached after, the last', seconds(after.at(-1) ?? 0)],
    [`re-attached later than ${seconds(ATTACHED_WITHIN_MS)}`, late],
    ...countsOf(jobs),
  ])
  // Where none was at work nothing is shown.
  const isBroken =
    late > 0 || after.length === 0 || jobs.some(({ verdict }) => breachesIn(verdict).length > 0)
  process.exitCode = isBroken ? 1 : 0
}

const OUTAGE_WORDS: Readonly<Record<Outage, string>> = {
  server: 'blackouts of the server',
  all: 'blackouts of the server and all workers',
  restarts: 'rows of restarts of the server',
}

function countsOf(reports: readonly { verdict: Verdict }[]): [string, number][] {
  return (Object.keys(VERDICTS) as (keyof Verdict)[]).map((name) => [
    VERDICTS[name],
    sum(reports.map(({ verdict }) => verdict[name].length)),
  ])
}

function printRows(rows: readonly (readonly [string, string | number])[]): void {
  const width = Math.max(...rows.map(([words]) => words.length))
  say('')
  for (const [words, count] of rows) say(`${words.padEnd(width)}  ${String(count).padStart(8)}`)
}

function seconds(ms: number): string {
  return `${(ms / SECOND_MS).toFixed(1)} s`
}

function coverageOf(reports: readonly CrashReport[], points: readonly Point[]): [string, number][] {
  const hit = new Set(reports.flatMap(({ struck }) => struck.map(nameOf)))
  const tried = new Set(reports.flatMap(({ plan }) => plan.crashes.slice(0, 1).map(nameOf)))
  const names = points.map(nameOf)
  const missed = names.filter((name) => tried.has(name) && !hit.has(name))
  missed.forEach((name) => say(`tried, and never came: ${name}`))
  return [
    ['points at which a process may die', names.length],
    ['points tried', names.filter((name) => tried.has(name)).length],
    ['points tried that never came', missed.length],
    ['points hit, second deaths included', names.filter((name) => hit.has(name)).length],
  ]
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
