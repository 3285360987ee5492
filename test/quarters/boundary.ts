/** What passes between the workers and Temporal's Core: here the workflows get a driven clock, and here is seen what they wait for. */
import { coresdk } from '@temporalio/proto'
import type { Worker } from '@temporalio/worker'
import type { JumpingClock } from '../backends/scripted/clock'

/** Activities that end only when something else has happened; the clock continues while they run. */
const ASKING = 'planWhenAvailable'
const WAITING_ACTIVITIES = ['watch', 'releaseCapacity', ASKING]

/** A run of a workflow, as its worker sees it. */
export interface SeenRun {
  workflowId: string
  runId: string
  type: string
  isOpen: boolean
  nowMs: number
  /** Instants at which its timers are due, by their number. */
  timers: Map<number, number>
  /** Types of its activities that are not over, by their number. */
  activities: Map<number, string>
  /** Children that are being started, or are over without its knowledge. */
  children: Map<number, { workflowId: string; isStarted: boolean }>
  signals: Set<number>
  events: number
  bytes: number
  wakings: number
  hasContinued: boolean
}

type Activation = coresdk.workflow_activation.IWorkflowActivation
type Command = coresdk.workflow_commands.IWorkflowCommand

/** The calls of the worker to Core that are wrapped. The SDK declares them as its own. */
interface Core {
  pollWorkflowActivation: () => Promise<ArrayBuffer>
  completeWorkflowActivation: (completion: Buffer) => Promise<void>
  pollActivityTask: () => Promise<ArrayBuffer>
}

export class Boundary {
  readonly runs = new Map<string, SeenRun>()
  /** Activations that a worker works on. */
  private readonly working = new Set<string>()
  /** How often each workflow's jobs have asked for a place, by its id. */
  private readonly asked = new Map<string, number>()

  constructor(readonly clock: JumpingClock) {}

  /** From now on the workflows and activities of this worker have the clock's time. */
  put(worker: Worker): Worker {
    const core = (worker as unknown as { nativeWorker: Core }).nativeWorker
    const { pollWorkflowActivation, completeWorkflowActivation, pollActivityTask } = core
    const { WorkflowActivation } = coresdk.workflow_activation
    const { WorkflowActivationCompletion } = coresdk.workflow_completion
    const { ActivityTask } = coresdk.activity_task
    core.pollWorkflowActivation = async () => {
      const activation = WorkflowActivation.decode(new Uint8Array(await pollWorkflowActivation()))
      this.activated(activation)
      return bytesOf(WorkflowActivation.encode(activation).finish())
    }
    core.completeWorkflowActivation = async (bytes) => {
      const { runId, successful } = WorkflowActivationCompletion.decodeDelimited(bytes)
      for (const command of successful?.commands ?? []) this.commanded(runId, command)
      try {
        return await completeWorkflowActivation(bytes)
      } finally {
        this.working.delete(runId)
      }
    }
    core.pollActivityTask = async () => {
      const task = ActivityTask.decode(new Uint8Array(await pollActivityTask()))
      const { start } = task
      const asker = start?.activityType === ASKING ? start.workflowExecution?.workflowId : undefined
      if (asker != null) this.asked.set(asker, this.timesAsked(asker) + 1)
      if (start != null)
        for (const name of ['scheduledTime', 'startedTime', 'currentAttemptScheduledTime'] as const)
          this.shift(start[name])
      return bytesOf(ActivityTask.encode(task).finish())
    }
    return worker
  }

  /** Forgets the work of workers that have stopped: the server gives it out again. */
  stopped(): void {
    this.working.clear()
  }

  /** What the runs wait for, to be put back with the server that knows them. */
  kept(): SeenRun[] {
    return structuredClone(this.open)
  }

  putBack(kept: readonly SeenRun[]): void {
    for (const run of this.runs.values()) run.isOpen = false
    for (const run of kept) this.runs.set(run.runId, structuredClone(run))
  }

  get open(): SeenRun[] {
    return [...this.runs.values()].filter(({ isOpen }) => isOpen)
  }

  /** Whether workflows or activities are at work, as far as the workers know. */
  get isBusy(): boolean {
    return this.working.size > 0 || this.open.some((run) => isAtWork(run, this.open))
  }

  /** Whether a machine is watched: a jump must not be longer than it may be silent. */
  get isWatching(): boolean {
    return this.open.some(({ activities }) => [...activities.values()].includes('watch'))
  }

  /** Runs that wait for a place, and ask for it again and again. */
  get asking(): SeenRun[] {
    return this.open.filter(({ activities }) => [...activities.values()].includes(ASKING))
  }

  timesAsked(workflowId: string): number {
    return this.asked.get(workflowId) ?? 0
  }

