import { withoutEnd } from '../../core/trim'
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../client/context'
import { CrucibleError, toCrucibleError } from '../../client/errors'
import type { AttemptView, JobView } from '../../client/job/job-view'
import { readView } from '../../client/job/read-view'
import { readMachine } from '../../storage/machines'
import { submit, type Submission } from '../../client/job/submit'
import { cancel, interruptRehearsal } from '../../client/updates'
import { isAttemptOver } from '../../client/job/view'
import { watchJob } from '../../client/job/watch'
import { makeJobId } from '../../core/ids'
import { isFinal, type JobSpec } from '../../core/job/job'
import type { BackendChoice } from '../../core/offer'
import { SECOND_MS } from '../../core/time/time'
import type { Host, Machine, Part } from '../../rehearse/host'

export interface RehearsalJobs {
  submission: Submission
  backend: BackendChoice
  /** Budget of both jobs together. */
  budgetMicroUsd: number
  /** Time at which the jobs end even if this process dies. */
  deadlineAtMs: number
  interruptions: number
  /** Longest time that a machine takes to save, stop and end. */
  endsWithinMs: number
  note: (text: string) => void
  signal: AbortSignal
}

const POLL_MS = 500
/** Machines that the provider itself interrupts do not end the rehearsal. */
const INTERRUPTIONS_SPARE = 10
const NAME_LENGTH_MAX = 40

/** Rehearses on a backend of a deployment: each part of a rehearsal is a job there, with the same guarantees as any other job. */
export class RehearsalJobsHost implements Host {
  readonly sight = 'store'
  readonly pace = { pollMs: POLL_MS, listMs: SECOND_MS, goneMs: SECOND_MS }
  /** Ids of the jobs, with the cost of finished ones. */
  readonly jobs = new Map<string, { part: Part; costMicroUsd: number }>()
  private readonly open = new Set<string>()

  constructor(
    private readonly context: Context,
    private readonly options: RehearsalJobs,
  ) {}

  get store(): Host['store'] {
    return this.context.store
  }

