import { BackendError } from '../backends/errors'
import type { AttemptTimes, SettleInput, Settlement } from '../core/activities'
import type { CheckpointNews } from '../core/checkpoint'
import type { Beat, Diagnosis, Drain, RunnerResult } from '../core/documents'
import type { MachineHandle } from '../core/handle'
import type { AttemptEnd } from '../core/ledger'
import type { Observation } from '../core/observation'
import { stepsLost } from '../core/steps-lost'
import { endFromLoss, endFromResult } from '../planner/ending'
import { leaseOverAtMs } from '../planner/liveness'
import { newestCheckpoint } from '../storage/checkpoints'
import { ignoreBadDocument } from '../storage/json'
import { StoreError } from '../storage/store'
import { CHECKPOINT_PARSERS } from '../intake/documents'
import { lookFor } from './backend-machines'
import { AttemptDocuments } from './documents'
import { diagnose, withLastWords, type DiagnosisDeps } from './diagnosis'
import { pause } from './heartbeat'
import { costOfAll, costOfUnseen } from './attempt-cost'

type Deps = DiagnosisDeps

/**
 * Makes sure that nothing of an attempt runs any more, however it ended and whoever has already tried, and works out what is
 * certain about it. Only after it may the job go on: never two live attempts. Repeating it is harmless.
 */
export async function settleAttempt(
  deps: Deps,
  input: SettleInput,
  signal: AbortSignal,
): Promise<Settlement> {
  const { jobId, attempt } = input.order
  const documents = new AttemptDocuments(deps.store, { jobId, attempt }, deps.now)
  await documents.putDrain({ reason: drainReason(input), windowMs: input.windowMs })
  const known = input.handle ?? (await documents.readMachine()) ?? null
  try {
    const ending = new Ending(deps, input, { documents, signal })
    const { machines, isUnseen } = await ending.find(known)
    const lasts = await ending.endAll(machines)
    // Who ordered it saw nothing of it; the provider tells what became of it.
    const asked = isUnseen ? { ...input, end: null } : input
    return await conclude(deps, asked, { documents, signal, machines, lasts, diagnosis: ending.diagnosis })
  } catch (error) {
    // The provider does not answer. A machine whose lease has certainly run out has stopped by itself: the job may go on, and
    // garbage collection ends what is left of it.
    if (!(error instanceof BackendError) || known === null) throw error
    const fencedAtMs = await fencedSince(documents, input, known)
    if (deps.now() <= fencedAtMs) throw error
    const isBilledOn = deps.backend.capabilities.billsUntil === 'terminate'
    const last: Observation = { state: 'gone', ...(isBilledOn ? {} : { endedAtMs: fencedAtMs }) }
    return conclude(deps, input, { documents, signal, machines: [known], lasts: [last] })
  }
}

async function fencedSince(
  documents: AttemptDocuments,
  { timing }: SettleInput,
  { launchedAtMs }: MachineHandle,
): Promise<number> {
  const lease = await documents.readLease()
  const renewedAtMs = lease?.renewedAtMs ?? launchedAtMs
  return leaseOverAtMs({ timing, renewedAtMs, isLeaseFirst: lease === undefined })
}

function drainReason({ wish }: SettleInput): 'superseded' | NonNullable<SettleInput['wish']> {
  return wish ?? 'superseded'
}

/** The first machine is the one that the attempt knew; others are duplicates that a provider made. */
function knownFirst(known: MachineHandle | null, found: MachineHandle[]): MachineHandle[] {
  return known === null ? found : [known, ...found.filter(({ id }) => id !== known.id)]
}

/** Looking for and ending the machines of one attempt. */
class Ending {
  /** Of the first of them, where its runner left no result. */
  diagnosis: Diagnosis | undefined

  constructor(
    private readonly deps: Deps,
    private readonly input: SettleInput,
    private readonly at: { documents: AttemptDocuments; signal: AbortSignal },
  ) {}

