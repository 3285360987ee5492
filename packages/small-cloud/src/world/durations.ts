/** Every duration of the small cloud, with the values of the real one. */
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

/** One duration, or `[from, to]`, from which each use draws one. */
export const range = z.union([
  z.tuple([duration, duration]).refine(([from, to]) => from <= to, 'must go from the shorter to the longer'),
  duration.transform((value): [number, number] => [value, value]),
])

/** A duration after the start of the enclosing object, or an instant in ISO 8601. */
export const moment = z.union([
  duration.transform((afterMs) => ({ afterMs })),
  z.iso.datetime({ offset: true }).transform((text) => ({ atMs: Date.parse(text) })),
])
export type Moment = z.output<typeof moment>

const S = 1000
const M = 60 * S

/**
 * The durations with their defaults. They are short, so that a test or a demo does not wait, except those that programs rely on (notices,
 * lifetimes).
 */
export const DURATIONS = {
  /** Time from the launch until the instance is `running`. In EC2 about 10 to 30 s. */
  pending: [300, 600],
  /** Time from `running` until user data starts. In EC2 about 20 to 60 s. */
  boot: [300, 600],
  /** Time from the start of user data until the SSM agent is registered. In EC2 about 30 to 120 s. */
  register: [300, 600],
  /**
   * What each GiB of memory above 256 adds to it, because firmware checks the memory of large machines first. In EC2 about 130 to 370 ms.
   */
  registerPerGiB: [0, 0],
  /** Time from sending a command until the agent receives it. */
  delivery: [50, 150],
  /** Duration of `shutting-down`. In EC2 about 10 to 60 s. */
  shuttingDown: [300, 600],
  /** Maximum time for the operating system's shutdown before the power is cut. In EC2 some minutes. */
  osShutdown: [10 * S, 10 * S],
  /** How long an instance is listed after its end. */
  terminatedVisible: [60 * M, 60 * M],
  /** How long the place in a pool or a reservation stays taken after the machine's end. */
  slotReturn: [0, 0],
  /** Time from the creation of a Capacity Block until its payment. In EC2 5 minutes to 12 hours. */
  payment: [300, 600],
  /** Time from the end warning of a Capacity Block until its end. */
  blockWarning: [40 * M, 40 * M],
  /** Time from the termination of a Capacity Block's instances until its end. */
  blockTermination: [30 * M, 30 * M],
  /** Time from the termination of an UltraServer block's instances until its end. */
  ultraserverTermination: [60 * M, 60 * M],
  /** Time from the request of a future-dated reservation until EC2 accepts or refuses it. In EC2 up to some days. */
  assessment: [300, 600],
  /** Time from the end date of an on-demand reservation until it ends. In EC2 up to an hour. */
  endDelay: [0, 0],
  /** Time from an interruption notice until the machine is taken. */
  notice: [2 * M, 2 * M],
  /** Time until the status checks of a running instance pass. In EC2 some minutes. */
  statusChecks: [S, S],
  /** Time after a launch with `InvalidInstanceID.NotFound`, and without the instance in lists. In EC2 up to some seconds. */
  notFound: [0, 0],
  /** Staleness of instance lists. */
  staleList: [0, 0],
  /** Time after SendCommand with `InvocationDoesNotExist`. */
  invocationHidden: [0, 0],
  /** Time from creating an object (a launch template, a tag) until it is visible. */
  objectHidden: [0, 0],
  /** Time from the machine's last signal until its agent counts as lost. In SSM 5 minutes. */
  connectionLost: [5 * M, 5 * M],
  /** Lifetime of instance profile credentials. In EC2 6 hours. */
  profileCredentials: [6 * 60 * M, 6 * 60 * M],
  /** Maximum duration of a token service session, whatever duration was requested. In STS the requested duration. */
  session: [36 * 60 * M, 36 * 60 * M],
  /** Lifetime of a token of Amazon's own registry. In ECR 12 hours. */
  registryToken: [12 * 60 * M, 12 * 60 * M],
  /** Delay until `GetConsoleOutput` returns output. */
  consoleLag: [0, 0],
  /** Minimum billed duration of an instance that has run. */
  billedAtLeast: [M, M],
} as const satisfies Record<string, Range>

export type DurationName = keyof typeof DURATIONS
export type Durations = Record<DurationName, Range>
