import type { Backend } from '../../backends/backend'
import { gathered } from '../../backends/gather'
import type { MachineHandle } from '../../core/handle'
import type { Observation } from '../../core/observation'
import { SECOND_MS } from '../../core/time/time'
import { unanswered } from '../machine/backend-machines'
import { pause } from '../heartbeat'

/** Returns the provider's report on a machine. */
export type SharedLooks = (machine: MachineHandle, signal: AbortSignal) => Promise<Observation>

const MACHINES_MAX = 1_000
/** A call that hangs would hold up the looks of all settlements. */
const LOOK_LIMIT_MS = 60 * SECOND_MS

/**
 * Looks at machines that end, for all settlements of a worker together: one call to the provider for all that wait, no more often than
 * the provider allows (`Pace.observeMs`).
 */
export function shareLooks(backend: Backend, monotonicMs: () => number): SharedLooks {
  const { observeMs = 0 } = backend.capabilities.pace ?? {}
  const parts = new Map<string, SharedLooks>()
  const openPart = (): SharedLooks => {
    let observedMs = -Infinity
    const ask = gathered<MachineHandle, Observation | undefined>({
      ask: async (machines, signal) => {
        const waitMs = observedMs + observeMs - monotonicMs()
        if (waitMs > 0) await pause(waitMs, signal)
        observedMs = monotonicMs()
        return observeWithin(backend, machines, signal)
      },
      callsMax: 1,
      keysMax: MACHINES_MAX,
    })
    return async (machine, signal) => (await ask(machine, signal)) ?? unanswered(backend, machine)
  }
  return (machine, signal) => {
    // One part of the provider may fail while the others answer.
    const place = backend.placeOf?.(machine) ?? ''
    const look = parts.get(place) ?? openPart()
    parts.set(place, look)
    return look(machine, signal)
  }
}

async function observeWithin(
  backend: Backend,
  machines: MachineHandle[],
  signal: AbortSignal,
): Promise<(Observation | undefined)[]> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), LOOK_LIMIT_MS)
  try {
    return await backend.observe(machines, { signal: AbortSignal.any([signal, limit.signal]) })
  } finally {
    clearTimeout(timer)
  }
}