  /**
   * Every machine of the attempt that exists, once the provider's lists can be trusted; where nobody knew of one, those that came and
   * went meanwhile: they were paid for.
   */
  async find(known: MachineHandle | null): Promise<{ machines: MachineHandle[]; isUnseen: boolean }> {
    for (;;) {
      const { order } = this.input
      const answer = await this.deps.backend.find(order.attemptId, lookFor(order, this.at.signal))
      switch (answer.kind) {
        case 'found':
          return { machines: knownFirst(known, answer.handles), isUnseen: false }
        case 'absent': {
          const { ended = [] } = answer
          if (known !== null || ended.length === 0)
            return { machines: knownFirst(known, []), isUnseen: false }
          return {
            machines: ended,
            isUnseen: this.input.end?.kind === 'failed' && !this.input.end.isLaunched,
          }
        }
        case 'unsettled':
          await pause(answer.againInMs, this.at.signal)
      }
    }
  }

  /**
   * Waits for a living runner to save and stop, then ends the machines and waits until the provider says that they are gone.
   * Answers of each machine the last observation before our own end of it.
   */
  async endAll(machines: MachineHandle[]): Promise<Observation[]> {
    if (machines.length === 0) {
      await this.endRemains()
      return []
    }
    const before = await this.awaitStop(machines)
    if (await this.isPuzzling()) await this.diagnose(machines[0]!)
    const ends = before.map(({ endedAtMs }) => endedAtMs)
    for (;;) {
      const looks = await this.observe(machines)
      // What was told first: nothing is billed while a machine shuts down, and an end by us later moves nothing.
      looks.forEach(({ endedAtMs }, index) => (ends[index] ??= endedAtMs))
      const living = machines.filter((_, index) => looks[index]?.state !== 'gone')
      // Ended ones too: what a machine leaves (a directory, a volume) goes with its end.
      for (const machine of living.length > 0 ? living : machines) {
        await this.deps.backend.terminate(machine, { signal: this.at.signal })
      }
      if (living.length === 0) return before.map((look, index) => withEnd(look, ends[index]))
      await pause(this.input.timing.observeMs, this.at.signal)
    }
  }

  /** A machine that nobody knew of may have ended before it was looked for: what it leaves is still ours to end. */
  private async endRemains(): Promise<void> {
    const [{ order }, { signal }] = [this.input, this.at]
    const { deployment, attemptId } = order
    for (const { owner, handle } of await this.deps.backend.list(deployment, lookFor(order, signal))) {
      if (owner.attemptId === attemptId) await this.deps.backend.terminate(handle, { signal })
    }
  }

  private async awaitStop(machines: MachineHandle[]): Promise<Observation[]> {
    const { timing, windowMs } = this.input
    const untilMs = this.deps.now() + ((await this.hasRunner()) ? windowMs + timing.powerOffMs : 0)
    for (;;) {
      const looks = await this.observe(machines)
      const isOver =
        looks.every(({ state }) => state === 'gone') || (await readResult(this.at.documents)) !== undefined
      if (isOver || this.deps.now() >= untilMs) return looks
      await pause(timing.observeMs, this.at.signal)
    }
  }

  /** A machine to which nobody could speak, and which never spoke, has none that could save anything. */
  private async hasRunner(): Promise<boolean> {
    const { end } = this.input
    if (end?.kind !== 'failed' || end.failure.class !== 'unreachable') return true
    // What cannot be read was written by one, or may have been.
    return (await this.at.documents.readBeat().catch(() => null)) !== undefined
  }

  /** Whether nobody has said why it ended: neither its runner nor its owner. */
  private async isPuzzling(): Promise<boolean> {
    const { end, wish } = this.input
    return (end !== null || wish === null) && (await readResult(this.at.documents)) === undefined
  }

  private async diagnose(handle: MachineHandle): Promise<void> {
    this.diagnosis = await diagnose(this.deps, this.input.order, { handle, signal: this.at.signal })
  }

  private observe(machines: MachineHandle[]): Promise<Observation[]> {
    return this.deps.backend.observe(machines, { signal: this.at.signal })
  }
}

function withEnd(look: Observation, endedAtMs: number | undefined): Observation {
  return endedAtMs === undefined ? look : { ...look, endedAtMs }
}

interface Facts {
  documents: AttemptDocuments
  signal: AbortSignal
  machines: MachineHandle[]
  lasts: Observation[]
  diagnosis?: Diagnosis | undefined
}

