import { ApplicationFailure, CancellationScope, condition } from '@temporalio/workflow'
import type { Settlement, WatchOutcome } from '../core/activities'
import type { RunnerWarning } from '../core/checkpoint'
import type { Drain, DrainReason } from '../core/documents'
import type { MachineHandle } from '../core/handle'
import type { AttemptEnd } from '../core/ledger'
import { ATTEMPT_FAILED, type AttemptInput, type AttemptOutcome } from '../core/messages'
import { formatDuration } from '../core/time'
import { on, orchestrator, pressing } from './activities'
import { AttemptPage } from './attempt-page'
import { attemptOrders, type AttemptOrders } from './attempt-orders'
import { forever, foreverUntil, kept } from './forever'
import { failedLaunch, launch, startRunner } from './launch'
import { settleInWindow } from './settlement'
import { warnJob } from './warn-job'

/**
 * One placement of a job on one machine, from its order until the machine has certainly ended. It is never cut short: every
 * cancellation becomes a drain, and everything here runs in scopes that cancellation does not reach.
 */
export async function attempt(input: AttemptInput): Promise<AttemptOutcome> {
  const page = new AttemptPage(input)
  const orders = attemptOrders(input)
  const outcome = await CancellationScope.nonCancellable(() => live(input, page, orders))
  const { end } = outcome.settlement
  // Temporal's list shows how a workflow closed: an attempt that lost its machine must not look successful there.
  if (end.kind === 'failed') {
    const { message } = end.failure
    throw ApplicationFailure.create({ message, type: ATTEMPT_FAILED, nonRetryable: true, details: [outcome] })
  }
  return outcome
}

async function live(input: AttemptInput, page: AttemptPage, orders: AttemptOrders): Promise<AttemptOutcome> {
  const life = { isSettled: false }
  const extending = kept(obeyExtensions(input, page, { orders, life }))
  await holdBack(input, page, orders)
  if (orders.drain !== undefined) return callOff(input, page, { orders, by: orders.drain.reason })
  page.ordering()
  const machine: Machine = { handle: null }
  const draining = kept(obeyDrain(input, page, { orders, machine }))
  const launched = await launch(input).catch(failedLaunch)
  if (launched.kind === 'untouched') {
    orders.close()
    return page.over({ settlement: launched.settlement })
  }
  const { handle } = launched
  machine.handle = handle
  const end =
    handle === null ? launched.end : await Promise.race([follow(input, page, { orders, handle }), draining])
  orders.close()
  const settlement = await settle(input, page, { orders, handle, end })
  life.isSettled = true
  await extending
  return page.over({ settlement })
}

/** The pause before the order goes out, ended early by an order to stop or to retry now. */
async function holdBack({ pause }: AttemptInput, page: AttemptPage, orders: AttemptOrders): Promise<void> {
  if (pause === undefined) return
  await page.retries.pause(pause.forMs, {
    summary: 'before trying again',
    isOver: () => orders.drain !== undefined,
  })
}

/** Ends an attempt whose order has not gone out. */
async function callOff(
  input: AttemptInput,
  page: AttemptPage,
  { orders, by }: { orders: AttemptOrders; by: DrainReason },
): Promise<AttemptOutcome> {
  orders.close()
  const { order, settleSeq } = input
  const end: AttemptEnd = { kind: 'stopped', by }
  const { settlement } = await forever(
    () => orchestrator.withdraw({ order, end, recordSeq: settleSeq }),
    page,
  )
  return page.over({ settlement: settlement ?? (await settle(input, page, { orders, handle: null, end })) })
}

function settle(
  input: AttemptInput,
  page: AttemptPage,
  { orders, handle, end }: { orders: AttemptOrders; handle: MachineHandle | null; end: AttemptEnd | null },
): Promise<Settlement> {
  const { order, timing, settleSeq } = input
  // A drain has had its window; any other end of an attempt leaves nothing to wait for on the machine, or no runner.
  const windowMs = end === null || orders.drain !== undefined ? 0 : timing.drainMs
  return settleInWindow({
    ...{ order, windowMs, page },
    requested: () => orders.drain,
    settle: () =>
      on(order.backend).ending.settle({
        ...{ order, timing, handle, end },
        wish: orders.wish(),
        windowMs: Math.min(windowMs, orders.drain?.windowMs ?? windowMs),
        recordSeq: settleSeq,
      }),
  })
}

