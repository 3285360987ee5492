import { createHash } from 'node:crypto'
import type { Checkpoint } from '../../../core/job/checkpoint'
import type {
  Artifact,
  Beat,
  Claim,
  Drain,
  IssuedRunnerOrder,
  Lease,
  Limits,
  Phase,
  Progress,
  RunnerPhase,
  RunnerResult,
} from '../../../core/documents'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { StoreError, type ObjectStore } from '../../../storage/store'
import type { Behaviour } from './behaviour'
import { restoreNewest, saveCheckpoint, UNTRAINED, type State } from './checkpoints'
import type { Clock } from './clock'
import { RunnerLog } from './runner-log'
import { RunnerTerms } from './runner-terms'
import { ScriptedWorkload, type WorkloadEvent } from './scripted-workload'

/** The artifact of a job that has finished: the weights after its last step (`weightsAfter`). */
export const WEIGHTS_ARTIFACT = 'weights.bin'

export const WARNING = {
  kind: 'no-checkpoint',
  text: 'No checkpoint for 3 m: nothing was written.',
  sinceMs: 1,
}

const LOOK_MS = 5 * SECOND_MS
const RETRY_MS = SECOND_MS

export interface RunnerOptions {
  clock: Clock
  store: ObjectStore
  jobId: string
  attempt: number
  behaviour: Behaviour
  /** What its machine claims with: the first to claim an attempt is the only one that works on it. */
  claim: Claim
  /** When the machine began, as it can find out; when its runner starts, if missing. */
  beganAtMs?: number
  /** The workload starts. */
  onWork: () => void
  /** The runner has ended in good order, or its machine died under it. */
  onOver: (how: 'finished' | 'died') => void
}

interface Life {
  order: IssuedRunnerOrder
  terms: RunnerTerms
  /** Missing when there was a reason not to start it. */
  workload: ScriptedWorkload | undefined
}

type Ending = Pick<RunnerResult, 'outcome' | 'reason' | 'message' | 'exitCode' | 'signal'>

/**
 * A runner and its workload by the letter of docs/reference/runner-protocol.md, without a process: it wakes when something is due,
 * works out what was done meanwhile, and does what is due. The life of one ends with `cut`, its own end, or its machine's.
 */
export class ScriptedRunner {
  readonly #o: RunnerOptions
  readonly #store: ObjectStore
  readonly #log: RunnerLog
  readonly #phases: Phase[] = []
  #life: Life | undefined
  #noticeAtMs: number | undefined
  #unsaved: State | undefined
  #checkpoint: Checkpoint | null = null
  #restoredFrom: Checkpoint | null = null
  #beat = { seq: 0, dueAtMs: 0 }
  #lookDueAtMs = 0
  #draining: { reason: Ending['reason']; sinceMs: number; untilMs: number } | undefined
  #ending: Ending | undefined
  #isSilent = false
  #isOver = false
  #isAwake = false
  #forget = (): void => undefined

  constructor(options: RunnerOptions) {
    this.#o = options
    this.#store = reachable(options.store, () => !this.#isSilent && !this.#isOver)
    this.#log = new RunnerLog(this.#store, layout.logs(options.jobId, options.attempt))
    this.#wakeAt(options.clock.now())
  }

