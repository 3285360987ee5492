/**
 * The money of a month: every job's whole budget is reserved (promised) before the job begins, and what it did not spend is released
 * when it is over. The `treasury` workflow keeps this state and applies answers to it; whether a job may reserve its budget is policy
 * and decided elsewhere (`planner/plan/monthly-budget.ts`).
 */
import { isAmount } from '../figures'
import type { MicroUsd } from './money'

/** Limits of one calendar month (UTC). */
export interface MonthlyLimits {
  /** Limit for all owners together; missing without such a limit. */
  monthMicroUsd?: MicroUsd
  /** Limit of each owner without an individual one; missing without such a limit. */
  ownerMicroUsd?: MicroUsd
  /** Limits of individual owners, by name. */
  owners: Readonly<Record<string, MicroUsd>>
}

/** True if any limit is set. */
export function limitsAnybody({ monthMicroUsd, ownerMicroUsd, owners }: MonthlyLimits): boolean {
  return monthMicroUsd !== undefined || ownerMicroUsd !== undefined || Object.keys(owners).length > 0
}

/** The calendar month in UTC: `2026-11`. */
export function monthOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7)
}

export function monthBefore(atMs: number): string {
  const at = new Date(atMs)
  return monthOf(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - 1))
}

/** Money reserved for a job that is not over. */
export interface ReservedBudget {
  owner: string
  microUsd: MicroUsd
}

/**
 * The name under which a purchase of reserved capacity reserves money, in place of a job's id, which has no slash. One name for each purchase:
 * money of an ended one is not reserved again.
 */
export function reservationBudgetId(reservationId: string, send: number): string {
  return `reservation/${reservationId}/${send}`
}

/** The reservation and the purchase of such a name; `undefined` for the id of a job. */
export function parseReservationBudgetId(id: string): { reservationId: string; send: number } | undefined {
  const match = /^reservation\/([^/]+)\/(\d+)$/.exec(id)
  return match === null ? undefined : { reservationId: match[1]!, send: Number(match[2]) }
}

export interface TreasuryState {
  month: string
  /** Limits as the last job sent them, for display. */
  limits: MonthlyLimits
  promised: Record<string, ReservedBudget>
  /** Spending of jobs that are over, by owner. */
  spent: Record<string, MicroUsd>
  /** The last jobs that were over, so that a late request of one does not reserve money again. */
  over: string[]
}

/** A request is never later than this many jobs; a month may have any number. */
const OVER_KEPT = 1_000

export function emptyTreasury(month: string): TreasuryState {
  return { month, limits: { owners: {} }, promised: {}, spent: {}, over: [] }
}

/** Reserve a total amount for a job, including its earlier reservation. */
export interface BudgetRequest {
  jobId: string
  owner: string
  microUsd: MicroUsd
  limits: MonthlyLimits
  /**
   * Name of the reservation from which the money is moved, for a part of its purchase. No decision is needed: the total does not grow, and
   * the part already exists.
   */
  from?: string
  /** Whether the amount replaces a higher one: a raise for a change is released, because the change was not made. */
  isLowered?: true
}

/** Request for a month's money; the asking worker adds its limits. */
export type MonthlyBudgetRequest = Omit<BudgetRequest, 'limits'> & { month: string }

export type BudgetAnswer = { kind: 'promised' } | { kind: 'refused'; message: string; hint: string }

/** Money that counts against one limit. */
export interface Committed {
  spentMicroUsd: MicroUsd
  promisedMicroUsd: MicroUsd
}

/** The question to the policy: the request, and what other jobs have spent and reserved. */
export interface BudgetQuestion extends BudgetRequest {
  month: string
  byOwner: Committed
  byAll: Committed
}

/** Report that a job is over: its spending is final, and the rest of its reservation is released. */
export interface SettleRequest {
  jobId: string
  owner: string
  spentMicroUsd: MicroUsd
  /** Whether the money was spent even if it was never reserved: a treasury restored from a backup may not know the reservation. */
  isCertain?: true
}

/**
 * Whether a request needs no decision: it was granted before, or asks for no more than the job already has. Reserved money may be partly
 * spent, so it is released only when the job is over. A late request of a job that is over changes nothing.
 */
export function isGranted({ over, promised }: TreasuryState, { jobId, microUsd }: BudgetRequest): boolean {
  return over.includes(jobId) || microUsd <= (promised[jobId]?.microUsd ?? 0)
}

export function questionOf(state: TreasuryState, request: BudgetRequest): BudgetQuestion {
  const others = Object.entries(state.promised).flatMap(([id, each]) => (id === request.jobId ? [] : [each]))
  const { owner } = request
  return {
    ...request,
    month: state.month,
    byOwner: committed(
      state.spent[owner] ?? 0,
      others.filter((each) => each.owner === owner),
    ),
    byAll: committed(spentByAll(state), others),
  }
}