  get costMicroUsd(): number {
    return [...this.jobs.values()].reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0)
  }

  async begin(part: Part): Promise<string> {
    const { submission, budgetMicroUsd, note } = this.options
    const [unended] = this.open
    // The cost of an unfinished job is uncertain, and both jobs share one budget.
    if (unended !== undefined) throw new CrucibleError('failed', `${unended} did not end in time.`)
    const spec = rehearsalSpec(part, this.options, budgetMicroUsd - this.costMicroUsd)
    const id = makeJobId(spec.name, randomInt)
    // Registered before submission: a submission whose answer is lost is ended, too.
    this.jobs.set(id, { part, costMicroUsd: 0 })
    this.open.add(id)
    const { directory } = submission
    const { isServed } = await submit(this.context, {
      spec,
      id,
      isRehearsal: true,
      directory,
    })
    if (!isServed)
      throw new CrucibleError('unavailable', 'No worker is running for this deployment.', {
        hint: 'Start one: `crucible worker`.',
      })
    note(`Submitted ${id}.`)
    return id
  }

  async next(jobId: string, before: number, untilMs: number): Promise<Machine | undefined> {
    const { note, signal } = this.options
    let shown = ''
    for (;;) {
      signal.throwIfAborted()
      const view = await readView(this.context, jobId)
      const last = view.attempts.at(-1)
      if (last !== undefined && last.number > before && (await this.hasMachine(jobId, last)))
        return { jobId, attempt: last.number }
      if (isFinal(view.state) || this.context.now() >= untilMs) {
        if (before === 0 && this.jobs.get(jobId)!.part === 'undisturbed') throw noMachine(view)
        note(`${jobId} got no other machine: ${view.message}`)
        return undefined
      }
      if (view.message !== shown) note(`${jobId}: ${view.message}`)
      shown = view.message
      await sleep(POLL_MS)
    }
  }

  private async hasMachine(jobId: string, { number }: AttemptView): Promise<boolean> {
    return (await readMachine(this.store, { jobId, attempt: number })) !== undefined
  }

  async strike(machine: Machine, noticeMs: number | null): Promise<void> {
    const { jobId, attempt } = machine
    try {
      await interruptRehearsal(this.context, jobId, { attempt, noticeMs })
    } catch (error) {
      const { kind } = toCrucibleError(error)
      // The machine has ended or is about to end. Its later state shows whether an unconfirmed interruption happened.
      if (kind !== 'unconfirmed' && !(kind === 'failed' && (await this.isEnding(machine)))) throw error
    }
  }

  private async isEnding({ jobId, attempt }: Machine): Promise<boolean> {
    const { state, attempts } = await readView(this.context, jobId)
    const found = attempts.find(({ number }) => number === attempt)
    return isFinal(state) || found?.state !== 'running'
  }

  async stop({ jobId }: Machine): Promise<void> {
    await this.cancel(jobId)
  }

  async isGone({ jobId, attempt }: Machine): Promise<boolean> {
    const { state, attempts } = await readView(this.context, jobId)
    const found = attempts.find(({ number }) => number === attempt)
    return isFinal(state) || found === undefined || isAttemptOver(found)
  }

  /** The job's settlement has ended the machine. */
  clear(): Promise<void> {
    return Promise.resolve()
  }

  async end(jobId: string): Promise<void> {
    const { note, endsWithinMs } = this.options
    if (!(await this.cancel(jobId))) return void this.open.delete(jobId)
    const limit = AbortSignal.timeout(endsWithinMs)
    for await (const { state, cost } of watchJob(this.context, jobId, { everyMs: POLL_MS, signal: limit })) {
      const job = this.jobs.get(jobId)!
      job.costMicroUsd = cost.spentMicroUsd ?? job.costMicroUsd
      if (isFinal(state)) return void this.open.delete(jobId)
    }
    note(`${jobId} is still stopping; its deadline stops it at the latest. See \`crucible show ${jobId}\`.`)
  }

  /** Ends the open jobs, each independently of the other. */
  async close(): Promise<void> {
    const ended = await Promise.allSettled([...this.open].map((jobId) => this.end(jobId)))
    for (const result of ended) if (result.status === 'rejected') throw result.reason
  }

  /** Returns false if the job does not exist, because its submission failed. */
  private async cancel(jobId: string): Promise<boolean> {
    try {
      if (isFinal((await readView(this.context, jobId)).state)) return true
      await cancel(this.context, jobId, { isNow: true })
    } catch (error) {
      const { kind } = toCrucibleError(error)
      if (kind === 'not-found') return false
      if (kind === 'unconfirmed') await cancel(this.context, jobId)
      else if (kind !== 'failed' || !isFinal((await readView(this.context, jobId)).state)) throw error
    }
    return true
  }
}

function noMachine({ id, message }: JobView): CrucibleError {
  return new CrucibleError('capacity', `The rehearsal's job ${id} got no machine in time: ${message}`, {
    hint: 'Name another --backend, or give it more time with --for.',
  })
}

/** The job, restricted to the rehearsal's backend, money and time. */
function rehearsalSpec(
  part: Part,
  { submission, backend, deadlineAtMs, interruptions }: RehearsalJobs,
  budgetMicroUsd: number,
): JobSpec {
  const spec = { ...submission.spec }
  // The duration is an estimate for the whole training.
  delete spec.durationMs
  delete spec.durationOn
  const suffix = `-rehearsal-${part}`
  return {
    ...spec,
    name: `${withoutEnd(spec.name.slice(0, NAME_LENGTH_MAX - suffix.length), '-')}${suffix}`,
    isInterruptible: backend.capacityType === 'spot' || spec.isInterruptible,
    backends: [backend],
    budgetMicroUsd,
    deadlineAtMs,
    // A failed program is a result of the rehearsal and is not retried; an interruption by the provider is.
    retries: { failures: 0, interruptions: interruptions + INTERRUPTIONS_SPARE },
  }
}
