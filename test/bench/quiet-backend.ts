import type { Backend } from '../../backends/backend'
import type { MachineHandle } from '../../core/handle'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'

/** A provider that sells as much as anybody wants at once, and whose machines live until they are ended. */
export function quietBackend(name: string): Backend {
  const living = new Map<string, MachineHandle>()
  const offer: Offer = {
    backend: name,
    capacityType: 'on-demand',
    type: 'quiet',
    place: '',
    shape: { cpus: 1, memoryGiB: 1, gpus: 0 },
    priceMicroUsdPerHour: microUsd(1),
    availability: 'available',
    freePlaces: 100_000,
    priceSource: { kind: 'configured', observedAtMs: 0 },
  }
  return {
    name,
    capabilities: {
      capacityTypes: ['on-demand'],
      imageRunner: 'runner',
      runnerStart: 'with-launch',
      idempotency: 'token',
      billsUntil: 'exit',
      price: 'configured',
    },
    check: async () => [],
    offers: async () => [offer],
    launch: async ({ attemptId }) => {
      const handle: MachineHandle = living.get(attemptId) ?? {
        backend: name,
        kind: 'machine',
        id: attemptId,
        attemptId,
        launchedAtMs: Date.now(),
        realised: { capacityType: 'on-demand', type: 'quiet', place: '', priceMicroUsdPerHour: microUsd(1) },
      }
      living.set(attemptId, handle)
      return { kind: 'launched', handle }
    },
    find: async (attemptId) => {
      const handle = living.get(attemptId)
      return handle === undefined ? { kind: 'absent' } : { kind: 'found', handles: [handle] }
    },
    observe: async (handles) => handles.map(({ id }) => ({ state: living.has(id) ? 'running' : 'gone' })),
    terminate: async ({ id }) => void living.delete(id),
    list: async () => [],
  }
}
