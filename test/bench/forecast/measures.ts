import type { Measure } from '../measure'
import { judge, type Verdict } from './judge'
import { planTime } from './speed'

/** Forecasts of jobs against what they finally cost in seeded worlds. */
export function forecast(count: number): Measure[] {
  return [planTime(), ...judge({ from: 1, count }).flatMap(measuresOf)]
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
