import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Cli } from '../../../cli/cli'
import { isSubmissionAgreed, showExpected } from '../../../cli/job/agreement'
import { readCliConfig } from '../../../cli/kit/config'
import type { Expectation } from '../../../client/job/expect'
import { NO_FORECAST, type Forecast } from '../../../core/job/forecast'
import { microUsd } from '../../../core/money/money'
import { HOUR_MS } from '../../../core/time/time'
import { OFFER } from '../../client/world'
import { SPEC } from '../../support/spec'
import type { Paper } from '../outside'
import { World } from '../outside'

let world: World
let asked: string[]
beforeEach(() => {
  world = new World()
  asked = []
})
afterEach(() => world.remove())

/** A command line at a terminal, whose user answers. */
function terminal({
  answer = 'n',
  isJson = false,
  stdoutIsTty = true,
  settings = {},
  simulated = [] as string[],
} = {}): {
  cli: Cli
  stdout: Paper
} {
  const { outside, stdout } = world.outside()
  stdout.isTTY = stdoutIsTty
  const ask = async (question: string): Promise<string> => {
    asked.push(question)
    return answer
  }
  const config = { ...readCliConfig({ ...world.environment, ...settings }, world.script), simulated }
  return { cli: new Cli({ ...outside, config, ask }, isJson), stdout }
}

function placed(costUsd: number): Expectation {
  const costMicroUsd = microUsd(costUsd)
  const forecast: Forecast = {
    ...NO_FORECAST,
    cost: { lowMicroUsd: costMicroUsd, highMicroUsd: 2 * costMicroUsd },
    finish: { lowMs: HOUR_MS, highMs: 3 * HOUR_MS },
  }
  const placement = { offer: OFFER, costMicroUsd, durationMs: 2 * HOUR_MS, forecast, reasons: [], risks: [] }
  const plan = { placements: [placement], others: [], silentBackends: [] } as unknown as Expectation['plan']
  return { plan, warnings: [] }
}

describe('submitting at a terminal', () => {
  it.each([
    ['y', true],
    ['n', false],
    ['', false],
  ])('is asked about before money is spent, and %j means %s', async (answer, isAgreed) => {
    const { cli } = terminal({ answer })
    expect(await isSubmissionAgreed(cli, placed(2), false)).toBe(isAgreed)
    expect(asked).toEqual(['This may spend money. Submit the job? [y/N] '])
  })

  it.each<[string, Parameters<typeof terminal>[0], Expectation, boolean]>([
    ['a job that costs nothing', {}, placed(0), false],
    ['--yes', {}, placed(2), true],
    ['the setting', { settings: { CRUCIBLE_SUBMIT_CONFIRM: 'no' } }, placed(2), false],
    ['the setting as false', { settings: { CRUCIBLE_SUBMIT_CONFIRM: 'False' } }, placed(2), false],
    ['JSON', { isJson: true }, placed(2), false],
    ['a pipe', { stdoutIsTty: false }, placed(2), false],
    ['a simulated provider', { simulated: ['local'] }, placed(2), false],
  ])('is not asked about with %s', async (_what, options, expectation, isSure) => {
    expect(await isSubmissionAgreed(terminal(options).cli, expectation, isSure)).toBe(true)
    expect(asked).toEqual([])
  })

  it('is asked about while the cost is unknown, or a backend is silent', async () => {
    const { cli } = terminal()
    expect(await isSubmissionAgreed(cli, { warnings: [] }, false)).toBe(false)
    const silent = placed(0)
    silent.plan!.silentBackends.push({ backend: 'ec2', reason: 'x' })
    expect(await isSubmissionAgreed(cli, silent, false)).toBe(false)
    expect(asked[0]).toMatch(/^No worker answers, so the cost is unknown\./)
  })

  it('is asked about if a place that is not simulated costs money', async () => {
    const { cli } = terminal({ simulated: ['ec2'] })
    expect(await isSubmissionAgreed(cli, placed(2), false)).toBe(false)
  })

  it('is refused with a setting that is neither yes nor no', async () => {
    const { cli } = terminal({ settings: { CRUCIBLE_SUBMIT_CONFIRM: 'maybe' } })
    await expect(isSubmissionAgreed(cli, placed(2), false)).rejects.toMatchObject({
      kind: 'usage',
      message: 'CRUCIBLE_SUBMIT_CONFIRM is "maybe": write yes or no.',
    })
  })

  it('wraps what it shows at words', () => {
    const { cli, stdout } = terminal()
    stdout.columns = 80
    showExpected(cli, SPEC, { expectation: placed(2), isNote: false })
    expect(stdout.text).toContain('the ranges with 90 %\n            probability\n')
  })

  it('shows machine, price, range and budget first', () => {
    const { cli, stdout } = terminal()
    stdout.columns = 100
    const expectation = placed(2)
    showExpected(cli, { ...SPEC, budgetMicroUsd: microUsd(25) }, { expectation, isNote: false })
    expect(stdout.text.split('\n')).toEqual([
      '  machine   local spot, process in here, $3.60/h',
      '  cost      about $2.00 ($2.00 to $4.00) in 2h (1h to 3h), the ranges with 90 % probability',
      '  budget    $25.00',
      '',
    ])
  })
})