/** Follows the machine until its attempt ends: how it ended. */
async function follow(
  input: AttemptInput,
  page: AttemptPage,
  { orders, handle }: { orders: AttemptOrders; handle: MachineHandle },
): Promise<AttemptEnd | null> {
  const { order, timing } = input
  let isRunning = false
  let isExpiring = false
  let isBudgetReached = false
  let warned: RunnerWarning['kind'] | null = null
  let warningsLeft = WARNINGS_TOLD_MAX
  // Repeated if the runner never reports: harmless if it runs, and a fix if it never did.
  let startsLeft = order.runnerStart === 'with-launch' ? 0 : 2
  const start = async (): Promise<AttemptEnd | null> => {
    const answer = await startRunner(input, handle)
    startsLeft = answer === 'started' ? startsLeft - 1 : 0
    return typeof answer === 'string' ? null : answer
  }
  if (startsLeft > 0) {
    const end = await start()
    if (end !== null) return end
  }
  for (;;) {
    const seen: WatchOutcome = await forever(
      () =>
        on(order.backend).watching.watch({
          order,
          handle,
          timing,
          isRunning,
          ...(isExpiring && { isExpiring }),
          ...(isBudgetReached && { isBudgetReached }),
          ...(warningsLeft > 0 && { warned }),
        }),
      page,
    )
    switch (seen.kind) {
      case 'running':
        isRunning = true
        page.running(handle)
        // Views read it here and in the runner's beat: a signal to the job would cost five events per attempt.
        break
      case 'warned':
        warned = seen.warning?.kind ?? null
        warningsLeft -= 1
        page.warn(seen.warning)
        await warnJob({ attempt: order.attempt, warning: seen.warning })
        break
      case 'expiring':
        isExpiring = true
        orders.expire(Math.min(seen.leftMs, timing.drainMs))
        break
      case 'budget':
        isBudgetReached = true
        orders.reachBudget()
        break
      case 'over':
        return seen.end
      case 'silent': {
        const end = startsLeft > 0 ? await start() : silence(seen.silentMs)
        if (end !== null) return end
      }
    }
  }
}

/** Limit on the changes of warnings shown: each costs some events, and a runner may change its warning often. */
const WARNINGS_TOLD_MAX = 6

function silence(silentMs: number): AttemptEnd {
  const message = `The machine runs, but its runner has been silent for ${formatDuration(silentMs)} while the provider and the store answered.`
  return { kind: 'failed', isLaunched: true, failure: { class: 'interrupted', message, code: 'silent' } }
}

/**
 * Waits for the order to save and stop, passes it on, and resolves when its window is over without an end of the attempt: the
 * machine is then terminated without further waiting.
 */
async function obeyDrain(
  input: AttemptInput,
  page: AttemptPage,
  { orders, machine }: { orders: AttemptOrders; machine: Machine },
): Promise<AttemptEnd | null> {
  const { order, timing } = input
  await condition(() => orders.drain !== undefined || orders.isClosed)
  if (orders.drain === undefined) return new Promise(() => undefined)
  page.stopping(orders.drain.reason)
  for (let seq = 1; ; seq += 1) {
    const { reason, windowMs } = orders.drain
    const beganMs = Date.now()
    const drain = { reason, windowMs, ...(seq > 1 && { seq }) }
    const isTold = await tellMachine(input, machine, { orders, drain })
    if (!isTold)
      await forever(() => orchestrator.drain({ jobId: order.jobId, attempt: order.attempt, drain }), page)
    const passedMs = isTold ? Date.now() - beganMs : 0
    // The runner reads the order at its next poll, and powers off at the end of the window.
    const allowanceMs = Math.max(0, windowMs + timing.powerOffMs + 2 * timing.beatMs - passedMs)
    const isShortened = await condition(
      () => orders.isClosed || (orders.drain?.windowMs ?? 0) < windowMs,
      allowanceMs,
      {
        summary: 'time to save and stop',
      },
    )
    if (orders.isClosed) return new Promise(() => undefined)
    // The job does not want it to stop: it continues elsewhere.
    if (!isShortened) return reason === 'expired' ? { kind: 'stopped', by: 'expired' } : null
  }
}

/** The machine of the attempt, once there is one. */
interface Machine {
  handle: MachineHandle | null
}

/**
 * If we started the runner by a call, we can also reach it by one if it does not obey. False if its order to drain still has to
 * be written: the backend has no worker, the store did not answer, or no time is left.
 */
async function tellMachine(
  { order, timing }: AttemptInput,
  { handle }: Machine,
  { orders, drain }: { orders: AttemptOrders; drain: Omit<Drain, 'requestedAtMs'> },
): Promise<boolean> {
  const { windowMs } = drain
  if (order.runnerStart !== 'after-launch' || handle === null || windowMs === 0) return false
  const patienceMs = Math.min(2 * timing.beatMs + OBEYED_WITHIN_MS, windowMs / 2)
  const telling = kept(
    pressing(order.backend)
      .drainMachine({ order, handle, drain, patienceMs })
      .catch(() => ({ isOnRecord: false })),
  )
  const isOver = (): boolean => orders.isClosed || (orders.drain?.windowMs ?? 0) < windowMs
  const told = await Promise.race([telling, condition(isOver).then(() => ({ isOnRecord: orders.isClosed }))])
  return told.isOnRecord
}

/** Time from reading the order to the beat that confirms it, over a slow line. */
const OBEYED_WITHIN_MS = 5_000

/** Writes each new limit for the runner; a limit that could not be written is useless once the attempt is settled. */
async function obeyExtensions(
  input: AttemptInput,
  page: AttemptPage,
  { orders, life }: { orders: AttemptOrders; life: { isSettled: boolean } },
): Promise<void> {
  const { jobId, attempt: number } = input.order
  for (;;) {
    await condition(() => orders.limits.length > 0 || orders.isClosed)
    const limits = orders.limits.shift()
    if (limits === undefined) return
    await foreverUntil(
      () => life.isSettled,
      () => orchestrator.extend({ jobId, attempt: number, limits }),
      page,
    )
  }
}
