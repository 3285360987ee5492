import { setTimeout as sleep } from 'node:timers/promises'
import type { JobReason, JobSpec } from '../../core/job/job'
import { microUsd } from '../../core/money/money'
import { HOUR_MS } from '../../core/time/time'
import type { Timing } from '../../core/time/timing'
import type { MonthlyLimits } from '../../core/money/treasury'
import type { FaultText } from '#small-cloud'
import type { Behaviour } from '../backends/scripted/behaviour'
import type { CloudWishes } from '../clouds/cloud'
import { SLOW_LISTS, SPEC as CLOUD_SPEC } from '../clouds/world'
import type { CloudProvider, ProviderName } from '../clouds/provider'
import { until } from '../support/until'
import { statusOf, type JobHandle } from '../workflows/harness'
import type { Crew } from './crew'
import { litter } from './litter'
import type { Site } from './site'

/** What befalls a job by its owner or by the cloud; the same with and without crashes. */
export interface Life {
  about: string
  /** Where it can be lived; everywhere if missing. */
  providers?: readonly ProviderName[]
  faults?: (provider: CloudProvider) => FaultText[]
  durations?: CloudWishes['world']['durations']
  config?: CloudWishes['config']
  behave?: (turn: number) => Partial<Behaviour>
  /** Its money is promised out of that of its month. */
  monthly?: MonthlyLimits
  spec?: () => Partial<JobSpec>
  /** Its cloud recognises no repeated order. */
  isTokenless?: boolean
  /** Done before the job is submitted. */
  precede?: (site: Site) => Promise<unknown>
  /** Done once a machine is at work. */
  happen?: (at: { crew: Crew; site: Site; job: JobHandle }) => Promise<unknown>
  /** Attempts that it takes where nothing else befalls it; no crash may cost one more. */
  attempts: number
  ends: JobReason
  /** Somebody ends an attempt's workflow. */
  isEndedByHand?: boolean
  /** Job and attempt are ended by hand: what they leave is for garbage collection. */
  isOrphaned?: boolean
}

/**
 * Far beyond what a crash costs, which is a heartbeat timeout of 20 s: silence and leases must not end what only waits for somebody to
 * take it up.
 */
export const TIMING: Partial<Timing> = {
  silenceMs: 120_000,
  leaseMs: 600_000,
  startWithinMs: 300_000,
  drainMs: 1_500,
  beatMs: 250,
  observeMs: 500,
  goneConfirmMs: 250,
}
export const SPEC: Partial<JobSpec> = CLOUD_SPEC

/** It works until it is asked to stop. */
const LONG: Partial<Behaviour> = { stepsPerSecond: 1 }
const longAtFirst = (turn: number): Partial<Behaviour> => (turn === 1 ? LONG : {})

