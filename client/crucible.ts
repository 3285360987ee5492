import type { TreasuryView } from '../core/treasury'
import { budgetOf } from './budget'
import type { JobSpec } from '../core/job'
import type { ExtendUpdate, UpdateReceipt } from '../core/messages'
import type { BackendChoice } from '../core/offer'
import type { Plan } from '../core/plan'
import type { RecordEntry } from '../core/record'
import { downloadArtifacts, listArtifacts, type ArtifactView, type DownloadOptions } from './artifacts'
import { checkpointsOf, verifyCheckpoints, type CheckpointVerdict, type CheckpointView } from './checkpoints'
import { downloadCheckpoint, type CheckpointDownload, type DownloadedCheckpoint } from './download-checkpoint'
import { readClientConfig, type ClientConfig } from './config'
import { Context } from './context'
import { toCrucibleError } from './errors'
import { eventsOf, recordOf, type JobEvent } from './events'
import { findJob } from './find-job'
import {
  collectGarbage,
  lastCollection,
  type GarbageOptions,
  type GarbageRun,
  type LastCollection,
} from './garbage'
import type { JobSummary, JobView } from './job-view'
import { listJobs, type ListFilter } from './list'
import { readLogs, type JobLogLine, type LogOptions } from './logs'
import { lookAt } from './look'
import { planThroughWorkers } from './plan'
import { savedBefore } from './saved'
import { submit, type Submission, type Submitted } from './submit'
import { retryNow } from './retry'
import { cancel, extend, migrate } from './updates'
import { watchJob, type WatchOptions } from './watch'

/**
 * Jobs from TypeScript. One instance has one connection to the Temporal server, made when it is first needed; `close` ends it.
 * Every method throws a `CrucibleError`. Jobs are named by their ids; `find` gets one from a name or the beginning of an id.
 */
export class Crucible {
  readonly #context: Context

  constructor(config: ClientConfig = readClientConfig(), now: () => number = Date.now) {
    this.#context = new Context(config, now)
  }

  /** Starts a job, once: the same call with the same id finds the job that is there. */
  submit(submission: Submission): Promise<Submitted> {
    return ours(() => submit(this.#context, submission))
  }

  /** Where a job would run now, best first, and why not elsewhere. Starts nothing. */
  plan(spec: JobSpec): Promise<Plan> {
    return ours(async () => planThroughWorkers(this.#context, spec, await savedBefore(this.#context, spec)))
  }

  /** Jobs that match, newest first. */
  list(filter?: ListFilter): Promise<JobSummary[]> {
    return ours(() => listJobs(this.#context, filter))
  }

  /** A job as it is now. */
  get(jobId: string): Promise<JobView> {
    return ours(() => lookAt(this.#context, jobId))
  }

  /** A job each time something about it has changed, until it is over. */
  watch(jobId: string, options?: WatchOptions): AsyncGenerator<JobView> {
    return oursEach(() => watchJob(this.#context, jobId, options))
  }

  /** The log across all attempts; following, until the job is over. */
  logs(jobId: string, options?: LogOptions): AsyncGenerator<JobLogLine> {
    return oursEach(() => readLogs(this.#context, jobId, options))
  }

  /** Lets a job save and stop. `isNow` leaves it seconds. */
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

  /** Cuts short whatever a job waits for before it tries again. */
  retry(jobId: string): Promise<UpdateReceipt> {
    return ours(() => retryNow(this.#context, jobId))
  }

  /** What a job has left, or only what one of its attempts has. */
  artifacts(jobId: string, attempt?: number): Promise<ArtifactView[]> {
    return ours(() => listArtifacts(this.#context, jobId, attempt))
  }

  /** Copies what a job has left into a folder, and checks it. Replaces no other file unless forced. */
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

  /** Copies a checkpoint into a new folder, compared with its digests. */
  downloadCheckpoint(jobId: string, download: CheckpointDownload): Promise<DownloadedCheckpoint> {
    return ours(() => downloadCheckpoint(this.#context, jobId, download))
  }

  /** A job's story in the order of time. */
  events(jobId: string): Promise<JobEvent[]> {
    return ours(() => eventsOf(this.#context, jobId))
  }

  /** A job's record: what was asked, and every decision with its inputs. */
  records(jobId: string): Promise<RecordEntry[]> {
    return ours(() => recordOf(this.#context, jobId))
  }

  /** What the schedule's last garbage collection found and did. */
  lastGarbageCollection(): Promise<LastCollection | undefined> {
    return ours(() => lastCollection(this.#context))
  }

  /** How the money of a month (`2026-11`, in UTC) stands. */
  budget(month: string): Promise<TreasuryView> {
    return ours(() => budgetOf(this.#context, month))
  }

  /** Starts garbage collection now. */
  collectGarbage(options: GarbageOptions): Promise<GarbageRun> {
    return ours(() => collectGarbage(this.#context, options))
  }

  /** The id of the job that an id, the unique beginning of one, or a unique name means. */
  find(meant: string): Promise<string> {
    return ours(() => findJob(this.#context, meant))
  }

  /** Ends the connection. */
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

/** A client for the deployment that the environment names, or the one of a config of your own. */
export function createClient(config?: ClientConfig): Crucible {
  return new Crucible(config)
}
