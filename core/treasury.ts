/**
 * What a deployment may spend in a month, in all and for each owner: every job's whole budget is promised before the job begins, and
 * what it did not spend comes back when it is over. The only arithmetic of that; the `treasury` workflow keeps its state.
 */
import { formatUsd, type MicroUsd } from './money'

/** Limits of one calendar month (UTC). */
export interface MonthlyLimits {
  /** Of all owners together; missing without such a limit. */
  monthMicroUsd?: MicroUsd
  /** Of each owner who has none of his own; missing without such a limit. */
  ownerMicroUsd?: MicroUsd
  /** Of single owners, by name. */
  owners: Readonly<Record<string, MicroUsd>>
}

/** True when there is anything to keep to. */
export function limitsAnybody({ monthMicroUsd, ownerMicroUsd, owners }: MonthlyLimits): boolean {
  return monthMicroUsd !== undefined || ownerMicroUsd !== undefined || Object.keys(owners).length > 0
}

/** The calendar month in UTC: `2026-11`. */
export function monthOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7)
}

/** Money promised to a job that is not over. */
export interface Promised {
  owner: string
  microUsd: MicroUsd
}

export interface TreasuryState {
  month: string
  /** As the last job brought them; for whoever looks. */
  limits: MonthlyLimits
  promised: Record<string, Promised>
  /** What jobs that are over have spent, by owner. */
  spent: Record<string, MicroUsd>
  /** Jobs that were over last, so that a word of before, which comes late, is not taken for a new one. */
  over: string[]
}

/** No word comes later than so many jobs; a month may have any number. */
const OVER_KEPT = 1_000

export function emptyTreasury(month: string): TreasuryState {
  return { month, limits: { owners: {} }, promised: {}, spent: {}, over: [] }
}

/** Promise a job so much in all, its former promise included. */
export interface PromiseRequest {
  jobId: string
  owner: string
  microUsd: MicroUsd
  limits: MonthlyLimits
}

export type PromiseAnswer = { kind: 'promised' } | { kind: 'refused'; message: string; hint: string }

/** A job is over: what it has spent is spent, and the rest of its promise is there for others. */
export interface SettleRequest {
  jobId: string
  owner: string
  spentMicroUsd: MicroUsd
}

/** Answers once and for all of the same request: a repeated one changes nothing. */
export function promise(
  state: TreasuryState,
  request: PromiseRequest,
): { state: TreasuryState; answer: PromiseAnswer } {
  const { jobId, owner, microUsd, limits } = request
  if (state.over.includes(jobId)) return { state, answer: { kind: 'promised' } }
  const own = state.promised[jobId]?.microUsd ?? 0
  const next = { ...state, limits }
  // What was promised may be on its way out already: it comes back when the job is over, and not before.
  if (microUsd <= own) return { state: next, answer: { kind: 'promised' } }
  const refusal = refusalOf(next, request, own)
  if (refusal !== undefined) return { state: next, answer: refusal }
  return {
    state: { ...next, promised: { ...state.promised, [jobId]: { owner, microUsd } } },
    answer: { kind: 'promised' },
  }
}

export function settle(state: TreasuryState, { jobId, owner, spentMicroUsd }: SettleRequest): TreasuryState {
  if (state.promised[jobId] === undefined) return state
  const promised = Object.fromEntries(Object.entries(state.promised).filter(([id]) => id !== jobId))
  return {
    ...state,
    promised,
    spent: { ...state.spent, [owner]: (state.spent[owner] ?? 0) + spentMicroUsd },
    over: [...state.over, jobId].slice(-OVER_KEPT),
  }
}

function refusalOf(
  state: TreasuryState,
  { owner, microUsd, limits }: PromiseRequest,
  own: MicroUsd,
): Extract<PromiseAnswer, { kind: 'refused' }> | undefined {
  const { total, owners } = accounts({ ...state, limits }, [owner])
  const accountsHit = [
    { name: `the budget of ${owner} for ${state.month}`, ...owners.find((each) => each.owner === owner)! },
    { name: `the budget for ${state.month}`, ...total },
  ]
  for (const { name, limitMicroUsd, spentMicroUsd, promisedMicroUsd } of accountsHit) {
    if (limitMicroUsd === null) continue
    const leftMicroUsd = limitMicroUsd - spentMicroUsd - (promisedMicroUsd - own)
    if (microUsd <= leftMicroUsd) continue
    const [limit, spent, others, left] = [
      limitMicroUsd,
      spentMicroUsd,
      promisedMicroUsd - own,
      Math.max(0, leftMicroUsd),
    ].map(formatUsd)
    return {
      kind: 'refused',
      message: `The job may cost ${formatUsd(microUsd)}, and ${name} has ${left} left: of ${limit}, ${spent} are spent and ${others} are promised to jobs that run.`,
      hint: `Give it a budget of at most ${left}, wait for a job to end (crucible budget shows them), or have the limit raised.`,
    }
  }
  return undefined
}

/** Money of one owner, or of all. */
export interface Account {
  /** Null without a limit. */
  limitMicroUsd: MicroUsd | null
  spentMicroUsd: MicroUsd
  promisedMicroUsd: MicroUsd
  /** Neither spent nor promised; null without a limit. */
  leftMicroUsd: MicroUsd | null
}

export interface TreasuryView {
  month: string
  total: Account
  owners: (Account & { owner: string })[]
  /** Jobs that are not over. */
  jobs: ({ jobId: string } & Promised)[]
}

/** How the month stands. */
export function viewOf(state: TreasuryState): TreasuryView {
  const jobs = Object.entries(state.promised).map(([jobId, promised]) => ({ jobId, ...promised }))
  return { month: state.month, ...accounts(state, Object.keys(state.limits.owners)), jobs }
}

function accounts(
  { limits, promised, spent }: TreasuryState,
  alsoOwners: string[],
): Pick<TreasuryView, 'total' | 'owners'> {
  const promises = Object.values(promised)
  const names = new Set([...Object.keys(spent), ...promises.map(({ owner }) => owner), ...alsoOwners])
  const owners = [...names].sort().map((owner) => ({
    owner,
    ...accountOf(
      limits.owners[owner] ?? limits.ownerMicroUsd,
      spent[owner] ?? 0,
      promises.filter((each) => each.owner === owner),
    ),
  }))
  const spentInAll = Object.values(spent).reduce((sum, one) => sum + one, 0)
  return { total: accountOf(limits.monthMicroUsd, spentInAll, promises), owners }
}

function accountOf(limit: MicroUsd | undefined, spentMicroUsd: MicroUsd, promises: Promised[]): Account {
  const promisedMicroUsd = promises.reduce((sum, { microUsd }) => sum + microUsd, 0)
  return {
    limitMicroUsd: limit ?? null,
    spentMicroUsd,
    promisedMicroUsd,
    leftMicroUsd: limit === undefined ? null : limit - spentMicroUsd - promisedMicroUsd,
  }
}
