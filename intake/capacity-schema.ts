/** The part of the retraining file about reserved capacity, and the file's defaults. */
import { z } from 'zod'
import { RESERVATION_KINDS } from '../core/reservation/reservation'
import { SHARE_DEFAULT, SHARES } from '../core/reservation/hold'
import { DAY_MS, formatDuration } from '../core/time/time'
import { backendName, LIMITS, regionName } from './fields'
import { field } from './schema-field'
import * as as from './written'

/** Defaults of a retraining file. */
export const RETRAIN_DEFAULTS = {
  every: 'quarter',
  day: 1,
  time: '06:00',
  zone: 'UTC',
  onBlackout: 'next-day',
  overlap: 'queue',
  leadMs: DAY_MS,
  /** Providers show most of their offerings for the next weeks. */
  leadWithCapacityMs: 28 * DAY_MS,
  checkMs: DAY_MS,
  startWithinMs: 2 * DAY_MS,
  fallbackMs: 7 * DAY_MS,
  askMs: 7 * DAY_MS,
} as const

const machineType = z.string().regex(/^[\w.-]{1,60}$/, 'is not the name of a machine type')

const step = {
  kind: field(
    z.enum(RESERVATION_KINDS),
    '`prepaid`: for a fixed time, paid when it is bought; `hourly`: until it is released (default: `prepaid`).',
    'hourly',
  ).optional(),
  types: field(
    as.oneOrMore(machineType, LIMITS.accelerators),
    "The provider's machine types, the preferred one first.",
    ['p5.48xlarge'],
  ).optional(),
  count: field(z.int().min(1).max(LIMITS.gpus), 'Machines: 1, as a job runs on one machine.', 1).optional(),
  duration: field(as.span, 'How long the capacity is needed.', '4d').optional(),
  regions: field(
    as.oneOrMore(regionName, LIMITS.regions),
    'Regions to search, the preferred one first (default: all of the backend).',
    ['us-east-1'],
  ).optional(),
  zones: field(as.oneOrMore(regionName, LIMITS.regions), 'Zones to search (default: all).', [
    'us-east-1a',
  ]).optional(),
  start_within: field(
    as.pace,
    `How much later than the window's opening the capacity may start (default: ${formatDuration(RETRAIN_DEFAULTS.startWithinMs)}).`,
    '5d',
  ).optional(),
  max_upfront: field(as.budget, 'The most that may be paid in advance.', '$20000').optional(),
  max_price: field(as.budget, 'The most that an hour of one machine may cost.', '$40').optional(),
  ask_above: field(
    as.budget,
    'More expensive offerings are bought only after a person approves them.',
    '$5000',
  ).optional(),
  max_spend: field(
    as.budget,
    'For `hourly`, required: it is released before it costs more.',
    '$8000',
  ).optional(),
  release_idle: field(as.span, 'For `hourly`: it is released after this long without use.', '2h').optional(),
  share: field(
    z.enum(SHARES),
    `Which jobs may use idle places before and after the run: \`none\`, those of the \`owner\`, or \`all\` (default: \`${SHARE_DEFAULT}\`).`,
    'none',
  ).optional(),
}

export const backends = as.oneOrMore(as.backendChoice, LIMITS.backends)

const fallback = z.strictObject({
  ...step,
  backends: field(backends, 'Reserve nothing: run on these backends when the window opens.', [
    'ec2:spot',
  ]).optional(),
  deadline: field(
    as.span,
    'With `backends`: the training must be over this long after the opening.',
    '5d',
  ).optional(),
})

export const capacity = z.strictObject({
  backend: field(backendName, 'The backend that sells the capacity.', 'ec2'),
  ...step,
  fallbacks: field(
    z.array(fallback).max(10),
    'What to try next, in order, if nothing is found: fields that differ from those above.',
    [{ regions: ['us-west-2'] }, { backends: ['ec2:spot'], deadline: '5d' }],
  ).optional(),
  fallback_before: field(
    as.span,
    `The fallbacks are tried this long before the window opens (default: ${formatDuration(RETRAIN_DEFAULTS.fallbackMs)}, or half of \`lead\` if that is shorter).`,
    '7d',
  ).optional(),
})
