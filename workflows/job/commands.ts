import {
  ApplicationFailure,
  CancellationScope,
  condition,
  defineSignal,
  defineUpdate,
  setHandler,
} from '@temporalio/workflow'
import { defined } from '../../core/defined'
import {
  CANCEL_NOW_UPDATE,
  EXTEND_UPDATE,
  INTERRUPT_UPDATE,
  MIGRATE_UPDATE,
  WARNING_SIGNAL,
  type ExtendUpdate,
  type InterruptUpdate,
  type MigrateUpdate,
  type WarningNotice,
  type UpdateReceipt,
} from '../../core/messages'
import { interruptionInWords } from '../../core/job/interruption'
import { formatUsd } from '../../core/money/money'
import { formatBackendChoice, overlap } from '../../core/offer'
import { formatDuration, formatInstant } from '../../core/time/time'
import { DEFAULT_TIMING, stoppingMs } from '../../core/time/timing'
import { carrying, failureFrom } from '../../core/failure'
import { interrupting, orchestrator } from '../activities'
import { kept } from '../forever'
import type { JobRun } from './run'

const migrateUpdate = defineUpdate<UpdateReceipt, [MigrateUpdate]>(MIGRATE_UPDATE)
const extendUpdate = defineUpdate<UpdateReceipt, [ExtendUpdate]>(EXTEND_UPDATE)
const interruptUpdate = defineUpdate<UpdateReceipt, [InterruptUpdate]>(INTERRUPT_UPDATE)
const cancelNowUpdate = defineUpdate<UpdateReceipt>(CANCEL_NOW_UPDATE)
const warningSignal = defineSignal<[WarningNotice]>(WARNING_SIGNAL)

/** Drain window for an impatient owner: enough for a signal handler, not for an upload. */
const CANCEL_NOW_WINDOW_MS = 5_000
/** Window for a workload that was already asked to save. */
const ASKED_BEFORE_WINDOW_MS = 2_000

/** Registers the commands of a job. Validators run before a command is accepted, so a refused command leaves no trace. */
export function listen(run: JobRun): void {
  const { page, drains } = run
  const drainMs = (): number => (run.isResolved ? run.resolved.timing : DEFAULT_TIMING).drainMs

  CancellationScope.current().cancelRequested.catch(() => {
    drains.add({ reason: 'cancelled', windowMs: drainMs() })
    page.stopping('cancelled')
  })

  setHandler(
    cancelNowUpdate,
    () => {
      const windowMs = drains.current?.reason === 'cancelled' ? ASKED_BEFORE_WINDOW_MS : CANCEL_NOW_WINDOW_MS
      drains.add({ reason: 'cancelled', windowMs })
      page.stopping('cancelled')
      return { message: `Cancelling; the workload has ${windowMs / 1_000} s to save.` }
    },
    {
      validator: () => refuseWhenOver(run),
      description: 'Cancel with a drain of seconds. Plain cancel drains in full.',
    },
  )

  setHandler(
    migrateUpdate,
    ({ to }: MigrateUpdate) => {
      drains.add({ reason: 'migrated', windowMs: drainMs() }, to)
      const where = to === undefined ? 'to the best other place' : `to ${formatBackendChoice(to)}`
      return { message: `Moving ${where}; the workload saves first.` }
    },
    {
      validator: (update: MigrateUpdate) => refuseMove(run, update),
      description: 'Move the running job, with a checkpoint first.',
    },
  )

  setHandler(
    extendUpdate,
    async ({ deadlineAtMs, budgetMicroUsd }: ExtendUpdate) => {
      if (budgetMicroUsd !== undefined) await havePromised(run, budgetMicroUsd)
      const update: ExtendUpdate = defined({ deadlineAtMs, budgetMicroUsd })
      Object.assign(page.status, update)
      run.limitsVersion += 1
      if (run.isResolved) run.armDeadline()
      return { message: `Now ${wordsOf(update)}.` }
    },
    {
      validator: (update: ExtendUpdate) => refuseExtension(run, update),
      description: 'New deadline or budget.',
    },
  )

  setHandler(interruptUpdate, (update) => interrupt(run, update), {
    validator: (update: InterruptUpdate) => refuseInterruption(run, update),
    description: 'Interrupt the machine of a rehearsal, as its provider would.',
  })

  setHandler(warningSignal, (notice) => page.warned(notice), { description: 'What the runner warns of.' })
}

