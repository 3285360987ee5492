/** Conflicts between fields of a retraining file that are valid alone, and its capacity as steps. */
import type { z } from 'zod'
import { without } from '../core/defined'
import type { CapacityPlan, CapacityStep, RetrainSpec } from '../core/retraining/retraining'
import { LEAD_MS_MAX } from '../core/retraining/retraining'
import { BLACKOUT_DAYS_MAX } from '../core/time/calendar'
import { DAY_MS, formatDuration } from '../core/time/time'
import { RETRAIN_DEFAULTS, type capacity } from './capacity-schema'
import type { Fault } from './problem'
import type { retrainFile } from './retrain-schema'

type Written = z.output<typeof retrainFile>
type Capacity = z.output<typeof capacity>
type Fields = Omit<Capacity, 'fallbacks' | 'fallback_before'> &
  Pick<NonNullable<Capacity['fallbacks']>[number], 'backends' | 'deadline'>

export function retrainFaults(file: Written, spec: RetrainSpec): Fault[] {
  return [
    ...timeFaults(file, spec),
    ...blackoutFaults(file),
    ...(file.capacity === undefined ? [] : capacityFaults(file.capacity)),
    ...overrunFaults(file),
    ...promotionFaults(file),
  ]
}

function timeFaults(file: Written, { leadMs, checkMs, capacity }: RetrainSpec): Fault[] {
  const faults: Fault[] = []
  const lead = formatDuration(leadMs)
  if (leadMs > LEAD_MS_MAX) {
    const message = `is ${lead}, but capacity is sold at most ${formatDuration(LEAD_MS_MAX)} ahead`
    faults.push({ path: ['lead'], message, remedy: `write at most ${formatDuration(LEAD_MS_MAX)}` })
  }
  const within = (name: string, path: string[], ms: number | undefined): void => {
    if (ms === undefined || ms < leadMs || leadMs === 0) return
    const message = `is ${formatDuration(ms)}, but a run begins only ${lead} before its window`
    faults.push({ path, message, remedy: 'write a shorter time, or a longer lead' })
  }
  within('check_before', ['check_before'], file.check_before === undefined ? undefined : checkMs)
  within(
    'fallback_before',
    ['capacity', 'fallback_before'],
    file.capacity?.fallback_before === undefined ? undefined : capacity?.fallbackMs,
  )
  return faults
}

function blackoutFaults({ blackouts = [] }: Written): Fault[] {
  return blackouts.flatMap(({ from, to }, index) => {
    const path = ['blackouts', index]
    const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1
    if (days < 1)
      return [{ path, message: `ends before it begins`, remedy: `write from: ${to}, to: ${from}` }]
    if (days <= BLACKOUT_DAYS_MAX) return []
    const message = `has ${days} days of at most ${BLACKOUT_DAYS_MAX}`
    return [{ path, message, remedy: 'pause the schedule for that long' }]
  })
}

function capacityFaults(written: Capacity): Fault[] {
  const { fallbacks = [] } = written
  return [
    ...stepFaults(written, ['capacity']),
    ...fallbacks.flatMap((change, index) => {
      const path = ['capacity', 'fallbacks', index]
      if (Object.keys(change).length === 0)
        return [{ path, message: 'changes nothing', remedy: 'write what differs, such as start_within: 10d' }]
      if (change.backends !== undefined) return mixedFaults(change, path)
      if (change.deadline !== undefined) {
        const message = 'belongs to backends, which reserve nothing'
        return [{ path: [...path, 'deadline'], message, remedy: 'remove it, or add backends: [ec2:spot]' }]
      }
      return stepFaults({ ...withoutMoney(written, change), ...change }, path)
    }),
  ]
}

/** A fallback of another kind does not inherit limits that mean something else. */
function withoutMoney(written: Capacity, { kind }: { kind?: string }): Fields {
  const base = without(written, ['fallbacks', 'fallback_before'])
  if (kind === undefined || kind === (base.kind ?? 'prepaid')) return base
  return without(base, ['max_upfront', 'max_spend', 'release_idle'])
}

function mixedFaults(change: object, path: (string | number)[]): Fault[] {
  return Object.keys(change)
    .filter((name) => !['backends', 'deadline', 'regions'].includes(name))
    .map((name) => ({
      path: [...path, name],
      isAboutName: true,
      message: 'applies to reservations, but backends reserve nothing',
      remedy: 'remove one of the two',
    }))
}