/** Applies the answer to a request that needed one. */
export function applyAnswer(
  state: TreasuryState,
  { jobId, owner, microUsd, limits }: BudgetRequest,
  answer: BudgetAnswer,
): TreasuryState {
  const next = { ...state, limits }
  if (answer.kind === 'refused') return next
  return { ...next, promised: { ...state.promised, [jobId]: { owner, microUsd } } }
}

/** Moves reserved money to another name, once. */
export function move(
  state: TreasuryState,
  { jobId, owner, microUsd, from }: Omit<BudgetRequest, 'limits'> & { from: string },
): TreasuryState {
  const { promised, over } = state
  if (promised[jobId] !== undefined || over.includes(jobId)) return state
  const { [from]: source } = promised
  const rest = source && { [from]: { ...source, microUsd: Math.max(0, source.microUsd - microUsd) } }
  return { ...state, promised: { ...promised, ...rest, [jobId]: { owner, microUsd } } }
}

/** Undoes a raise. A job that is over, or has no more than that, keeps its reservation. */
export function lower(
  state: TreasuryState,
  { jobId, microUsd }: Pick<BudgetRequest, 'jobId' | 'microUsd'>,
): TreasuryState {
  const before = state.promised[jobId]
  if (before === undefined || before.microUsd <= microUsd) return state
  return { ...state, promised: { ...state.promised, [jobId]: { ...before, microUsd } } }
}

export function settle(
  state: TreasuryState,
  { jobId, owner, spentMicroUsd, isCertain }: SettleRequest,
): TreasuryState {
  const isNews = state.promised[jobId] !== undefined || (isCertain === true && !state.over.includes(jobId))
  if (!isNews) return state
  // Spending that is no amount of money may have been everything.
  const counted = isAmount(spentMicroUsd) ? spentMicroUsd : (state.promised[jobId]?.microUsd ?? 0)
  const promised = Object.fromEntries(Object.entries(state.promised).filter(([id]) => id !== jobId))
  return {
    ...state,
    promised,
    spent: { ...state.spent, [owner]: (state.spent[owner] ?? 0) + counted },
    over: [...state.over, jobId].slice(-OVER_KEPT),
  }
}

/** Money of one owner, or of all. */
export interface Account extends Committed {
  /** Null without a limit. */
  limitMicroUsd: MicroUsd | null
  /** Neither spent nor reserved; null without a limit. */
  leftMicroUsd: MicroUsd | null
}

/** @experimental */
export interface TreasuryView {
  month: string
  total: Account
  owners: (Account & { owner: string })[]
  /** Jobs that are not over. */
  jobs: ({ jobId: string } & ReservedBudget)[]
  /** Purchases and extensions of reservations that are not settled. */
  reservations: ({ reservationId: string; send: number } & ReservedBudget)[]
}

/** The state of the month. */
export function viewOf(state: TreasuryState): TreasuryView {
  const { month, limits, promised, spent } = state
  const promises = Object.values(promised)
  const names = new Set([
    ...Object.keys(spent),
    ...promises.map(({ owner }) => owner),
    ...Object.keys(limits.owners),
  ])
  const owners = [...names].sort().map((owner) => ({
    owner,
    ...accountOf(
      ownerLimit(limits, owner),
      committed(
        spent[owner] ?? 0,
        promises.filter((each) => each.owner === owner),
      ),
    ),
  }))
  const all = Object.entries(promised).map(([id, each]) => ({
    jobId: id,
    purchase: parseReservationBudgetId(id),
    each,
  }))
  return {
    month,
    total: accountOf(limits.monthMicroUsd, committed(spentByAll(state), promises)),
    owners,
    jobs: all.flatMap(({ jobId, purchase, each }) => (purchase === undefined ? [{ jobId, ...each }] : [])),
    reservations: all.flatMap(({ purchase, each }) =>
      purchase === undefined ? [] : [{ ...purchase, ...each }],
    ),
  }
}

/** Returns the limit of an owner: an individual or the common one. */
export function ownerLimit({ owners, ownerMicroUsd }: MonthlyLimits, owner: string): MicroUsd | undefined {
  return owners[owner] ?? ownerMicroUsd
}

/** Returns the rest of a limit, negative if more is committed; undefined without a limit. */
export function leftOfLimit(
  limitMicroUsd: MicroUsd | undefined,
  { spentMicroUsd, promisedMicroUsd }: Committed,
): MicroUsd | undefined {
  return limitMicroUsd === undefined ? undefined : limitMicroUsd - spentMicroUsd - promisedMicroUsd
}

function accountOf(limitMicroUsd: MicroUsd | undefined, committed: Committed): Account {
  return {
    limitMicroUsd: limitMicroUsd ?? null,
    ...committed,
    leftMicroUsd: leftOfLimit(limitMicroUsd, committed) ?? null,
  }
}

function committed(spentMicroUsd: MicroUsd, promises: ReservedBudget[]): Committed {
  return { spentMicroUsd, promisedMicroUsd: promises.reduce((sum, { microUsd }) => sum + microUsd, 0) }
}

function spentByAll({ spent }: TreasuryState): MicroUsd {
  return Object.values(spent).reduce((sum, one) => sum + one, 0)
}