export const LIVES = {
  plain: { about: 'it trains and is done', attempts: 1, ends: 'completed' },
  lasting: {
    about: 'it trains for longer than a heartbeat timeout',
    behave: () => ({ stepsPerSecond: 2.5 }),
    attempts: 1,
    ends: 'completed',
  },
  cancelled: {
    about: 'its owner cancels it at work',
    behave: () => LONG,
    happen: ({ job }) => job.cancel(),
    attempts: 1,
    ends: 'cancelled',
  },
  migrated: {
    about: 'its owner moves it to another machine',
    behave: longAtFirst,
    happen: ({ job }) => job.executeUpdate('migrate', { args: [{}] }),
    attempts: 2,
    ends: 'completed',
  },
  extended: {
    about: 'its owner gives it another deadline at work',
    behave: () => ({ stepsPerSecond: 20 }),
    spec: () => ({ deadlineAtMs: Date.now() + HOUR_MS }),
    happen: ({ job }) => job.executeUpdate('extend', { args: [{ deadlineAtMs: Date.now() + 2 * HOUR_MS }] }),
    attempts: 1,
    ends: 'completed',
  },
  interrupted: {
    about: 'its machine is taken back, with a notice where its provider gives one',
    behave: longAtFirst,
    faults: () => [{ fault: 'interruption', after: 1_500, notice: 1_500, times: 1 }],
    attempts: 2,
    ends: 'completed',
  },
  crashed: {
    about: 'its machine is gone without a word',
    behave: longAtFirst,
    faults: () => [{ fault: 'crash', after: 1_500, times: 1 }],
    attempts: 2,
    ends: 'completed',
  },
  unanswered: {
    about: 'the result of its launch is lost, and its machine is not in the lists for long',
    durations: { notFound: [...SLOW_LISTS.notFound] },
    config: { staleForMs: SLOW_LISTS.staleForMs },
    faults: ({ calls }) => [{ fault: 'lost-answer', instead: 'reset', times: 1, where: calls.launch }],
    attempts: 1,
    ends: 'completed',
  },
  tokenless: {
    about: 'its cloud recognises no repeated order',
    providers: ['ec2'],
    isTokenless: true,
    // A death between the mark of a send and the send costs an attempt, and no money.
    attempts: 2,
    ends: 'completed',
  },
  refused: {
    about: 'its first choices are out of stock',
    faults: ({ scarce }) => [scarce],
    attempts: 3,
    ends: 'completed',
  },
  mute: {
    about: 'its first machine is unreachable',
    faults: ({ unreachable }) => [unreachable],
    attempts: 2,
    ends: 'completed',
  },
  replaced: {
    about: 'its attempt is ended by hand',
    behave: longAtFirst,
    happen: ({ crew, site }) => crew.terminate(attemptAtWork(site)),
    attempts: 2,
    ends: 'completed',
    isEndedByHand: true,
  },
  orphaned: {
    about: 'job and attempt are ended by hand, and not settled',
    behave: () => LONG,
    happen: async ({ crew, site, job }) => {
      const attemptId = attemptAtWork(site)
      await job.terminate('by hand')
      await crew.terminate(attemptId)
    },
    attempts: 1,
    ends: 'completed',
    isOrphaned: true,
  },
  littered: {
    about: 'others of the deployment have left a volume, a request for a spot machine, and a template',
    providers: ['ec2'],
    config: { templatesKeptMs: 1 },
    precede: litter,
    attempts: 1,
    ends: 'completed',
  },
  waiting: {
    about: 'at first its cloud does not tell what there is',
    faults: ({ calls, down }) => [{ fault: 'error', ...down, times: 6, where: calls.prices }],
    attempts: 1,
    ends: 'completed',
  },
  withdrawn: {
    about: 'its workload fails, and its owner cancels it before it is tried again',
    behave: (turn) => (turn <= 2 ? { fails: { atStep: 30, exitCode: 1 } } : {}),
    happen: async ({ job }) => {
      await until(
        async () => (await statusOf(job)).attempts.at(-1)?.reason.startsWith('waits until') === true,
        AT_WORK_LIMIT_MS,
      )
      await job.cancel()
    },
    attempts: 3,
    ends: 'cancelled',
  },
  paid: {
    about: 'its budget is promised out of the month, and raised at work',
    behave: () => ({ stepsPerSecond: 20 }),
    monthly: { monthMicroUsd: microUsd(1_000_000), owners: {} },
    spec: () => ({ budgetMicroUsd: microUsd(5) }),
    happen: ({ job }) => job.executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(6) }] }),
    attempts: 1,
    ends: 'completed',
  },
} satisfies Record<string, Life>
export type LifeName = keyof typeof LIVES
export const LIFE_NAMES = Object.keys(LIVES) as LifeName[]

/** Those that can be lived at a provider. */
export function livesAt({ name }: CloudProvider): LifeName[] {
  return LIFE_NAMES.filter((life) => ((LIVES[life] as Life).providers ?? [name]).includes(name))
}

/** A machine comes up, or is taken over from a dead process, within that even on a busy computer. */
const AT_WORK_LIMIT_MS = 240_000

/** Waits until a machine is at work, and for a moment longer. */
export async function untilAtWork(site: Site, lingerMs: number): Promise<void> {
  await until(() => site.options.ground.machines.some(({ isAtWork }) => isAtWork), AT_WORK_LIMIT_MS)
  await sleep(lingerMs)
}

/** Not always the first: the send of an attempt before may have been lost. */
function attemptAtWork({ options: { ground, jobId } }: Site): string {
  return `${jobId}-${ground.machines.findLast(({ isAtWork }) => isAtWork)?.attempt ?? 1}`
}
