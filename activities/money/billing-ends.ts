import type { Backend } from '../../backends/backend'
import type { MachineHandle } from '../../core/handle'
import { isOver, type Observation } from '../../core/observation'

/**
 * Ends of bills of machines that we end, from our calls and observations. A provider's report takes precedence. Without one, billing ended
 * with the answer to our `terminate` if that ends it (`capabilities.billsUntil`) and an observation has confirmed it; otherwise with the
 * first observation without the machine. It is never earlier than the real end.
 */
export class BillingEnds {
  private readonly accepted = new Map<string, number>()
  private readonly told = new Map<string, number>()
  private readonly seen = new Map<string, number>()
  /** When each machine was last seen as billed. */
  private readonly billed = new Map<string, number>()

  constructor(
    private readonly backend: Pick<Backend, 'terminate' | 'capabilities'>,
    private readonly now: () => number,
  ) {}

  async terminate(machine: MachineHandle, signal: AbortSignal): Promise<void> {
    await this.backend.terminate(machine, { signal })
    if (this.backend.capabilities.billsUntil === 'terminate') this.accepted.set(machine.id, this.now())
  }

  note({ id }: MachineHandle, look: Observation): void {
    const { endedAtMs, state } = look
    const nowMs = this.now()
    if (endedAtMs !== undefined && !this.told.has(id)) this.told.set(id, endedAtMs)
    const acceptedAtMs = this.accepted.get(id)
    const isEnded = isOver(look) || (state === 'stopping' && acceptedAtMs !== undefined)
    if (!isEnded) {
      this.seen.delete(id)
      this.billed.set(id, nowMs)
    } else if (!this.seen.has(id)) this.seen.set(id, acceptedAtMs ?? nowMs)
  }

  /** @param recordedAtMs end that others recorded; it is wrong if the machine was seen as billed later */
  of({ id }: MachineHandle, recordedAtMs = Infinity): number {
    const isRefuted = recordedAtMs < (this.billed.get(id) ?? -Infinity)
    const seenAtMs = this.seen.get(id) ?? this.now()
    return this.told.get(id) ?? (isRefuted ? seenAtMs : Math.min(seenAtMs, recordedAtMs))
  }
}
