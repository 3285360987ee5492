/** `npm run bench:forecast -- --help` (docs/design/benchmarks.md). */
import { seedOptions } from '../../kit/runs'
import { readOptions } from '../../support/options'
import { isMissed, lineOf, type Measure } from '../measure'
import { planTime } from './speed'
import { judge, type Verdict } from './judge'

function main(): void {
  const values = readOptions({
    name: 'bench:forecast',
    about:
      'Compares forecasts of jobs with what they finally cost in seeded worlds (docs/design/benchmarks.md).',
    options: { ...seedOptions(1_000, 'how many jobs') },
  })
  if (values === undefined) return
  const measures = [planTime(), ...judge(values).flatMap(measuresOf)]
  for (const measure of measures) process.stdout.write(`${lineOf(measure)}\n`)
  process.exitCode = measures.some(isMissed) ? 1 : 0
}

function measuresOf({
  class: kind,
  jobs,
  costCoverage,
  finishCoverage,
  score,
  classScore,
}: Verdict): Measure[] {
  const bench = 'forecast'
  const percent = (part: number): number => Math.round(part * 1_000) / 10
  return [
    {
      bench,
      name: `${kind}: final costs in the interval`,
      value: percent(costCoverage),
      unit: '%',
      goal: { is: 'at least', value: 85 },
      remark: `${jobs} jobs`,
    },
    {
      bench,
      name: `${kind}: the same, not too wide`,
      value: percent(costCoverage),
      unit: '%',
      goal: { is: 'at most', value: 95 },
    },
    { bench, name: `${kind}: ends in the interval`, value: percent(finishCoverage), unit: '%' },
    {
      bench,
      name: `${kind}: interval score`,
      value: score,
      unit: 'x cost',
      goal: { is: 'at most', value: Number(classScore.toPrecision(3)) },
      remark: 'that of the class average',
    },
  ]
}

main()
