/** Every duration of the small cloud, and what real ones are like. */
import { z } from 'zod'
import type { Range } from '../random'

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `500ms`, `2s`, `90s`, `2m`, `1h`, `3d`; a bare number is milliseconds. */
export const duration = z.union([z.number().min(0), z.string()]).transform((value, context) => {
  if (typeof value === 'number') return value
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(value.trim())
  if (match !== null) return Number(match[1]) * UNITS[match[2]!]!
  context.addIssue({ code: 'custom', message: 'is not a duration; write 500ms, 90s, 2m, 1h or 3d' })
  return z.NEVER
})

/** One duration, or `[from, to]`, of which each use draws one. */
export const range = z.union([
  z.tuple([duration, duration]).refine(([from, to]) => from <= to, 'must go from the shorter to the longer'),
  duration.transform((value): [number, number] => [value, value]),
])

/** A time after the start of whatever it stands in, as a duration, or an instant in ISO 8601. */
export const moment = z.union([
  duration.transform((afterMs) => ({ afterMs })),
  z.iso.datetime({ offset: true }).transform((text) => ({ atMs: Date.parse(text) })),
])
export type Moment = z.output<typeof moment>

const S = 1000
const M = 60 * S

/**
 * The durations with what holds when a world says nothing: short, so that a test or a demo does not wait, save those that programs
 * count on (notices, lifetimes).
 */
export const DURATIONS = {
  /** From the launch until the instance is `running`. Really some 10 to 30 s. */
  pending: [300, 600],
  /** From `running` until user data starts. Really some 20 to 60 s. */
  boot: [300, 600],
  /** From the start of user data until the SSM agent is registered. Really some 30 to 120 s. */
  register: [300, 600],
  /** From a command being sent until the agent takes it. */
  delivery: [50, 150],
  /** How long `shutting-down` lasts. Really some 10 to 60 s. */
  shuttingDown: [300, 600],
  /** The most that the operating system gets for its shutdown before the power is cut. Really some minutes. */
  osShutdown: [10 * S, 10 * S],
  /** How long an instance is still shown after its end. */
  terminatedVisible: [60 * M, 60 * M],
  /** How long the place of a pool or a reservation stays taken after its machine has ended. */
  slotReturn: [0, 0],
  /** From the making of a Capacity Block until it is paid for. Really 5 minutes to 12 hours. */
  payment: [300, 600],
  /** From the warning that a Capacity Block ends until its end. */
  blockWarning: [40 * M, 40 * M],
  /** From the moment at which the instances of a Capacity Block are ended until its end. */
  blockTermination: [30 * M, 30 * M],
  /** From the notice of an interruption until the machine is taken. */
  notice: [2 * M, 2 * M],
  /** Until the status checks of a running instance pass. Really some minutes. */
  statusChecks: [S, S],
  /** After a launch: `InvalidInstanceID.NotFound`, and missing in lists. Really up to some seconds. */
  notFound: [0, 0],
  /** How far the lists of instances are behind what has happened. */
  staleList: [0, 0],
  /** After SendCommand: `InvocationDoesNotExist`. */
  invocationHidden: [0, 0],
  /** From creating an object (a launch template, a tag) until it is seen. */
  objectHidden: [0, 0],
  /** From the machine falling silent until its agent counts as lost. Really 5 minutes. */
  connectionLost: [5 * M, 5 * M],
  /** Lifetime of the credentials of an instance profile. Really 6 hours. */
  profileCredentials: [6 * 60 * M, 6 * 60 * M],
  /** The most that a session of the token service lasts, however long was asked for. Really what was asked for. */
  session: [36 * 60 * M, 36 * 60 * M],
  /** Lifetime of a token of Amazon's own registry. Really 12 hours. */
  registryToken: [12 * 60 * M, 12 * 60 * M],
  /** From `GetConsoleOutput` being possible at all. */
  consoleLag: [0, 0],
  /** What an instance is charged for at least, once it runs. */
  billedAtLeast: [M, M],
} as const satisfies Record<string, Range>

export type DurationName = keyof typeof DURATIONS
export type Durations = Record<DurationName, Range>
