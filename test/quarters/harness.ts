import { formatUsd } from '../../core/money/money'
import { SECOND_MS } from '../../core/time/time'
import { harness, type Case } from '../kit/harness'
import { withServer } from '../kit/server'
import { tally } from '../kit/table'
import { runYear, type YearReport } from './run'
import { SCENARIOS } from './scenarios'
import type { Scenario } from './world'

export interface YearCase extends Case {
  scenario: Scenario
}

export const YEARS: readonly YearCase[] = SCENARIOS.map((scenario) => ({
  name: scenario.name,
  again: ['--only', scenario.name],
  scenario,
}))

/** Four quarters of a retraining schedule with a driven clock, against what the provider really did. */
export const QUARTERS = harness({
  jobs: 2,
  options: { quarters: { default: 4, means: 'how many of the four' } },
  around: (_, use) => withServer(() => use(undefined)),
  draw: () => YEARS,
  live: ({ scenario }: YearCase, _: undefined, { quarters }: { quarters: number }) =>
    runYear(scenario, quarters),
  table: (reports) => [
    ...reports.flatMap(linesOf),
    ...tally(reports.flatMap(({ quarters }) => quarters.map(({ outcome }) => `quarters: ${outcome}`))),
  ],
})

function linesOf({ scenario, quarters, histories }: YearReport): string[] {
  const largest = histories.map(
    ({ type, events, bytes, continued }) =>
      `${type} ${events} events, ${Math.ceil(bytes / 1024)} KiB${continued === 0 ? '' : `, continued ${continued} times`}`,
  )
  const delayed = (ms: number | undefined): string =>
    `launch ${ms === undefined ? '-' : `${(ms / SECOND_MS).toFixed(1)} s`}`.padEnd(14)
  return [
    ...quarters.map((one) =>
      [
        scenario.padEnd(18),
        one.nominal,
        one.outcome.padEnd(9),
        delayed(one.launchDelayMs),
        formatUsd(one.costMicroUsd).padStart(10),
        `${one.purchases} purchases`,
      ].join('  '),
    ),
    `${' '.repeat(20)}${largest.join('; ')}`,
  ]
}
