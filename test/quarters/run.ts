import type { TreasuryState } from '../../core/money/treasury'
import { TREASURY_QUERY } from '../../core/messages'
import { WORKFLOW_TYPES } from '../../core/queues'
import type { MicroUsd } from '../../core/money/money'
import type { PromotedModel } from '../../core/retraining/retraining'
import type { Report } from '../kit/harness'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import { breachesOfQuarter, breachesOfYear, launchDelayMs, purchasesOf } from './invariants'
import { OwnServer, sharedHome, type Home } from './plant'
import { SCHEDULE, type Scenario } from './world'
import { Year, type QuarterEnd } from './year'

interface QuarterReport {
  nominal: string
  outcome: string
  message: string
  launchDelayMs: number | undefined
  costMicroUsd: MicroUsd
  /** Paid and failed ones, extensions too. */
  purchases: number
  breaches: string[]
}

export interface YearReport extends Report {
  scenario: string
  quarters: QuarterReport[]
  /** How many quarters it was to live. */
  wanted: number
  /** The largest of each type of workflow. */
  histories: { type: string; events: number; bytes: number; continued: number }[]
}

/** Lives the quarters of one scenario, all of them or the first ones. */
export async function runYear(scenario: Scenario, quartersMax = 4): Promise<YearReport> {
  const isOwn = scenario.isSetBack === true || scenario.historyMax !== undefined
  const home: Home = isOwn ? await OwnServer.start(scenario.historyMax) : await sharedHome()
  const year = await Year.of(scenario, home)
  try {
    const quarters: QuarterReport[] = []
    const wanted = Math.min(quartersMax, scenario.quarters ?? 4)
    for (const [index, run] of year.runs.slice(0, wanted).entries())
      quarters.push(reportOf(year, await year.live(run, index)))
    await year.rest()
    const runs = [...year.boundary.runs.values()]
    const treasuries = await treasuriesOf(year)
    const production = await modelsOf(year.store)
    return {
      state: quarters.map(({ outcome }) => outcome).join(', '),
      breaches: [
        ...quarters.flatMap(({ breaches }) => breaches),
        ...breachesOfYear({ year, treasuries, production, runs }),
      ],
      story: quarters.map(({ nominal, outcome, message }) => `${nominal}: ${outcome}: ${message}`),
      scenario: scenario.name,
      quarters,
      wanted,
      histories: historiesOf(year),
    }
  } finally {
    await year.close()
  }
}

function reportOf(year: Year, end: QuarterEnd): QuarterReport {
  const { run, result } = end
  return {
    nominal: run.nominal,
    outcome: result?.state ?? 'none',
    message: result?.message ?? '',
    launchDelayMs: launchDelayMs(year, end),
    costMicroUsd: result?.costMicroUsd ?? 0,
    purchases: purchasesOf(year.market.purchases, run).length,
    breaches: breachesOfQuarter(year, end),
  }
}

async function treasuriesOf(year: Year): Promise<TreasuryState[]> {
  const ids = new Set(
    [...year.boundary.runs.values()]
      .filter(({ type }) => type === WORKFLOW_TYPES.treasury)
      .map(({ workflowId }) => workflowId),
  )
  return Promise.all(
    [...ids].map((id) => year.client.workflow.getHandle(id).query<TreasuryState>(TREASURY_QUERY)),
  )
}

/** All that were in production, oldest first. */
async function modelsOf(store: ObjectStore): Promise<PromotedModel[]> {
  const models: PromotedModel[] = []
  for await (const { key } of store.list(layout.models(SCHEDULE)))
    models.push(JSON.parse((await store.get(key))!.toString()) as PromotedModel)
  return models.sort((one, other) => one.seq - other.seq)
}

function historiesOf({ boundary }: Year): YearReport['histories'] {
  const types = [...new Set([...boundary.runs.values()].map(({ type }) => type))].sort()
  return types.map((type) => {
    const runs = [...boundary.runs.values()].filter((run) => run.type === type)
    return {
      type,
      events: Math.max(...runs.map(({ events }) => events)),
      bytes: Math.max(...runs.map(({ bytes }) => bytes)),
      continued: runs.filter(({ hasContinued }) => hasContinued).length,
    }
  })
}
