import { ApplicationFailure, CancelledFailure, type Context } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import type { SettleInput, Settlement, WatchInput, WatchOutcome } from '../core/activities'
import type { AttemptEnd } from '../core/job/ledger'
import { isFinal, JOB_STATES, type JobState } from '../core/job/job'
import type { GarbageVerdict } from '../core/messages'
import { SEARCH_ATTRIBUTES, WORKFLOW_TYPES } from '../core/queues'
import { SECOND_MS } from '../core/time/time'
import type { WatchLoop } from './watch/loop'

type Meter = Context['metricMeter']

/** Boundaries of the histograms, in seconds: from an answer of a provider to the start of a large machine. */
export const BUCKETS_SECONDS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600]
export const HISTOGRAMS = ['crucible_activity_seconds', 'crucible_start_seconds'] as const

/**
 * Metrics of the product, next to those of Temporal's SDK. Labels are states, roles, backends and classes of failures: never a job, so that
 * their number stays small.
 */
export class Metrics {
  private readonly activities
  private readonly activitySeconds
  private readonly startSeconds
  private readonly ends
  private readonly spend
  private readonly garbage
  private readonly gauges
  private readonly readings: (() => Promise<void>)[] = []
  #reading: Promise<void> | undefined

  /**
   * @param now the wall clock, for the age of an order
   * @param monotonicMs for durations
   */
  constructor(
    meter: Meter,
    private readonly now: () => number,
    private readonly monotonicMs: () => number,
  ) {
    this.activities = meter.createCounter('crucible_activities', '', 'Activities that ended, by outcome')
    this.activitySeconds = meter.createHistogram(
      'crucible_activity_seconds',
      'float',
      's',
      'Duration of activities',
    )
    this.startSeconds = meter.createHistogram(
      'crucible_start_seconds',
      'float',
      's',
      'From the order of a machine to the run of its workload',
    )
    this.ends = meter.createCounter('crucible_attempts_ended', '', 'Attempts that ended, by end')
    this.spend = meter.createCounter(
      'crucible_spend_microusd',
      '',
      'Cost of ended attempts in millionths of a dollar',
    )
    this.garbage = meter.createCounter(
      'crucible_garbage',
      '',
      'Resources that garbage collection found without an owner',
    )
    this.gauges = {
      jobs: meter.createGauge('crucible_jobs', 'int', '', 'Open jobs by state'),
      attempts: meter.createGauge('crucible_attempts', 'int', '', 'Open attempts by backend'),
      watched: meter.createGauge(
        'crucible_watched_machines',
        'int',
        '',
        'Machines that this process watches',
      ),
      lookAge: meter.createGauge(
        'crucible_watch_age_seconds',
        'float',
        's',
        'Time since the last look at the machine that was looked at longest ago',
      ),
    }
  }

  /** Makes an interceptor that counts the activities of a role; the first of all, so that it sees their failures as Temporal does. */
  measure(role: string): (context: Pick<Context, 'info'>) => { inbound: ActivityInterceptor } {
    return ({ info }) => ({ inbound: this.interceptor(role, info.activityType) })
  }

  private interceptor(role: string, activityType: string): ActivityInterceptor {
    return {
      execute: async (input, next) => {
        const startedMs = this.monotonicMs()
        let outcome = 'ok'
        try {
          const answer = await next(input)
          this.note(activityType, input.args[0], answer)
          return answer
        } catch (error) {
          outcome = outcomeOf(error)
          throw error
        } finally {
          const labels = { role, activity: activityType }
          this.activities.add(1, { ...labels, outcome })
          // A watch lasts as long as its machine.
          if (activityType !== 'watch')
            this.activitySeconds.record((this.monotonicMs() - startedMs) / SECOND_MS, labels)
        }
      },
    }
  }

  private note(activityType: string, input: unknown, answer: unknown): void {
    if (activityType === 'settle') this.noteSettlement(input as SettleInput, answer as Settlement)
    if (activityType === 'watch') this.noteOutcome(input as WatchInput, answer as WatchOutcome)
    if (activityType === 'collectGarbage') {
      for (const { backend, action } of answer as GarbageVerdict[])
        if (action !== 'kept') this.garbage.add(1, { backend, action })
    }
  }

  private noteSettlement({ order }: SettleInput, { end, costMicroUsd }: Settlement): void {
    const labels = { backend: order.backend, capacity: order.capacityType }
    this.ends.add(1, { ...labels, end: wordOf(end) })
    this.spend.add(costMicroUsd, labels)
  }

  private noteOutcome({ order, handle }: WatchInput, { kind }: WatchOutcome): void {
    if (kind !== 'running') return
    const labels = { backend: order.backend, capacity: order.capacityType }
    const sinceMs = Math.max(0, this.now() - handle.launchedAtMs)
    this.startSeconds.record(sinceMs / SECOND_MS, labels)
  }

  /** Reads the state of a backend's watches whenever somebody asks for the metrics. */
  readWatches(backend: string, loop: Pick<WatchLoop, 'size' | 'longestUncheckedMs'>): void {
    this.readings.push(async () => {
      this.gauges.watched.set(loop.size, { backend })
      this.gauges.lookAge.set(loop.longestUncheckedMs / SECOND_MS, { backend })
    })
  }

  /** Counts the open jobs and attempts whenever somebody asks for the metrics. */
  readJobs(client: Pick<Client, 'workflow'>, backends: readonly string[]): void {
    const { state, backend: place } = SEARCH_ATTRIBUTES
    const count = async (type: string, condition: string): Promise<number> => {
      const query = `WorkflowType = '${type}' AND ExecutionStatus = 'Running' AND ${condition}`
      return (await client.workflow.count(query)).count
    }
    this.readings.push(
      ...OPEN_STATES.map((value) => async () => {
        this.gauges.jobs.set(await count(WORKFLOW_TYPES.job, `${state} = '${value}'`), { state: value })
      }),
      ...backends.map((backend) => async () => {
        const open = await count(WORKFLOW_TYPES.attempt, `${place} STARTS_WITH '${backend}:'`)
        this.gauges.attempts.set(open, { backend })
      }),
    )
  }

  /** Brings the gauges up to date. What cannot be read keeps its last value. All who ask during a reading share it, for the server's sake. */
  async read(): Promise<void> {
    this.#reading ??= Promise.allSettled(this.readings.map((reading) => reading())).then(() => {
      this.#reading = undefined
    })
    await this.#reading
  }
}

const OPEN_STATES: readonly JobState[] = JOB_STATES.filter((state) => !isFinal(state))

/** An inbound interceptor of an activity worker. */
interface ActivityInterceptor {
  execute<Input extends { args: unknown[] }>(
    input: Input,
    next: (input: Input) => Promise<unknown>,
  ): Promise<unknown>
}

/** The class of a failure, or that the activity was cancelled. */
function outcomeOf(error: unknown): string {
  if (error instanceof CancelledFailure) return 'cancelled'
  return (error instanceof ApplicationFailure ? error.type : undefined) ?? 'unclassified'
}

/** How an attempt ended, in a word: `succeeded`, why it was stopped, or the class of its failure. */
function wordOf(end: AttemptEnd): string {
  if (end.kind === 'failed') return end.failure.class
  return end.kind === 'stopped' ? `stopped-${end.by}` : end.kind
}
