import { ApplicationFailure, CancellationScope } from '@temporalio/workflow'
import type { Settlement, WatchOutcome } from '../../core/activities'
import type { RunnerWarning } from '../../core/job/checkpoint'
import type { DrainReason } from '../../core/job/drain'
import type { MachineHandle } from '../../core/handle'
import type { AttemptEnd } from '../../core/job/ledger'
import { ATTEMPT_FAILED, type AttemptInput, type AttemptOutcome } from '../../core/messages'
import { formatDuration } from '../../core/time/time'
import { on, orchestrator, watching } from '../activities'
import {
  giveUpStore,
  listen,
  obeyDrain,
  obeyExtensions,
  type AttemptCommands,
  type Machine,
} from './attempt-commands'
import { AttemptPage } from './attempt-page'
import { forever, kept } from '../forever'
import { failedLaunch, launch, RunnerStarts } from './launch'
import { settleInWindow } from './settlement'
import { warnJob } from '../warn-job'

/**
 * One placement of a job on one machine, from its order until the machine has certainly ended. It is never cut short: every
 * cancellation becomes a drain, and everything here runs in scopes that cancellation does not reach.
 */
export async function attempt(input: AttemptInput): Promise<AttemptOutcome> {
  const page = new AttemptPage(input)
  const commands = listen(input)
  const outcome = await CancellationScope.nonCancellable(() => live(input, page, commands))
  const { end } = outcome.settlement
  // The attempt fails, because Temporal's list shows how a workflow closed, and an attempt that lost its machine must not look successful
  // there.
  if (end.kind === 'failed') {
    const { message } = end.failure
    throw ApplicationFailure.create({ message, type: ATTEMPT_FAILED, nonRetryable: true, details: [outcome] })
  }
  return outcome
}

async function live(
  input: AttemptInput,
  page: AttemptPage,
  commands: AttemptCommands,
): Promise<AttemptOutcome> {
  const life = { isSettled: false }
  const extending = kept(obeyExtensions(input, page, { commands, life }))
  await holdBack(input, page, commands)
  if (commands.drain !== null) return callOff(input, page, { commands, by: commands.drain.reason })
  page.ordering()
  const machine: Machine = { handle: null }
  const draining = kept(obeyDrain(input, page, { commands, machine }))
  const givingUp = kept(giveUpStore(input, commands))
  const launched = await launch(input, commands).catch(failedLaunch)
  if (launched.kind === 'untouched') {
    commands.close()
    return page.over({ settlement: launched.settlement })
  }
  const { handle } = launched
  machine.handle = handle
  const end =
    handle === null
      ? launched.end
      : await Promise.race([follow(input, page, { commands, handle, machine }), draining, givingUp])
  commands.close()
  const settlement = await settle(input, page, { commands, handle, end })
  life.isSettled = true
  await extending
  return page.over({ settlement })
}

/** The pause before the order goes out, ended early by a request to drain or to retry now. */
async function holdBack(
  { pause }: AttemptInput,
  page: AttemptPage,
  commands: AttemptCommands,
): Promise<void> {
  if (pause === undefined) return
  await page.retries.pause(pause.forMs, {
    summary: 'before trying again',
    isOver: () => commands.drain !== null,
  })
}

/** Ends an attempt whose order has not gone out. */
async function callOff(
  input: AttemptInput,
  page: AttemptPage,
  { commands, by }: { commands: AttemptCommands; by: DrainReason },
): Promise<AttemptOutcome> {
  commands.close()
  const { order, settleSeq } = input
  const end: AttemptEnd = { kind: 'stopped', by }
  const { settlement } = await forever(
    () => orchestrator.withdraw({ order, end, recordSeq: settleSeq }),
    page,
  )
  return page.over({ settlement: settlement ?? (await settle(input, page, { commands, handle: null, end })) })
}

function settle(
  input: AttemptInput,
  page: AttemptPage,
  {
    commands,
    handle,
    end,
  }: { commands: AttemptCommands; handle: MachineHandle | null; end: AttemptEnd | null },
): Promise<Settlement> {
  const { order, timing, settleSeq } = input
  // A drain has had its window; any other end of an attempt leaves nothing to wait for on the machine, or no runner.
  const windowMs = commands.drain === null ? timing.drainMs : 0
  return settleInWindow({
    order,
    windowMs,
    page,
    requested: () => commands.drain,
    settle: () =>
      on(order.backend).ending.settle({
        order,
        timing,
        handle,
        end,
        drainReason: commands.drain?.reason ?? null,
        windowMs: Math.min(windowMs, commands.drain?.windowMs ?? windowMs),
        recordSeq: settleSeq,
      }),
  })
}

/** Follows the machine until its attempt ends: how it ended. */
async function follow(
  input: AttemptInput,
  page: AttemptPage,
  { commands, handle, machine }: { commands: AttemptCommands; handle: MachineHandle; machine: Machine },
): Promise<AttemptEnd | null> {
  const { order, timing } = input
  let isRunning = false
  let isExpiring = false
  let isBudgetReached = false
  let warned: RunnerWarning['kind'] | null = null
  let warningsLeft = WARNINGS_TOLD_MAX
  const starts = new RunnerStarts(input, handle)
  // A machine that may be queued is started once it has begun.
  let mayBeQueued = order.runner.queueMs !== undefined
  const failed = mayBeQueued ? null : await starts.next()
  if (failed !== null) return failed
  for (;;) {
    const seen: WatchOutcome = await forever(
      () =>
        watching(order.backend, timing).watch({
          order,
          handle,
          timing,
          isRunning,
          isExpiring: isExpiring || undefined,
          isBudgetReached: isBudgetReached || undefined,
          isQueued: mayBeQueued ? machine.isQueued === true : undefined,
          warned: warningsLeft > 0 ? warned : undefined,
        }),
      page,
    )
    switch (seen.kind) {
      case 'queued':
        machine.isQueued = true
        page.queued(handle)
        break
      case 'begun': {
        machine.isQueued = mayBeQueued = false
        page.begun()
        const end = await starts.next(seen.fromAtMs)
        if (end !== null) return end
        break
      }
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
        commands.expire(Math.min(seen.leftMs, timing.drainMs))
        break
      case 'budget':
        isBudgetReached = true
        commands.reachBudget()
        break
      case 'over':
        return seen.end
      case 'silent': {
        const end = starts.left > 0 ? await starts.next() : silence(seen.silentMs)
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
