/** `npm run quarters -- --help`. */
import { formatUsd } from '../../core/money/money'
import { SECOND_MS } from '../../core/time/time'
import { inLanes, withServer } from '../kit/runs'
import { readOptions } from '../support/options'
import { runYear, type YearReport } from './run'
import { SCENARIOS } from './scenarios'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'quarters',
    about: `Lives four quarters of a retraining schedule with a driven clock, and compares them with what the provider really did. Scenarios: ${SCENARIOS.map(({ name }) => name).join(', ')}.`,
    options: {
      scenario: { default: '', as: 'NAME', means: 'only this one' },
      quarters: { default: 4, means: 'how many of the four' },
      'at-once': { default: 2, means: 'scenarios at a time' },
    },
  })
  if (values === undefined) return
  const chosen = SCENARIOS.filter(({ name }) => values.scenario === '' || name === values.scenario)
  if (chosen.length === 0) {
    process.stderr.write(`No scenario is named ${values.scenario}: see npm run quarters -- --help.\n`)
    process.exitCode = 2
    return
  }
  const reports = await withServer(() =>
    inLanes(chosen, { atOnce: values['at-once'] }, async (scenario) => {
      const report = await runYear(scenario, values.quarters).catch((error: Error) =>
        crashed(scenario, error),
      )
      for (const line of linesOf(report)) say(line)
      return report
    }),
  )
  const breaches = reports.reduce((sum, report) => sum + countOf(report), 0)
  say(
    `${reports.length} scenarios, ${reports.flatMap(({ quarters }) => quarters).length} quarters, ${breaches} breaches`,
  )
  if (breaches > 0) process.exitCode = 1
}

function crashed({ name }: { name: string }, error: Error): YearReport {
  return { scenario: name, quarters: [], breaches: [error.stack ?? error.message], histories: [], seconds: 0 }
}

function countOf({ quarters, breaches }: YearReport): number {
  return quarters.reduce((sum, one) => sum + one.breaches.length, breaches.length)
}

function linesOf({ scenario, quarters, breaches, histories, seconds }: YearReport): string[] {
  const largest = histories.map(
    ({ type, events, bytes, continued }) =>
      `${type} ${events} events, ${Math.ceil(bytes / 1024)} KiB${continued === 0 ? '' : `, continued ${continued} times`}`,
  )
  return [
    ...quarters.map((one) =>
      [
        scenario.padEnd(18),
        one.nominal,
        one.outcome.padEnd(9),
        `launch ${one.launchDelayMs === undefined ? '-' : `${(one.launchDelayMs / SECOND_MS).toFixed(1)} s`}`.padEnd(
          14,
        ),
        formatUsd(one.costMicroUsd).padStart(10),
        `${one.purchases} purchases`,
        `${one.breaches.length} breaches`,
      ].join('  '),
    ),
    ...[...quarters.flatMap((one) => one.breaches), ...breaches].map((one) => `! ${scenario}: ${one}`),
    `${' '.repeat(20)}${largest.join('; ')}; ${seconds.toFixed(0)} s`,
  ]
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

void main()
