import type { Row } from '../../kit/harness'
import { sum } from '../../kit/table'
import { VERDICTS, type Verdict } from '../checks'
import { nameOf, type LivedCalls, type Point } from '../plan'
import type { CrashReport } from '../run'

/** What came of runs with crashes, and which of the points they have tried. */
export function tableOf(
  reports: readonly CrashReport[],
  pointsIn: (seen: readonly CrashReport[]) => readonly Point[],
): (Row | string)[] {
  return [
    ['runs', reports.length],
    ['processes that died', sum(reports.map(({ struck }) => struck.length))],
    [
      'runs in which what was planned never came',
      reports.filter(({ struck, plan }) => plan.crashes.length > 0 && struck.length === 0).length,
    ],
    ...coverageOf(reports, pointsIn(reports)),
    ...countsOf(reports),
  ]
}

/** The breaches by their kinds. */
export function countsOf(reports: readonly { verdict: Verdict }[]): Row[] {
  return (Object.keys(VERDICTS) as (keyof Verdict)[]).map((name) => [
    VERDICTS[name],
    sum(reports.map(({ verdict }) => verdict[name].length)),
  ])
}

/** The calls that each life was seen to make where nothing crashed. */
export function seenIn(reports: readonly CrashReport[]): LivedCalls {
  const undisturbed = reports.filter(({ plan }) => plan.crashes.length === 0)
  return new Map(undisturbed.map(({ plan, calls }) => [plan.life, calls]))
}

export function pointsWith(text: string, all: readonly Point[]): Point[] {
  const points = all.filter((point) => nameOf(point).includes(text))
  if (points.length === 0) throw new Error(`No point has "${text}" in its name.`)
  return points
}

function coverageOf(reports: readonly CrashReport[], points: readonly Point[]): (Row | string)[] {
  const hit = new Set(reports.flatMap(({ struck }) => struck.map(nameOf)))
  const tried = new Set(reports.flatMap(({ plan }) => plan.crashes.slice(0, 1).map(nameOf)))
  const names = [...new Set(points.map(nameOf))]
  const missed = names.filter((name) => tried.has(name) && !hit.has(name))
  return [
    ...missed.map((name) => `tried, and never came: ${name}`),
    ['points at which a process may die', names.length],
    ['points tried', names.filter((name) => tried.has(name)).length],
    ['points tried that never came', missed.length],
    ['points hit, second deaths included', names.filter((name) => hit.has(name)).length],
  ]
}