  /** It has lost its way to the store, and hears nothing of what stands there. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** The provider will take the machine back at that instant. */
  notice(terminateAtMs: number): void {
    this.#noticeAtMs = terminateAtMs
    // One that is awake looks once more before it sleeps.
    if (!this.#isAwake) this.#wakeAt(this.#o.clock.now())
  }

  /** Somebody tells it to drain, whatever the store says. */
  drain(order: Drain): void {
    this.#life?.terms.obeyDrain(order, this.#o.clock.now())
    if (!this.#isAwake) this.#wakeAt(this.#o.clock.now())
  }

  /** The machine is gone, in the middle of whatever its runner was doing. */
  cut(): void {
    this.#isOver = true
    this.#forget()
  }

  #wakeAt(atMs: number): void {
    this.#forget()
    if (!this.#isOver) this.#forget = this.#o.clock.at(atMs, () => this.#wake())
  }

  async #wake(): Promise<void> {
    this.#isAwake = true
    const nowMs = this.#o.clock.now()
    let nextAtMs = nowMs + RETRY_MS
    try {
      await this.#turn(nowMs)
      if (!this.#isOver) nextAtMs = this.#nextAtMs(nowMs)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      // What cannot be stored is tried again, until the workload has stopped and the machine must be off.
      const powerOffMs = this.#life?.order.powerOffMs ?? Infinity
      if (nowMs > (this.#draining?.untilMs ?? Infinity) + powerOffMs) this.#end('finished')
    } finally {
      this.#isAwake = false
    }
    this.#wakeAt(nextAtMs)
  }

  async #turn(nowMs: number): Promise<void> {
    this.#life ??= await this.#begin(nowMs)
    if (this.#life === undefined) return
    const { terms } = this.#life
    if (this.#noticeAtMs !== undefined) terms.obeyNotice(this.#noticeAtMs, nowMs)
    this.#noticeAtMs = undefined
    this.#judge(terms, nowMs)
    await this.#work(nowMs)
    if (this.#isOver) return
    if (this.#ending === undefined) await this.#report(terms, nowMs)
    this.#judge(terms, nowMs)
    if (this.#log.dueAtMs <= nowMs) await this.#log.flush()
    if (this.#ending !== undefined) await this.#finish(this.#ending, nowMs)
  }

  /** From the order to the start of the workload, or to the reason not to start it; nothing yet while there is no order. */
  async #begin(nowMs: number): Promise<Life | undefined> {
    const { jobId, attempt, behaviour } = this.#o
    const order = await this.#read<IssuedRunnerOrder>(layout.order(jobId, attempt))
    if (order === undefined) return undefined
    if ((await this.#store.head(layout.result(jobId, attempt))) !== undefined) {
      this.#end('finished')
      return undefined
    }
    if (!(await this.#claim())) {
      this.#end('finished')
      return undefined
    }
    this.#phases.length = 0
    this.#enter('starting', nowMs)
    const { beganAtMs = nowMs } = this.#o
    const terms = new RunnerTerms(order, { startedAtMs: nowMs, beganAtMs }, behaviour)
    const drain = await this.#read<Drain>(layout.drain(jobId, attempt))
    if (nowMs > terms.startsUntilMs + CLOCK_SLACK_MS) {
      this.#ending = stopped('late', 'the machine came too late')
    } else if (drain !== undefined) {
      this.#ending = stopped(drain.reason, 'asked to stop before the workload was started')
    } else if (!(await this.#fetch(order))) {
      this.#ending = { ...failed(null, 'the bundle is not the one that was ordered'), reason: 'bundle' }
    } else if (behaviour.lacksImage !== undefined) {
      this.#ending = { ...failed(null, 'the image cannot be had'), reason: behaviour.lacksImage }
    }
    if (this.#ending !== undefined) return { order, terms, workload: undefined }
    this.#enter('restoring', nowMs)
    const restored = await restoreNewest(this.#store, jobId)
    this.#restoredFrom = restored?.checkpoint ?? null
    this.#log.write(
      nowMs,
      'runner',
      restored ? `restored ${restored.checkpoint.id}` : 'no checkpoint to restore',
    )
    this.#enter('running', nowMs)
    this.#o.onWork()
    return { order, terms, workload: new ScriptedWorkload(behaviour, restored?.state ?? UNTRAINED, nowMs) }
  }

  /** True when the attempt is this machine's: no other machine has written its claim. */
  async #claim(): Promise<boolean> {
    const { jobId, attempt, claim } = this.#o
    const key = layout.claim(jobId, attempt)
    if (await this.#store.putIfAbsent(key, JSON.stringify(claim))) return true
    return (await this.#read<Claim>(key))?.machine === claim.machine
  }

  /** True when the bundle, if there is one, is what the order says. Secrets are read, which deletes them. */
  async #fetch({ bundle, secrets }: IssuedRunnerOrder): Promise<boolean> {
    const { jobId, attempt } = this.#o
    if (secrets.length > 0) await this.#store.delete(layout.attemptSecrets(jobId, attempt))
    if (bundle === null) return true
    const body = await this.#store.get(layout.bundle(jobId, bundle.sha256))
    return body !== undefined && sha256(body) === bundle.sha256
  }

  /** Begins to drain when there is a reason, or drains faster; never slower. */
  #judge(terms: RunnerTerms, nowMs: number): void {
    const stop = terms.stop(nowMs, this.#draining !== undefined)
    if (stop === undefined || this.#ending !== undefined) return
    if (this.#draining === undefined) this.#enter('draining', nowMs)
    const { reason, sinceMs, untilMs } = this.#draining ?? { ...stop, sinceMs: nowMs }
    this.#draining = { reason, sinceMs, untilMs: Math.max(sinceMs, Math.min(untilMs, stop.untilMs)) }
  }

  /** Lets the workload run until now, or as far as a drain lets it, and looks at what became of it. */
  async #work(nowMs: number): Promise<void> {
    const workload = this.#life?.workload
    if (workload === undefined) return
    await this.#save(nowMs)
    if (this.#ending !== undefined) return
    const { step } = workload.state
    const drain = this.#draining
    const { isDeaf, savesInMs } = this.#o.behaviour
    const untilMs = drain === undefined ? nowMs : Math.min(nowMs, isDeaf ? drain.untilMs : drain.sinceMs)
    for (let event = workload.advance(untilMs); event; event = workload.advance(untilMs)) {
      await this.#meet(event, nowMs)
      if (this.#ending !== undefined || this.#isOver) break
    }
    if (workload.state.step > step) this.#log.write(nowMs, 'out', lineAt(workload))
    if (drain === undefined || this.#ending !== undefined) return
    const savedAtMs = drain.sinceMs + savesInMs
    if (!isDeaf && savedAtMs < drain.untilMs && savedAtMs <= nowMs) {
      if (workload.state.step > this.#savedStep) this.#unsaved = workload.state
      await this.#save(nowMs)
      this.#ending = { ...stopped(drain.reason, 'saved and stopped when asked to'), exitCode: 143 }
    } else if (drain.untilMs <= nowMs) {
      this.#ending = { ...stopped(drain.reason, 'killed when its time to stop was over'), signal: 'SIGKILL' }
    }
  }

  async #meet({ kind, step }: WorkloadEvent, nowMs: number): Promise<void> {
    switch (kind) {
      case 'died':
        return this.#end('died')
      case 'hung':
        return this.cut()
      case 'silent':
        this.#isSilent = true
        return
      case 'failed':
        this.#ending = failed(this.#o.behaviour.fails!.exitCode, `failed after step ${step}`)
        return
      case 'checkpoint':
        this.#unsaved = this.#life!.workload!.state
        return this.#save(nowMs)
      case 'finished':
        this.#ending = {
          outcome: 'succeeded',
          reason: 'completed',
          message: 'completed',
          exitCode: 0,
          signal: null,
        }
    }
  }

  /** Uploads the newest state that the workload has saved, if that was not done yet. */
  async #save(nowMs: number): Promise<void> {
    const state = this.#unsaved
    if (state === undefined) return
    const { jobId, attempt, behaviour } = this.#o
    const torn = behaviour.torn?.atStep === state.step ? behaviour.torn.how : undefined
    const checkpoint = await saveCheckpoint(state, {
      store: this.#store,
      jobId,
      attempt,
      nowMs,
      torn: torn ? torn : undefined,
    })
    if (torn !== 'no-manifest') this.#checkpoint = checkpoint
    this.#unsaved = undefined
  }

  get #savedStep(): number {
    return Math.max(this.#checkpoint?.step ?? 0, this.#restoredFrom?.step ?? 0)
  }

  /** Beats, and reads what the control plane has written. */
  async #report(terms: RunnerTerms, nowMs: number): Promise<void> {
    const { jobId, attempt } = this.#o
    const { order } = terms
    if (this.#beat.dueAtMs <= nowMs) {
      this.#beat = { seq: this.#beat.seq + 1, dueAtMs: nowMs + order.beatMs }
      terms.beatSent(this.#beat.seq, nowMs)
      await this.#store.put(layout.beat(jobId, attempt), JSON.stringify(this.#beatAt(terms, nowMs)))
    }
    if (this.#lookDueAtMs > nowMs) return
    this.#lookDueAtMs = nowMs + Math.min(order.beatMs, LOOK_MS)
    if (terms.isDrainAsked) {
      for await (const { key } of this.#store.list(layout.shorterDrains(jobId, attempt))) {
        const shorter = await this.#read<Drain>(key)
        if (shorter !== undefined) terms.obeyDrain(shorter, nowMs)
      }
    } else {
      const drain = await this.#read<Drain>(layout.drain(jobId, attempt))
      if (drain !== undefined) terms.obeyDrain(drain, nowMs)
    }
    const lease = await this.#read<Lease>(layout.lease(jobId, attempt))
    if (lease !== undefined) terms.obeyLease(lease)
    for await (const { key } of this.#store.list(`${layout.attempt(jobId, attempt)}limits/`)) {
      const limits = await this.#read<Limits>(key)
      if (limits !== undefined) terms.obeyLimits(limits)
    }
  }

  #beatAt(terms: RunnerTerms, nowMs: number): Beat {
    const progress = this.#progress(nowMs)
    const { fromStep = Infinity, untilStep = 0 } = this.#o.behaviour.warns ?? {}
    const step = progress?.step ?? -1
    return {
      attemptId: terms.order.attemptId,
      seq: this.#beat.seq,
      phase: this.#phases.at(-1)!.name,
      progress,
      warning: step >= fromStep && step < untilStep ? WARNING : undefined,
      gpus: [],
      checkpoint: this.#checkpoint,
      restoredFrom: this.#restoredFrom,
      limitsSeq: terms.limits.seq,
      leaseSeq: terms.leaseSeq,
      ...this.#firstStep(),
      logLines: this.#log.lines,
      clockMs: nowMs,
      uptimeMs: nowMs - terms.startedAtMs,
    }
  }

  async #finish(ending: Ending, nowMs: number): Promise<void> {
    const { jobId, attempt } = this.#o
    this.#enter('finishing', nowMs)
    const weights = this.#life!.workload?.state.weights
    const artifacts: Artifact[] = []
    if (ending.outcome === 'succeeded' && weights !== undefined) {
      await this.#store.put(layout.artifactsOf(jobId, attempt) + WEIGHTS_ARTIFACT, weights)
      artifacts.push({ path: WEIGHTS_ARTIFACT, sizeBytes: weights.length, sha256: sha256(weights) })
    }
    await this.#log.flush()
    const result: RunnerResult = {
      version: 1,
      attemptId: this.#life!.order.attemptId,
      ...ending,
      progress: this.#progress(nowMs),
      checkpoint: this.#checkpoint,
      restoredFrom: this.#restoredFrom,
      artifacts,
      phases: this.#phases.map((phase, at) => ({
        ...phase,
        durationMs: (this.#phases[at + 1]?.startedAtMs ?? nowMs) - phase.startedAtMs,
      })),
      ...this.#firstStep(),
      logLines: this.#log.lines,
      finishedAtMs: nowMs,
    }
    await this.#store.putIfAbsent(layout.result(jobId, attempt), JSON.stringify(result))
    this.#end('finished')
  }

  #nextAtMs(nowMs: number): number {
    const life = this.#life
    if (life === undefined) return nowMs + RETRY_MS
    const drain = this.#draining
    const { isDeaf, savesInMs } = this.#o.behaviour
    const workAtMs =
      drain === undefined || isDeaf ? (life.workload?.nextAtMs ?? Infinity) : drain.sinceMs + savesInMs
    const hasNotice = this.#noticeAtMs !== undefined
    const stopAtMs = hasNotice ? nowMs : drain === undefined ? life.terms.stopsAtMs : drain.untilMs
    const nextAtMs = Math.min(workAtMs, stopAtMs, this.#beat.dueAtMs, this.#lookDueAtMs, this.#log.dueAtMs)
    // What is overdue was tried a moment ago, and is waiting for time to go on.
    return Math.max(nextAtMs, nowMs + 1)
  }

  #progress(atMs: number): Progress | null {
    const workload = this.#life?.workload
    if (workload === undefined) return null
    const { step } = workload.state
    return { step, stepsTotal: workload.behaviour.stepsTotal, loss: lossAt(step), atMs }
  }

  #firstStep(): Pick<Beat, 'firstStep' | 'firstStepAtMs'> {
    return this.#o.behaviour.tellsFirstStep === true ? { ...this.#life?.workload?.first } : {}
  }

  #enter(name: RunnerPhase, startedAtMs: number): void {
    if (this.#phases.at(-1)?.name !== name) this.#phases.push({ name, startedAtMs, durationMs: 0 })
  }

  #end(how: 'finished' | 'died'): void {
    if (this.#isOver) return
    this.cut()
    this.#o.onOver(how)
  }

  async #read<T>(key: string): Promise<T | undefined> {
    const text = await this.#store.get(key)
    return text && (JSON.parse(text.toString()) as T)
  }
}

/** The store as a machine reaches it: not at all once its network, or the machine, is gone. */
function reachable(store: ObjectStore, isReachable: () => boolean): ObjectStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (!isReachable()) throw new StoreError('the machine has no network', { isTransient: true })
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

function stopped(reason: Ending['reason'], message: string): Ending {
  return { outcome: 'stopped', reason, message, exitCode: null, signal: null }
}

function failed(exitCode: number | null, message: string): Ending {
  return { outcome: 'failed', reason: 'workload', message, exitCode, signal: null }
}

function lineAt({ state: { step }, behaviour }: ScriptedWorkload): string {
  return `step ${step}/${behaviour.stepsTotal} loss ${lossAt(step)}`
}

function lossAt(step: number): number {
  return Math.round(10_000 / (1 + step)) / 1_000
}

function sha256(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex')
}