function stepFaults(fields: Fields, path: (string | number)[]): Fault[] {
  const missing = (name: string, why: string, remedy: string): Fault => ({
    path,
    message: `has no ${name}, ${why}`,
    remedy,
  })
  const faults: Fault[] = []
  if (fields.types === undefined)
    faults.push(missing('types', 'so it is unknown what to reserve', 'add types: [p5.48xlarge]'))
  if (fields.duration === undefined)
    faults.push(missing('duration', 'so it is unknown how long', 'add duration: 4d'))
  if (fields.kind === 'hourly' && fields.max_spend === undefined)
    faults.push(
      missing('max_spend', 'and hourly capacity costs money until it is released', 'add max_spend: $8000'),
    )
  if (fields.kind !== 'hourly' && fields.max_upfront === undefined)
    faults.push(missing('max_upfront', 'and prepaid capacity cannot be returned', 'add max_upfront: $20000'))
  if ((fields.count ?? 1) > 1)
    faults.push({
      path: [...path, 'count'],
      message: 'is above 1, and a job runs on one machine: the others would be paid for and idle',
      remedy: 'write 1, or remove it',
    })
  const foreign =
    fields.kind === 'hourly' ? (['max_upfront'] as const) : (['max_spend', 'release_idle'] as const)
  for (const name of foreign) {
    if (fields[name] === undefined) continue
    const message = `does not apply to capacity that is ${fields.kind ?? 'prepaid'}`
    faults.push({ path: [...path, name], isAboutName: true, message, remedy: 'remove it' })
  }
  return faults
}

function overrunFaults({ overrun, capacity }: Written): Fault[] {
  if (overrun === undefined) return []
  if (capacity === undefined) {
    const message = 'applies to the end of a reservation, but capacity is missing'
    return [{ path: ['overrun'], isAboutName: true, message, remedy: 'remove it, or add capacity' }]
  }
  const kinds = [capacity.kind, ...(capacity.fallbacks ?? []).map(({ kind }) => kind ?? capacity.kind)]
  if (overrun.extend_max === undefined || kinds.some((kind) => kind !== 'hourly')) return []
  const message = 'is about prepaid capacity, and hourly capacity has no fixed time'
  return [{ path: ['overrun', 'extend_max'], isAboutName: true, message, remedy: 'remove it' }]
}

function promotionFaults({ promotion, evaluation, notify }: Written): Fault[] {
  const faults: Fault[] = []
  if (promotion !== undefined && evaluation === undefined && promotion.ask !== true) {
    const message = 'would put every new model into production, without an evaluation and without a person'
    faults.push({ path: ['promotion'], isAboutName: true, message, remedy: 'add evaluation, or ask: true' })
  }
  if (notify?.webhook !== undefined && notify.webhook_secret !== undefined) {
    const message = 'is set together with webhook'
    faults.push({
      path: ['notify', 'webhook_secret'],
      isAboutName: true,
      message,
      remedy: 'keep one of the two',
    })
  }
  return faults
}

/** The capacity of a file as steps, in the order in which they are tried. */
export function capacityOf(written: Capacity, leadMs: number): CapacityPlan {
  const { fallbacks = [], fallback_before: before } = written
  return {
    steps: [
      stepOf(withoutMoney(written, {})),
      ...fallbacks.map((change) => stepOf({ ...withoutMoney(written, change), ...change })),
    ],
    fallbackMs: before ?? Math.min(RETRAIN_DEFAULTS.fallbackMs, leadMs / 2),
  }
}

function stepOf(fields: Fields): CapacityStep {
  const { regions, zones, backends } = fields
  if (backends !== undefined) {
    return { kind: 'unreserved', backends, regions, deadlineMs: fields.deadline }
  }
  return {
    kind: fields.kind ?? 'prepaid',
    backend: fields.backend,
    types: fields.types ?? [],
    count: fields.count ?? 1,
    durationMs: fields.duration ?? 0,
    startWithinMs: fields.start_within ?? RETRAIN_DEFAULTS.startWithinMs,
    regions,
    zones,
    upfrontMaxMicroUsd: fields.max_upfront,
    machineHourMaxMicroUsd: fields.max_price,
    unaskedMaxMicroUsd: fields.ask_above,
    spendMaxMicroUsd: fields.max_spend,
    idleMaxMs: fields.release_idle,
    share: fields.share,
  }
}
