import { costRows, costTotal, type CostGroup, type CostRow } from '../core/money/job-costs'
import { putJobCosts, readJobCosts } from '../storage/job-costs'
import { eachOf } from '../storage/parallel'
import { newestSubmissions } from '../storage/submissions'
import { checkMonth, costGaps } from './budget'
import type { Context } from './context'
import { readLastEntries } from './job/recorded-jobs'
import { checkStore } from './store-trouble'

/** @experimental */
export interface CostQuestion {
  by: CostGroup
  /** A month (`2026-11`); all months if missing. */
  month?: string | undefined
  owner?: string | undefined
}

/** Costs of jobs that are over. @experimental */
export interface Costs {
  by: CostGroup
  month: string | null
  rows: CostRow[]
  total: CostRow
}

/** Adds up the costs of the jobs that are over, from one small document for each. */
export async function costsOf(context: Context, { by, month, owner }: CostQuestion): Promise<Costs> {
  if (month !== undefined) checkMonth(month)
  const { costs: all, unreadable } = await readJobCosts(context.store, month)
  if (all.length === 0) await checkStore(context)
  context.gaps.push(...costGaps(unreadable))
  const costs = owner === undefined ? all : all.filter((one) => one.owner === owner)
  const rows = costRows(costs, by)
  return { by, month: month ?? null, rows, total: costTotal(rows, costs.length) }
}

/** Result of writing the documents of older jobs. @experimental */
export interface CostsRebuilt {
  /** Jobs of the store. */
  jobs: number
  /** Documents that were missing. */
  added: number
  /** Jobs without a recorded end: they run, or lost their workflow, and their cost is unknown. */
  open: number
}

/** Jobs that are read at the same time. */
const PAGE = 50

/** Writes the missing documents of jobs that ended, from their records. */
export async function rebuildCosts({ store }: Context): Promise<CostsRebuilt> {
  const rebuilt = { jobs: 0, added: 0, open: 0 }
  let page: string[] = []
  const rebuildPage = async (): Promise<void> => {
    const found = await eachOf(page, async (jobId) => {
      const finished = (await readLastEntries(store, jobId)).entries.find(({ kind }) => kind === 'finished')
      if (finished?.kind !== 'finished') return undefined
      return putJobCosts(store, finished.data)
    })
    page = []
    rebuilt.jobs += found.length
    rebuilt.added += found.filter((isAdded) => isAdded === true).length
    rebuilt.open += found.filter((isAdded) => isAdded === undefined).length
  }
  for await (const jobId of newestSubmissions(store)) {
    page.push(jobId)
    if (page.length === PAGE) await rebuildPage()
  }
  await rebuildPage()
  return rebuilt
}