async function interrupt(run: JobRun, { attempt, noticeMs }: InterruptUpdate): Promise<UpdateReceipt> {
  const { jobId } = run.input
  const { backend } = run.page.status.attempts.at(-1)!
  const told = kept(
    CancellationScope.nonCancellable(() =>
      interrupting(backend).interrupt({ jobId, attempt, noticeMs, recordSeq: run.nextSeq() }),
    ),
  )
  await told.catch((error: unknown) => refuse(failureFrom(error).message))
  return { message: `The machine of attempt ${attempt} ${interruptionInWords(noticeMs)}.` }
}

/** Reserves the money first if months and owners have budgets. */
async function havePromised(run: JobRun, microUsd: number): Promise<void> {
  const { jobId, owner } = run.input
  await condition(() => run.isResolved || run.page.isOver)
  refuseWhenOver(run)
  const { month } = run.resolved
  if (month === undefined) return
  const promised = kept(
    CancellationScope.nonCancellable(() => orchestrator.promiseBudget({ jobId, owner, month, microUsd })),
  )
  await promised.catch((error: unknown) => refuse(failureFrom(error).message))
  // The job may have ended meanwhile and released its money.
  refuseWhenOver(run)
}

function refuse(message: string): never {
  throw ApplicationFailure.create({ ...carrying({ class: 'invalid', message }), nonRetryable: true })
}

function refuseWhenOver({ page }: JobRun): void {
  if (page.isOver) refuse(`The job is over (${page.status.state}).`)
}

/** Refuses an interruption unless the job is a rehearsal, so that no machine in real use is interrupted. */
function refuseInterruption({ input, page }: JobRun, { attempt, noticeMs }: InterruptUpdate): void {
  if (input.isRehearsal !== true) refuse('Only a job of `crucible rehearse` can be interrupted this way.')
  if (page.isOver) refuse(`The job is over (${page.status.state}).`)
  const last = page.status.attempts.at(-1)
  if (last?.number !== attempt || last.endedAtMs !== undefined) refuse(`Attempt ${attempt} is not running.`)
  if (noticeMs !== null && !(Number.isSafeInteger(noticeMs) && noticeMs >= 0))
    refuse('The notice must be whole milliseconds, or null for none.')
}

function refuseMove(run: JobRun, { to }: MigrateUpdate): void {
  refuseWhenOver(run)
  if (run.drains.ending !== null) refuse('The job is being stopped and cannot be moved.')
  const { state } = run.page.status
  if (state !== 'running' && state !== 'provisioning') refuse(`Nothing to move: the job is ${state}.`)
  const { backends } = run.isResolved ? run.resolved.spec : run.input.spec
  if (to !== undefined && backends.length > 0 && !backends.some((choice) => overlap(choice, to)))
    refuse(
      `The job allows only ${backends.map(formatBackendChoice).join(', ')}: it cannot move to ${formatBackendChoice(to)}. ` +
        'To run it there, continue it as a new job (crucible submit --from).',
    )
}

function refuseExtension(run: JobRun, { deadlineAtMs, budgetMicroUsd }: ExtendUpdate): void {
  refuseWhenOver(run)
  if (run.drains.ending !== null)
    refuse('The job is being stopped; continue it as a new job (crucible submit --from).')
  if (deadlineAtMs === undefined && budgetMicroUsd === undefined)
    refuse('Set a new deadline or a new budget.')
  if (deadlineAtMs !== undefined && !(deadlineAtMs > Date.now())) {
    refuse(`The deadline ${formatInstant(deadlineAtMs)} has already passed.`)
  }
  if (deadlineAtMs !== undefined) refuseTooSoon(run, deadlineAtMs)
  const { spentMicroUsd } = run.page.status
  if (budgetMicroUsd !== undefined && !(budgetMicroUsd > spentMicroUsd)) {
    refuse(
      `The budget ${formatUsd(budgetMicroUsd)} is not more than the ${formatUsd(spentMicroUsd)} already spent.`,
    )
  }
}

/** A machine must save and power off before the deadline; an earlier deadline would stop the job immediately. */
function refuseTooSoon(run: JobRun, deadlineAtMs: number): void {
  const neededMs = stoppingMs(run.isResolved ? run.resolved.timing : DEFAULT_TIMING)
  if (deadlineAtMs - Date.now() > neededMs) return
  refuse(
    `The deadline ${formatInstant(deadlineAtMs)} is too soon: saving and stopping take up to ${formatDuration(neededMs)}. Set a later one, or cancel the job.`,
  )
}

function wordsOf({ deadlineAtMs, budgetMicroUsd }: ExtendUpdate): string {
  const words = [
    ...(deadlineAtMs === undefined ? [] : [`the deadline is ${formatInstant(deadlineAtMs)}`]),
    ...(budgetMicroUsd === undefined ? [] : [`the budget is ${formatUsd(budgetMicroUsd)}`]),
  ]
  return words.join(' and ')
}
