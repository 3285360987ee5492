import type { CapacityQuote, OwnedReservation } from '../../../core/reservation/reservation'
import { DAY_MS } from '../../../core/time/time'
import type { CapacityFacts } from '../../../planner/reserving/judge'

export const NOW_MS = Date.UTC(2026, 10, 2)
export const INTENT = 'res-a'

/** A block of two days that begins tomorrow, usable until half an hour before its end. */
export function quoteOf(changes: Partial<CapacityQuote> = {}): CapacityQuote {
  return {
    id: 'cb-1',
    kind: 'prepaid',
    type: 'p5',
    count: 4,
    region: 'east',
    zone: 'east-a',
    startsAtMs: NOW_MS + DAY_MS,
    endsAtMs: NOW_MS + 3 * DAY_MS,
    usableUntilMs: NOW_MS + 3 * DAY_MS,
    upfrontMicro: 960_000_000,
    perHourMicro: 0,
    currency: 'USD',
    readAtMs: NOW_MS,
    ...changes,
  }
}

/** Four machines by the hour from now on, at $2 each. */
export function hourlyOf(changes: Partial<CapacityQuote> = {}): CapacityQuote {
  return {
    ...without(quoteOf(), 'endsAtMs', 'usableUntilMs'),
    id: '',
    kind: 'hourly',
    startsAtMs: NOW_MS,
    upfrontMicro: 0,
    perHourMicro: 8_000_000,
    ...changes,
  }
}

export function ownedOf(changes: Partial<OwnedReservation> = {}): OwnedReservation {
  return {
    id: 'cr-1',
    kind: 'prepaid',
    phase: 'scheduled',
    state: 'scheduled',
    type: 'p5',
    region: 'east',
    zone: 'east-a',
    total: 4,
    free: 0,
    startsAtMs: NOW_MS + DAY_MS,
    endsAtMs: NOW_MS + 3 * DAY_MS,
    idleMicroUsdPerHour: 0,
    isTargeted: true,
    isShared: false,
    ...changes,
  }
}

/** A look that finds nothing, for four `p5` for two days. */
export function factsOf({ wish, rule, ...changes }: Changes = {}): CapacityFacts {
  return {
    wish: {
      backend: 'ec2',
      kind: 'prepaid',
      types: ['p5', 'p4'],
      count: 4,
      durationMs: 2 * DAY_MS,
      ...wish,
    },
    rule: { ...rule },
    reservationId: INTENT,
    deployment: 'dep',
    account: '1234',
    sends: 0,
    quotes: [],
    owned: [],
    claims: new Map(),
    undecided: new Map(),
    unseen: [],
    isFirst: false,
    nowMs: NOW_MS,
    ...changes,
  }
}

export type Changes = Partial<Omit<CapacityFacts, 'wish' | 'rule'>> & {
  wish?: Partial<CapacityFacts['wish']>
  rule?: CapacityFacts['rule']
}

/** The same without these properties. */
export function without<T extends object, K extends keyof T>(whole: T, ...keys: K[]): Omit<T, K> {
  return Object.fromEntries(Object.entries(whole).filter(([key]) => !keys.includes(key as K))) as Omit<T, K>
}
