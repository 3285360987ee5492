import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import { jobWorkflowId } from '../../core/queues'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { wakeThrough } from '../../workers/waking'
import type { JumpingClock } from '../backends/scripted/clock'
import { patient } from '../support/patience'
import type { Boundary, SeenRun } from './boundary'

/** Something that a scenario does at an instant. */
export interface Event {
  atMs: number
  act: () => unknown
}

/** What the driver drives. A deployment without workers has no client: its clock continues alone. */
export interface Driven {
  clock: JumpingClock
  boundary: Boundary
  client: Client
  isServed: boolean
  /** Resolves once each watch has looked. */
  looked: () => Promise<void>
}

/** Nothing is at work for this long before the clock jumps. */
const CALM_MS = 12
const CALM_LIMIT_MS = 20_000
const LOOK_EVERY_MS = 3
const ASK_EVERY_MS = 100
/** While a machine is watched. Longer than any beat, and shorter than the silence after which it counts as lost. */
const STEP_MS = 10 * MINUTE_MS
/** While a job asks for a place, which it does every few seconds. */
const ASK_STEP_MS = 10 * SECOND_MS
/** No workflow waits that long: one that does not wake is stuck. */
const JUMP_MAX_MS = 60 * DAY_MS

/**
 * The server can skip time only for a workflow without a pending child or activity, and a run has its reservation or its job nearly always. So
 * the clock is driven here, for all workflows and the provider together: workflows wait for it by timers that a signal ends (`waking.ts`).
 * What stays in real time are the server's own timeouts and retries of activities: an activity that no worker takes for a day does not time
 * out. Each wait leaves one event more than in production.
 *
 * It jumps from one instant at which something is due to the next, and lets everything that it causes come to rest in between.
 */
export class Driver {
  readonly events: Event[] = []

  constructor(private readonly driven: Driven) {}

  at(atMs: number, act: Event['act']): void {
    this.events.push({ atMs, act })
    this.events.sort((one, other) => one.atMs - other.atMs)
  }

  /** Until something is so, or the clock has come to an instant. Returns whether it is so. */
  async until(isSo: () => boolean | Promise<boolean>, limitAtMs: number): Promise<boolean> {
    const { clock } = this.driven
    for (;;) {
      await this.calm()
      if (await isSo()) return true
      if (clock.now() >= limitAtMs) return false
      await this.step(limitAtMs)
    }
  }

  private async step(limitAtMs: number): Promise<void> {
    const { driven, events } = this
    const { clock, boundary, client } = driven
    const nowMs = clock.now()
    const isWatched = driven.isServed && boundary.isWatching
    const dueAtMs = driven.isServed ? boundary.dueAtMs : Infinity
    const isAsking = driven.isServed && boundary.asking.length > 0
    const stepMs = isAsking ? ASK_STEP_MS : isWatched ? STEP_MS : JUMP_MAX_MS
    const toMs = Math.min(dueAtMs, events[0]?.atMs ?? Infinity, nowMs + stepMs, limitAtMs)
    // What was sent before the jump has the time before it.
    await sleep(2)
    await clock.jumpTo(toMs)
    while ((events[0]?.atMs ?? Infinity) <= clock.now()) await events.shift()!.act()
    if (!driven.isServed) return
    const due = boundary.open.filter(({ timers }) => Math.min(...timers.values()) <= clock.now())
    await Promise.all(due.map((run) => wake(client, run)))
    if (isWatched) await driven.looked()
    await Promise.all(boundary.asking.map((run) => this.askAgain(run)))
  }

  /** Its pauses are in real time: they are cut short. */
  private async askAgain({ workflowId }: SeenRun): Promise<void> {
    const { boundary, client } = this.driven
    const before = boundary.timesAsked(workflowId)
    const untilMs = performance.now() + patient(CALM_LIMIT_MS)
    const isAsking = (): boolean => boundary.asking.some((run) => run.workflowId === workflowId)
    while (isAsking() && boundary.timesAsked(workflowId) === before && performance.now() < untilMs) {
      await wakeThrough(client)(workflowId.slice(jobWorkflowId('').length))
      await sleep(ASK_EVERY_MS)
    }
  }

  /** Until nothing is at work. */
  async calm(): Promise<void> {
    const { driven } = this
    if (!driven.isServed) return
    const untilMs = performance.now() + patient(CALM_LIMIT_MS)
    let sinceMs: number | undefined
    for (;;) {
      const nowMs = performance.now()
      if (driven.boundary.isBusy) sinceMs = undefined
      // A task may have become work while the server was asked.
      else if (nowMs - (sinceMs ??= nowMs) >= CALM_MS && !(await this.hasTasks()) && !driven.boundary.isBusy)
        return
      if (nowMs > untilMs) throw new Error(`no rest within ${CALM_LIMIT_MS} ms: ${describe(driven.boundary)}`)
      await sleep(LOOK_EVERY_MS)
    }
  }

  /** What no worker has taken yet; and runs that were ended by hand, or that a restored server does not know. */
  private async hasTasks(): Promise<boolean> {
    const { client, boundary } = this.driven
    const looks = boundary.open.map(async (run) => {
      try {
        const { workflowId, runId } = run
        const handle = client.workflow.getHandle(workflowId, runId)
        const { raw } = await handle.describe()
        if (Number(raw.workflowExecutionInfo?.status) !== RUNNING) run.isOpen = false
        return raw.pendingWorkflowTask != null
      } catch (error) {
        if ((error as Error).name !== 'WorkflowNotFoundError') throw error
        run.isOpen = false
        return false
      }
    })
    return (await Promise.all(looks)).some((has) => has)
  }
}

/** `temporal.api.enums.v1.WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING` */
const RUNNING = 1

async function wake(client: Client, run: SeenRun): Promise<void> {
  run.wakings += 1
  // One that has just ended needs no waking.
  await client.workflow
    .getHandle(run.workflowId, run.runId)
    .signal('wake')
    .catch(() => undefined)
}

function describe(boundary: Boundary): string {
  return boundary.open
    .map(({ workflowId, activities, children, signals, timers, events }) =>
      [
        workflowId,
        ...activities.values(),
        ...[...children.values()].map((child) => child.workflowId),
        signals.size,
        ...[...timers].map(([seq, atMs]) => `${seq}@${new Date(atMs).toISOString().slice(5, 19)}`),
        `e${events}`,
      ].join(' '),
    )
    .join('; ')
}
