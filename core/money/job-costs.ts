import type { JobState } from '../job/job'
import type { BackendName, CapacityType } from '../offer'
import { isOwnTagKey, type OwnTags } from '../own-tags'
import type { MicroUsd } from './money'
import { monthOf } from './treasury'

/** The machines of one backend and capacity type that a job had. */
export interface CostPart {
  /** Empty for costs of attempts that the record has lost. */
  backend: BackendName
  capacityType: CapacityType
  costMicroUsd: MicroUsd
  /** Time of its machines together. */
  machineMs: number
  /** Price of the same time on demand, by the offers of its plans; null if unknown. */
  listMicroUsd: MicroUsd | null
}

/** `costs/<month>/<job>.json`: the cost of a job that is over, put once when it ends. @experimental */
export interface JobCosts {
  version: 1
  jobId: string
  name: string
  owner: string
  state: JobState
  finishedAtMs: number
  /** The month whose budget paid for it; missing if no budget limited the month. */
  budgetMonth?: string | undefined
  costMicroUsd: MicroUsd
  /** The job's own tags; missing without any. */
  tags?: OwnTags | undefined
  parts: CostPart[]
}

/** The month that a job counts for: that of its budget, otherwise that of its end. */
export function monthOfCosts({ budgetMonth, finishedAtMs }: JobCosts): string {
  return budgetMonth ?? monthOf(finishedAtMs)
}

/** Ways to group costs. @experimental */
export const COST_GROUPS = ['job', 'owner', 'backend', 'capacity', 'month'] as const
/** @experimental */
export type CostGroup = (typeof COST_GROUPS)[number] | `tag:${string}`

export const isCostGroup = (text: string): text is CostGroup =>
  text.startsWith('tag:') ? isOwnTagKey(text.slice('tag:'.length)) : COST_GROUPS.some((one) => one === text)

/** The costs of one group. @experimental */
export interface CostRow {
  /** The job's id, the owner, the backend, the capacity type, the month, or the value of the tag. */
  key: string
  jobs: number
  costMicroUsd: MicroUsd
  machineMs: number
  /** Price of the same time on demand; null if it is unknown for a part of it. */
  listMicroUsd: MicroUsd | null
}

/** Adds up costs by group, the highest first; months by their date. */
export function costRows(costs: readonly JobCosts[], by: CostGroup): CostRow[] {
  const rows = new Map<string, CostRow>()
  for (const job of costs) {
    const seen = new Set<string>()
    for (const part of partsOf(job)) {
      const key = keyOf(job, part, by)
      const row = rows.get(key) ?? { key, jobs: 0, costMicroUsd: 0, machineMs: 0, listMicroUsd: 0 }
      rows.set(key, {
        key,
        jobs: row.jobs + (seen.has(key) ? 0 : 1),
        costMicroUsd: row.costMicroUsd + part.costMicroUsd,
        machineMs: row.machineMs + part.machineMs,
        listMicroUsd: sum(row.listMicroUsd, part.listMicroUsd),
      })
      seen.add(key)
    }
  }
  return [...rows.values()].sort(
    (a, b) => (by === 'month' ? 0 : b.costMicroUsd - a.costMicroUsd) || (a.key < b.key ? -1 : 1),
  )
}

/** All costs together. */
export function costTotal(rows: readonly CostRow[], jobs: number): CostRow {
  return rows.reduce(
    (total, row) => ({
      ...total,
      costMicroUsd: total.costMicroUsd + row.costMicroUsd,
      machineMs: total.machineMs + row.machineMs,
      listMicroUsd: sum(total.listMicroUsd, row.listMicroUsd),
    }),
    { key: 'total', jobs, costMicroUsd: 0, machineMs: 0, listMicroUsd: 0 },
  )
}

/** A job without a machine has one empty part, so that it is counted. */
function partsOf({ parts }: JobCosts): CostPart[] {
  if (parts.length > 0) return parts
  return [{ backend: '', capacityType: 'on-demand', costMicroUsd: 0, machineMs: 0, listMicroUsd: 0 }]
}

function keyOf(job: JobCosts, part: CostPart, by: CostGroup): string {
  const { backend, capacityType } = part
  switch (by) {
    case 'job':
      return job.jobId
    case 'owner':
      return job.owner
    case 'month':
      return monthOfCosts(job)
    case 'backend':
      return backend === '' ? placeless(part) : backend
    case 'capacity':
      return backend === '' ? placeless(part) : capacityType
    default:
      return Object.entries(job.tags ?? {}).find(([name]) => `tag:${name}` === by)?.[1] ?? 'none'
  }
}

/** Jobs without a machine, and costs of attempts that the record has lost. */
function placeless({ costMicroUsd }: CostPart): string {
  return costMicroUsd === 0 ? 'none' : 'unknown'
}

function sum(one: MicroUsd | null, other: MicroUsd | null): MicroUsd | null {
  return one === null || other === null ? null : one + other
}
