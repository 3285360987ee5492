import type { TreasuryView } from '../core/money/treasury'
import { budgetOf } from './budget'
import type { JobSpec } from '../core/job/job'
import type { ExtendUpdate, UpdateReceipt } from '../core/messages'
import type { BackendChoice } from '../core/offer'
import type { PlanReport } from '../core/job/plan'
import type { RecordEntry } from '../core/job/record'
import type { WhatIf } from '../core/job/what-if'
import type { JobExplained, WhatIfAnswer } from '../core/job/why'
import { downloadArtifacts, listArtifacts, type ArtifactView, type DownloadOptions } from './job/artifacts'
import {
  checkpointsOf,
  verifyCheckpoints,
  type CheckpointVerdict,
  type CheckpointView,
} from './job/checkpoints'
import {
  downloadCheckpoint,
  type CheckpointDownload,
  type DownloadedCheckpoint,
} from './job/download-checkpoint'
import { readClientConfig, type ClientConfig } from './config'
import { costsOf, type CostQuestion, type Costs } from './costs'
import { Context } from './context'
import { toCrucibleError } from './errors'
import { eventsOf, recordOf, type JobEvent } from './job/events'
import { findJob } from './job/find-job'
import {
  collectGarbage,
  endExpiredMachines,
  lastCollection,
  type ExpiredRun,
  type GarbageOptions,
  type GarbageRun,
  type LastCollection,
} from './garbage'
import type { JobSummary, JobView } from './job/job-view'
import { listJobs, type ListFilter } from './job/list'
import { readLogs, type JobLogLine, type LogOptions } from './job/logs'
import { readView } from './job/read-view'
import { findPlan } from './job/plan'
import { decideWhatIf, explainDecisions } from './job/why'
import { submit, type Submission, type Submitted } from './job/submit'
import { retryNow } from './job/retry'
import { cancel, extend, migrate } from './updates'
import { watchJob, type WatchOptions } from './job/watch'

/**
 * The client for jobs. One instance has one connection to the Temporal server, made at first use; `close` ends it. Every method throws a
 * `CrucibleError`. Jobs are identified by their ids; `find` gets one from a name or a prefix of an id.
 * @public
 */
export class Crucible {
  readonly #context: Context

  constructor(config: ClientConfig = readClientConfig(), now: () => number = Date.now) {
    this.#context = new Context(config, now)
  }

