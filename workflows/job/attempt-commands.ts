import { CancellationScope, condition, defineSignal, patched, setHandler } from '@temporalio/workflow'
import type { Limits } from '../../core/documents'
import type { Drain, DrainRequest } from '../../core/job/drain'
import type { MachineHandle } from '../../core/handle'
import type { AttemptEnd } from '../../core/job/ledger'
import { DRAIN_SIGNAL, EXTEND_SIGNAL, type AttemptInput, type ExtendRequest } from '../../core/messages'
import { drainWithin, orchestrator, pressing } from '../activities'
import type { AttemptPage } from './attempt-page'
import { forever, foreverUntil, kept } from '../forever'

/** Requests that an attempt receives while it runs. */
export interface AttemptCommands {
  /** The first reason counts, unless the job is cancelled; a later request can only shorten the window. */
  readonly drain: DrainRequest | null
  /** Whether the machine or the store has taken the first request to save and stop. */
  isOnRecord: boolean
  /** Whether the job was cancelled while an earlier request was on its way. */
  readonly isOverruled: boolean
  /** Extensions not yet passed on. */
  readonly limits: Limits[]
  readonly isClosed: boolean
  /** The machine's reservation ends: it must save and stop within this time. */
  expire(windowMs: number): void
  /** The budget is reached. */
  reachBudget(): void
  /** Ends the attempt's commands, which are ignored afterwards. */
  close(): void
}

const drainSignal = defineSignal<[DrainRequest]>(DRAIN_SIGNAL)
const extendSignal = defineSignal<[ExtendRequest]>(EXTEND_SIGNAL)

/** The commands of an attempt, from its job, from its watch, and by cancellation. */
export function listen({ timing }: AttemptInput): AttemptCommands {
  const commands = {
    drain: null as DrainRequest | null,
    isOnRecord: false,
    isOverruled: false,
    limits: [] as Limits[],
    isClosed: false,
    expire: (windowMs: number): void => drain({ reason: 'expired', windowMs }),
    reachBudget: () => drain({ reason: 'budget', windowMs: timing.drainMs }),
    close: (): void => {
      commands.isClosed = true
    },
  }
  const drain = (request: DrainRequest): void => {
    const { drain: first } = commands
    if (first === null) commands.drain = request
    else if (request.windowMs < first.windowMs) commands.drain = { ...first, windowMs: request.windowMs }
    if (first === null || request.reason !== 'cancelled') return
    const isNews = first.reason !== 'cancelled' || !commands.isOnRecord
    if (!isNews || !patched('cancellations-overrule')) return
    commands.drain = { reason: 'cancelled', windowMs: Math.min(request.windowMs, first.windowMs) }
    commands.isOverruled = true
  }
  setHandler(drainSignal, drain, { description: 'Save and stop within a window.' })
  setHandler(extendSignal, ({ limits }) => void commands.limits.push(limits), {
    description: 'New deadline or budget.',
  })
  // An external cancellation, by hand or with its job, is equivalent to a request to save and stop.
  CancellationScope.current().cancelRequested.catch(() => {
    drain({ reason: 'superseded', windowMs: timing.drainMs })
  })
  return commands
}

/**
 * Waits for the request to save and stop, passes it on, and resolves when its window is over and the attempt has not ended: the machine is
 * then terminated without further waiting.
 */
export async function obeyDrain(
  input: AttemptInput,
  page: AttemptPage,
  { commands, machine }: { commands: AttemptCommands; machine: Machine },
): Promise<AttemptEnd | null> {
  const { timing } = input
  await condition(() => commands.drain !== null || commands.isClosed)
  if (commands.drain === null) return new Promise(() => undefined)
  page.stopping(commands.drain.reason)
  for (let seq = 1; ; seq += 1) {
    const { reason, windowMs } = commands.drain
    const beganMs = Date.now()
    const drain = { reason, windowMs, seq: seq > 1 ? seq : undefined }
    const isTold = await tellMachine(input, machine, { commands, drain })
    if (!isTold && !(await isWritten(input, page, drain))) return null
    commands.isOnRecord = true
    const passedMs = isTold ? Date.now() - beganMs : 0
    // The runner reads the request at its next poll, and powers off at the end of the window.
    const obeysWithinMs = windowMs + timing.powerOffMs + 2 * timing.beatMs - passedMs
    // A queued machine has nothing to save.
    const allowanceMs = machine.isQueued === true ? 0 : Math.max(0, obeysWithinMs)
    const isShortened = await condition(
      () => commands.isClosed || (commands.drain?.windowMs ?? 0) < windowMs,
      allowanceMs,
      {
        summary: 'time to save and stop',
      },
    )
    if (commands.isClosed) return new Promise(() => undefined)
    // The job does not want it to stop: it continues elsewhere.
    if (!isShortened) return reason === 'expired' ? { kind: 'stopped', by: 'expired' } : null
  }
}