  /** The next instant at which a workflow is to be woken. */
  get dueAtMs(): number {
    return Math.min(Infinity, ...this.open.flatMap(({ timers }) => [...timers.values()]))
  }

  private activated(activation: Activation): void {
    const { runId, jobs, historyLength, historySizeBytes } = activation
    const isQuery = jobs?.some(({ queryWorkflow }) => queryWorkflow != null) ?? false
    this.shift(activation.timestamp)
    this.working.add(runId!)
    for (const { initializeWorkflow: init } of jobs ?? []) {
      if (init == null) continue
      this.shift(init.startTime)
      const before = this.runs.get(runId!)
      this.runs.set(runId!, {
        workflowId: init.workflowId!,
        runId: runId!,
        type: init.workflowType!,
        isOpen: true,
        nowMs: 0,
        timers: new Map(),
        activities: new Map(),
        children: new Map(),
        signals: new Set(),
        events: 0,
        bytes: 0,
        wakings: before?.wakings ?? 0,
        hasContinued: false,
      })
    }
    const run = this.runs.get(runId!)
    if (run === undefined) return
    if (!isQuery && activation.timestamp != null) run.nowMs = millis(activation.timestamp)
    run.events = Math.max(run.events, historyLength ?? 0)
    run.bytes = Math.max(run.bytes, Number(historySizeBytes ?? 0))
    for (const job of jobs ?? []) resolved(run, job)
  }

  private commanded(runId: string, command: Command): void {
    const run = this.runs.get(runId)
    if (run === undefined) return
    const { startTimer, cancelTimer, scheduleActivity, startChildWorkflowExecution: child } = command
    const { signalExternalWorkflowExecution: signal } = command
    if (startTimer != null)
      run.timers.set(startTimer.seq!, run.nowMs + millis(startTimer.startToFireTimeout!))
    if (cancelTimer != null) run.timers.delete(cancelTimer.seq!)
    if (scheduleActivity != null) run.activities.set(scheduleActivity.seq!, scheduleActivity.activityType!)
    if (child != null) run.children.set(child.seq!, { workflowId: child.workflowId!, isStarted: false })
    if (signal != null) run.signals.add(signal.seq!)
    const { completeWorkflowExecution, failWorkflowExecution, cancelWorkflowExecution } = command
    const { continueAsNewWorkflowExecution } = command
    const ends = [completeWorkflowExecution, failWorkflowExecution, cancelWorkflowExecution]
    if (continueAsNewWorkflowExecution != null) run.hasContinued = true
    if ([...ends, continueAsNewWorkflowExecution].some((one) => one != null)) run.isOpen = false
  }

  /** Changes an instant in place to what the driven clock said then. */
  private shift(timestamp: Timestamp | null | undefined): void {
    if (timestamp == null) return
    const atMs = this.clock.of(millis(timestamp))
    // Long is what the decoder gives; the encoder also takes numbers.
    timestamp.seconds = Math.floor(atMs / 1_000)
    timestamp.nanos = (atMs % 1_000) * 1e6
  }
}

interface Timestamp {
  seconds?: { toString(): string } | null
  nanos?: number | null
}

function millis({ seconds, nanos }: Timestamp): number {
  return Number(seconds ?? 0) * 1_000 + Math.floor((nanos ?? 0) / 1e6)
}

function resolved(run: SeenRun, job: coresdk.workflow_activation.IWorkflowActivationJob): void {
  const { fireTimer, resolveActivity, resolveSignalExternalWorkflow: signal } = job
  const { resolveChildWorkflowExecutionStart: start, resolveChildWorkflowExecution: child } = job
  if (fireTimer != null) run.timers.delete(fireTimer.seq!)
  if (resolveActivity != null) run.activities.delete(resolveActivity.seq!)
  if (signal != null) run.signals.delete(signal.seq!)
  if (child != null) run.children.delete(child.seq!)
  if (start?.succeeded != null) run.children.get(start.seq!)!.isStarted = true
  else if (start != null) run.children.delete(start.seq!)
}

/** A child counts once it is started and its run is under way: what it does then is its own work. */
function isAtWork({ activities, children, signals }: SeenRun, open: readonly SeenRun[]): boolean {
  const isChildBusy = [...children.values()].some(
    ({ workflowId, isStarted }) => !isStarted || !open.some((run) => run.workflowId === workflowId),
  )
  const works = [...activities.values()].some((type) => !WAITING_ACTIVITIES.includes(type))
  return works || isChildBusy || signals.size > 0
}

function bytesOf(bytes: Uint8Array): ArrayBuffer {
  // A copy: the encoder's bytes are a part of a larger buffer.
  return new Uint8Array(bytes).buffer
}