  /** Starts a job, once: the same call with the same id returns the existing job. */
  submit(submission: Submission): Promise<Submitted> {
    return ours(() => submit(this.#context, submission))
  }

  /**
   * Ranks the places where a job could run now, with reasons for those excluded. A worker answers, or this process with its own settings
   * when none does. Starts nothing. @experimental
   */
  plan(spec: JobSpec): Promise<PlanReport> {
    return ours(async () => (await findPlan(this.#context, { spec })).plan)
  }

  /** Explains each decision about a job from its record, or one of them. @experimental */
  why(jobId: string, options?: { decision?: number }): Promise<JobExplained> {
    return ours(() => explainDecisions(this.#context, jobId, options))
  }

  /** Decides the last plan of a job again from changed inputs, or that of one decision. Nothing happens to the job. @experimental */
  async whatIf(
    jobId: string,
    changes: readonly WhatIf[],
    { decision }: { decision?: number } = {},
  ): Promise<WhatIfAnswer> {
    return ours(async () => (await decideWhatIf(this.#context, jobId, { changes, decision })).whatIf)
  }

  /** Jobs that match, newest first. */
  list(filter?: ListFilter): Promise<JobSummary[]> {
    return ours(() => listJobs(this.#context, filter))
  }

  /** The current state of a job. */
  get(jobId: string): Promise<JobView> {
    return ours(() => readView(this.#context, jobId))
  }

  /** Yields the state of a job after every change, until it is over. */
  watch(jobId: string, options?: WatchOptions): AsyncGenerator<JobView> {
    return oursEach(() => watchJob(this.#context, jobId, options))
  }

  /** Yields the log of all attempts; when following, until the job is over. */
  logs(jobId: string, options?: LogOptions): AsyncGenerator<JobLogLine> {
    return oursEach(() => readLogs(this.#context, jobId, options))
  }

  /** Asks a job to save and stop. `isNow` allows only seconds. */
  cancel(jobId: string, options?: { isNow?: boolean }): Promise<UpdateReceipt> {
    return ours(() => cancel(this.#context, jobId, options))
  }

  /** Moves a running job: to the best other place, or to `to`. */
  migrate(jobId: string, to?: BackendChoice): Promise<UpdateReceipt> {
    return ours(() => migrate(this.#context, jobId, to === undefined ? {} : { to }))
  }

  /** Gives a job a new deadline, a new budget, or both. */
  extend(jobId: string, update: ExtendUpdate): Promise<UpdateReceipt> {
    return ours(() => extend(this.#context, jobId, update))
  }

  /** Skips the current pause of a job before its next retry. */
  retry(jobId: string): Promise<UpdateReceipt> {
    return ours(() => retryNow(this.#context, jobId))
  }

  /** The artifacts of a job, or of one of its attempts. */
  artifacts(jobId: string, attempt?: number): Promise<ArtifactView[]> {
    return ours(() => listArtifacts(this.#context, jobId, attempt === undefined ? {} : { attempt }))
  }

  /** Downloads the artifacts of a job into a folder and verifies them. Replaces no other file unless forced. */
  downloadArtifacts(jobId: string, toFolder: string, options?: DownloadOptions): Promise<ArtifactView[]> {
    return ours(() => downloadArtifacts(this.#context, jobId, { toFolder, ...options }))
  }

  /** A job's complete checkpoints, newest first. */
  checkpoints(jobId: string): Promise<CheckpointView[]> {
    return ours(() => checkpointsOf(this.#context, jobId))
  }

  /** Compares one checkpoint, or all, with the digests in their manifests. */
  verifyCheckpoints(jobId: string, checkpointId?: string): Promise<CheckpointVerdict[]> {
    return ours(() => verifyCheckpoints(this.#context, jobId, checkpointId))
  }

  /** Downloads a checkpoint into a new folder and verifies its digests. */
  downloadCheckpoint(jobId: string, download: CheckpointDownload): Promise<DownloadedCheckpoint> {
    return ours(() => downloadCheckpoint(this.#context, jobId, download))
  }

  /** The events of a job in order of time. @experimental */
  events(jobId: string): Promise<JobEvent[]> {
    return ours(() => eventsOf(this.#context, jobId))
  }

  /** A job's record: the submission, and every decision with its inputs. @experimental */
  records(jobId: string): Promise<RecordEntry[]> {
    return ours(() => recordOf(this.#context, jobId))
  }

  /** The result of the schedule's last garbage collection. @experimental */
  lastGarbageCollection(): Promise<LastCollection | undefined> {
    return ours(() => lastCollection(this.#context))
  }

  /** Budget and spending of a month (`2026-11`, in UTC). @experimental */
  budget(month: string): Promise<TreasuryView> {
    return ours(() => budgetOf(this.#context, month))
  }

  /** Costs of the jobs that ended, added up by job, owner, backend, capacity type or month. @experimental */
  costs(question: CostQuestion): Promise<Costs> {
    return ours(() => costsOf(this.#context, question))
  }

  /** Starts garbage collection now. @experimental */
  collectGarbage(options: GarbageOptions): Promise<GarbageRun> {
    return ours(() => collectGarbage(this.#context, options))
  }

  /** Ends the machines whose lease has certainly expired, without a Temporal server or a worker. @experimental */
  endExpiredMachines(options: { isDryRun: boolean; signal: AbortSignal }): Promise<ExpiredRun> {
    return ours(() => endExpiredMachines(this.#context, options))
  }

  /** The id of the job for an id, a unique prefix of one, or a unique name. */
  find(meant: string): Promise<string> {
    return ours(() => findJob(this.#context, meant))
  }

  /** Closes the connection. */
  close(): Promise<void> {
    return this.#context.close()
  }
}

async function ours<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toCrucibleError(error)
  }
}

async function* oursEach<T>(work: () => AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    yield* work()
  } catch (error) {
    throw toCrucibleError(error)
  }
}

/** A client for the deployment that the environment names, or for a given config. @public */
export function createClient(config?: ClientConfig): Crucible {
  return new Crucible(config)
}