async function conclude(deps: Deps, input: SettleInput, facts: Facts): Promise<Settlement> {
  const { store, now } = deps
  const { documents, machines, lasts, diagnosis } = facts
  const [result, beat, checkpoint, drain] = await Promise.all([
    readResult(documents),
    documents.readBeat().catch(ignoreBadDocument),
    newestCheckpoint(store, input.order.jobId, CHECKPOINT_PARSERS.manifest),
    documents.readDrain(),
  ])
  const nowMs = now()
  const [handle = null] = machines
  const [last] = lasts
  const endedAtMs = handle === null ? undefined : (last?.endedAtMs ?? nowMs)
  const progress = result?.result?.progress ?? beat?.progress ?? undefined
  const restoredFrom = result?.result?.restoredFrom ?? beat?.restoredFrom ?? undefined
  const end = endOf(input, { result, last, handle, hasSpoken: beat !== undefined })
  return {
    end: told(end, diagnosis),
    handle,
    ...(handle === null
      ? { costMicroUsd: await costOfUnseen(input, documents, result?.result?.finishedAtMs ?? beat?.clockMs) }
      : await costOfAll(deps.backend, input, { ...facts, nowMs })),
    ...(endedAtMs === undefined ? {} : { endedAtMs }),
    ...(restoredFrom === undefined ? {} : { restoredFrom }),
    ...newsOf(result?.result ?? beat),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(progress === undefined ? {} : { progress }),
    stepsLost: stepsLost({
      isDone: end.kind === 'succeeded',
      ...{ progress, restoredFrom, checkpoint },
      isCheckpointStepKnown: checkpoint?.isStepKnown !== false,
    }),
    artifacts: result?.result?.artifacts ?? [],
    phases: result?.result?.phases ?? beat?.phases ?? [],
    times: timesOf(result?.result, beat, drain),
  }
}

function newsOf(
  last: CheckpointNews | undefined,
): Pick<Settlement, 'restoredBecause' | 'checkpointState' | 'warning'> {
  const { restoredBecause, checkpointState, warning } = last ?? {}
  return {
    ...(restoredBecause === undefined ? {} : { restoredBecause }),
    ...(checkpointState === undefined ? {} : { checkpointState }),
    ...(warning == null ? {} : { warning }),
  }
}

/** What the runner said last counts: a machine that was lost has left no result, and its last beat tells. */
function timesOf(
  result: RunnerResult | undefined,
  beat: Beat | undefined,
  drain: Drain | undefined,
): AttemptTimes {
  return {
    firstStepAtMs: result?.firstStepAtMs ?? beat?.firstStepAtMs ?? null,
    noNoticeAtMs: result?.noNoticeAtMs ?? beat?.noNoticeAtMs ?? null,
    lastBeatAtMs: beat?.clockMs ?? null,
    finishedAtMs: result?.finishedAtMs ?? null,
    drain: drain === undefined ? null : { reason: drain.reason, atMs: drain.requestedAtMs },
  }
}

type ReadResult = { result: RunnerResult } | { result?: undefined; complaint: string } | undefined

async function readResult(documents: AttemptDocuments): Promise<ReadResult> {
  try {
    const result = await documents.readResult()
    return result === undefined ? undefined : { result }
  } catch (error) {
    if (error instanceof StoreError && error.code === 'BAD_DOCUMENT') return { complaint: error.message }
    throw error
  }
}

function told(end: AttemptEnd, diagnosis: Diagnosis | undefined): AttemptEnd {
  return end.kind === 'failed' ? { ...end, failure: withLastWords(end.failure, diagnosis) } : end
}

/** The runner's result counts most, then what the attempt saw, then what the provider says of the machine. */
function endOf(
  input: SettleInput,
  {
    result,
    last,
    handle,
    hasSpoken,
  }: {
    result: ReadResult
    last: Observation | undefined
    handle: MachineHandle | null
    hasSpoken: boolean
  },
): AttemptEnd {
  if (result?.result !== undefined) {
    const end = endFromResult(result.result)
    // A runner that stops because we ended its attempt does not know why we did.
    const isOurs = end.kind === 'stopped' && end.by === 'superseded'
    return isOurs && input.end !== null ? input.end : end
  }
  if (result !== undefined) {
    return { kind: 'failed', isLaunched: true, failure: { class: 'unclassified', message: result.complaint } }
  }
  if (input.end !== null) return input.end
  if (handle !== null && last?.state === 'gone') return endFromLoss(last, { hasSpoken })
  return { kind: 'stopped', by: drainReason(input) }
}
