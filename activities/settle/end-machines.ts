import type { Pace } from '../../core/capabilities'
import { CODES } from '../../core/errors'
import type { FindOutcome, SettleInput } from '../../core/activities'
import { defined } from '../../core/defined'
import type { Diagnosis, EndedMachine, RunnerResult } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { isOver, type Observation } from '../../core/observation'
import { isConfirmed, type Evidence } from '../../planner/policy/liveness'
import { StoreError } from '../../storage/store'
import { BillingEnds } from '../money/billing-ends'
import { lookFor, sealSends } from '../machine/sending'
import { diagnose, type DiagnosisDeps } from './diagnosis'
import type { SharedLooks } from './shared-looks'
import type { AttemptDocuments } from '../documents'
import { pause } from '../heartbeat'

/** Sorts machines: the first one is the machine that the attempt knew, the others are duplicates of the provider. */
function knownFirst(known: MachineHandle | null, found: MachineHandle[]): MachineHandle[] {
  const all = known === null ? found : [known, ...found]
  return all.filter(({ id }, index) => all.findIndex((one) => one.id === id) === index)
}

/** The machines of an attempt. */
export interface AttemptMachines {
  /** Machines to end; the first is the one that worked, as far as is known. */
  machines: MachineHandle[]
  /** Machines that have already ended. They were billed, until now if the time is unknown. */
  over: (Pick<EndedMachine, 'handle'> & { endedAtMs: number | undefined })[]
  isUnseen: boolean
}

export interface EndingDeps extends DiagnosisDeps {
  looks: SharedLooks
}

/** Finds and ends the machines of one attempt. */
export class Ending {
  /** Diagnosis of the first machine, if its runner left no result. */
  diagnosis: Diagnosis | undefined
  private readonly pace: Pace
  private readonly ends: BillingEnds
  /** For each machine id, since when each observation has found it gone. */
  private readonly gone = new Map<string, NonNullable<Evidence['gone']>>()

  constructor(
    private readonly deps: EndingDeps,
    private readonly input: SettleInput,
    private readonly at: { documents: AttemptDocuments; signal: AbortSignal },
  ) {
    this.pace = deps.backend.capabilities.pace ?? {}
    this.ends = new BillingEnds(deps.backend, deps.now)
  }

  /**
   * Finds every machine of the attempt, once the provider's lists can be trusted. If the attempt knew none, also those that came and went
   * meanwhile, because they were billed.
   */
  async find(known: MachineHandle | null): Promise<AttemptMachines> {
    const { order } = this.input
    // Without the seal, a delayed worker could still send the order after the lists were read.
    await sealSends(this.deps, order)
    for (;;) {
      const look = await lookFor(this.deps, order, this.at.signal)
      const answer = await this.deps.backend.find(order.attemptId, look)
      if (answer.kind !== 'unsettled') return this.withRecorded(known, answer)
      await pause(answer.againInMs, this.at.signal)
    }
  }

  private async withRecorded(
    known: MachineHandle | null,
    answer: Exclude<FindOutcome, { kind: 'unsettled' }>,
  ): Promise<AttemptMachines> {
    const recorded = await this.at.documents.readEnded()
    const open = recorded.filter(({ endedAtMs }) => endedAtMs === null)
    const living = answer.kind === 'found' ? answer.handles : []
    const machines = knownFirst(known, [...living, ...open.map(({ handle }) => handle)])
    const ended = [...recorded.map(({ handle }) => handle), ...(answer.ended ?? [])]
    const over = knownFirst(null, ended).filter((one) => machines.every(({ id }) => id !== one.id))
    const { end } = this.input
    if (machines.length === 0 && over.length > 0)
      return { machines: over, over: [], isUnseen: end?.kind === 'failed' && !end.isLaunched }
    const recordOf = ({ id }: MachineHandle): EndedMachine | undefined =>
      recorded.find(({ handle }) => handle.id === id)
    return {
      machines,
      over: over.map((handle) => ({ handle, endedAtMs: recordOf(handle)?.endedAtMs ?? undefined })),
      isUnseen: false,
    }
  }

  /**
   * Waits for a living runner to save and stop, then ends the machines and waits until the provider reports them gone. Returns
   * the last observation of each machine before we ended it, with the times of its billing.
   */
  async endAll(machines: MachineHandle[]): Promise<Observation[]> {
    if (machines.length === 0) {
      await this.endRemains()
      return []
    }
    const lasts = await this.awaitStop(machines)
    if (lasts[0]?.state !== 'queued' && (await this.isPuzzling())) await this.diagnose(machines[0]!)
    for (;;) {
      const looks = await this.observe(machines)
      looks.forEach((look, index) => (lasts[index] = withTimes(lasts[index]!, look)))
      const living = machines.filter((machine) => !this.isGone(machine))
      // Ended machines are terminated too, which removes their leftovers (a directory, a volume).
      for (const machine of living.length > 0 ? living : machines)
        await this.ends.terminate(machine, this.at.signal)
      if (living.length === 0) return this.withEnds(machines, lasts)
      await pause(this.input.timing.observeMs, this.at.signal)
    }
  }