/**
 * Resolves when a job was cancelled while an earlier request to save and stop was on its way, and a store that is away has not taken that one
 * within the window of the cancellation: the settlement then ends the machine through its provider.
 */
export async function giveUpStore({ timing }: AttemptInput, commands: AttemptCommands): Promise<null> {
  const isSettled = (): boolean => commands.isOnRecord || commands.isClosed
  await condition(() => commands.isOverruled || isSettled())
  while (!isSettled()) {
    const { windowMs } = commands.drain!
    const isShortened = (): boolean => commands.drain!.windowMs < windowMs
    const isAnswered = await condition(() => isSettled() || isShortened(), windowMs + timing.powerOffMs, {
      summary: 'time for the store to take the request',
    })
    if (!isAnswered) return null
  }
  return new Promise(() => undefined)
}

/** The machine of the attempt, after its launch. */
export interface Machine {
  handle: MachineHandle | null
  /** Whether it waits in its provider's queue, so that nothing runs yet. */
  isQueued?: boolean
}

/**
 * Sends the drain to the machine by a direct call, which works only for a runner that was started by a call. Returns
 * false if the request still has to be written: the backend has no worker, the store did not answer, or no time is left.
 */
async function tellMachine(
  { order, timing }: AttemptInput,
  { handle, isQueued = false }: Machine,
  { commands, drain }: { commands: AttemptCommands; drain: Omit<Drain, 'requestedAtMs'> },
): Promise<boolean> {
  const { windowMs } = drain
  if (order.runnerStart !== 'after-launch' || handle === null || isQueued || windowMs === 0) return false
  const patienceMs = Math.min(2 * timing.beatMs + OBEYED_WITHIN_MS, windowMs / 2)
  const telling = kept(
    pressing(order.backend)
      .drainMachine({ order, handle, drain, patienceMs })
      .catch(() => ({ isOnRecord: false })),
  )
  const isOver = (): boolean => commands.isClosed || (commands.drain?.windowMs ?? 0) < windowMs
  const told = await Promise.race([
    telling,
    condition(isOver).then(() => ({ isOnRecord: commands.isClosed })),
  ])
  return told.isOnRecord
}

/**
 * Writes the request for the runner, however long that takes. Returns false if a store that is away has not taken the request of a cancelled
 * job within its window: the settlement then ends the machine through its provider.
 */
async function isWritten(
  { order, timing }: AttemptInput,
  page: AttemptPage,
  drain: Omit<Drain, 'requestedAtMs'>,
): Promise<boolean> {
  const request = { jobId: order.jobId, attempt: order.attempt, drain }
  if (drain.reason === 'cancelled') {
    const untilMs = Date.now() + drain.windowMs + timing.powerOffMs
    for (let leftMs = untilMs - Date.now(); leftMs > 0; leftMs = untilMs - Date.now()) {
      try {
        await drainWithin(leftMs).drain(request)
        return true
      } catch {
        // The server gives a request up early if its next try would be too late: the rest of the window is used too.
        const pauseMs = Math.min(GIVEN_UP_PAUSE_MS, untilMs - Date.now())
        if (pauseMs > 0) await page.retries.pause(pauseMs, { summary: 'the store is away: trying again' })
      }
    }
    return false
  }
  await forever(() => orchestrator.drain(request), page)
  return true
}

/** Longest pause before a request that was given up is written again. */
const GIVEN_UP_PAUSE_MS = 10_000
/** Time from reading the request to the beat that confirms it, over a slow line. */
const OBEYED_WITHIN_MS = 5_000

/** Writes each new limit for the runner; a limit that could not be written is useless once the attempt is settled. */
export async function obeyExtensions(
  input: AttemptInput,
  page: AttemptPage,
  { commands, life }: { commands: AttemptCommands; life: { isSettled: boolean } },
): Promise<void> {
  const { jobId, attempt: number } = input.order
  for (;;) {
    await condition(() => commands.limits.length > 0 || commands.isClosed)
    const limits = commands.limits.shift()
    if (limits === undefined) return
    await foreverUntil(
      () => life.isSettled,
      () => orchestrator.extend({ jobId, attempt: number, limits }),
      page,
    )
  }
}