  /** Puts on record when each machine ended whose provider does not report it: a settlement that is repeated later counts no longer. */
  private withEnds(machines: MachineHandle[], lasts: Observation[]): Promise<Observation[]> {
    return Promise.all(
      machines.map(async (machine, index) => {
        const last = lasts[index]!
        if (last.endedAtMs !== undefined) return last
        const recordedAtMs = await this.at.documents.putEnded(machine, this.ends.of(machine))
        return { ...last, endedAtMs: this.ends.of(machine, recordedAtMs) }
      }),
    )
  }

  /** Removes the leftovers of a machine that was unknown to the attempt and may have ended before this search. */
  private async endRemains(): Promise<void> {
    const [{ order }, { signal }] = [this.input, this.at]
    const { deployment, attemptId } = order
    const look = await lookFor(this.deps, order, signal)
    for (const { owner, handle } of await this.deps.backend.list(deployment, look)) {
      if (owner.attemptId === attemptId) await this.deps.backend.terminate(handle, { signal })
    }
  }

  private async awaitStop(machines: MachineHandle[]): Promise<Observation[]> {
    const { timing } = this.input
    let { windowMs } = this.input
    let untilMs = this.deps.monotonicMs() + ((await this.hasRunner()) ? windowMs + timing.powerOffMs : 0)
    for (;;) {
      const looks = await this.observe(machines)
      const isStopped =
        machines.every((machine, index) => this.isGone(machine) || this.hasNothingToSave(looks[index])) ||
        (await readResult(this.at.documents)) !== undefined
      if (isStopped || this.deps.monotonicMs() >= untilMs) return looks
      // The job may shorten the window meanwhile; the runner reads the new one at its next poll.
      const newest = await this.at.documents.newestDrain().catch(() => undefined)
      if (newest !== undefined && newest.windowMs < windowMs) {
        windowMs = newest.windowMs
        const shorterMs = windowMs + timing.powerOffMs + 2 * timing.beatMs
        untilMs = Math.min(untilMs, this.deps.monotonicMs() + shorterMs)
      }
      await pause(timing.observeMs, this.at.signal)
    }
  }

  /** Whether a machine has nothing to save: it is queued, or its provider has given it up and its attempt knows how it ended. */
  private hasNothingToSave(look: Observation | undefined): boolean {
    return look?.state === 'queued' || (look?.isStillBilled === true && this.input.end !== null)
  }

  /** Whether a machine may have a runner. One that was never reachable and never sent a beat has nothing to save. */
  private async hasRunner(): Promise<boolean> {
    const { end } = this.input
    if (end?.kind !== 'failed' || end.failure.class !== 'unreachable') return true
    // An unreadable document was probably written by one.
    return (await this.at.documents.readBeat().catch(() => null)) !== undefined
  }

  /** Whether the reason of its end is unknown: its runner left no result, and the end was not requested. */
  private async isPuzzling(): Promise<boolean> {
    const { end, drainReason } = this.input
    const isRequested = end === null && drainReason !== null && drainReason !== 'superseded'
    return !isRequested && (await readResult(this.at.documents)) === undefined
  }

  private async diagnose(handle: MachineHandle): Promise<void> {
    this.diagnosis = await diagnose(this.deps, this.input.order, { handle, signal: this.at.signal })
  }

  private async observe(machines: MachineHandle[]): Promise<Observation[]> {
    const looks = await Promise.all(machines.map((machine) => this.deps.looks(machine, this.at.signal)))
    const nowMs = this.deps.monotonicMs()
    machines.forEach((machine, index) => {
      const { id } = machine
      this.ends.note(machine, looks[index]!)
      if (isOver(looks[index]))
        this.gone.set(id, { firstAtMs: this.gone.get(id)?.firstAtMs ?? nowMs, lastAtMs: nowMs })
      else this.gone.delete(id)
    })
    return looks
  }

  /** Whether a machine is gone. One observation is enough for a provider whose lists miss no machine. */
  private isGone({ id }: MachineHandle): boolean {
    const gone = this.gone.get(id)
    const { goneConfirmMs = 0 } = this.pace
    return gone !== undefined && isConfirmed(gone, { goneConfirmMs })
  }
}

/**
 * The first report of each time counts: a machine is not billed while it shuts down, and our ending it later changes nothing. One that was
 * queued may have begun before it was ended.
 */
function withTimes(look: Observation, later: Observation): Observation {
  const endedAtMs = look.endedAtMs ?? later.endedAtMs
  const billedFromAtMs = look.billedFromAtMs ?? later.billedFromAtMs
  return { ...look, ...defined({ endedAtMs, billedFromAtMs }) }
}

export type ReadResult = { result: RunnerResult } | { result?: undefined; complaint: string } | undefined

export async function readResult(documents: AttemptDocuments): Promise<ReadResult> {
  try {
    const result = await documents.readResult()
    return result === undefined ? undefined : { result }
  } catch (error) {
    if (error instanceof StoreError && error.code === CODES.badDocument) return { complaint: error.message }
    throw error
  }
}
