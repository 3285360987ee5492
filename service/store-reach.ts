import type { Backend, Problem, ReservingBackend } from '../backends/backend'
import { BackendError } from '../backends/errors'
import { isOnLoopback } from '../backends/loopback'
import type { Offer } from '../core/offer'
import type { WorkerConfig } from './config'

type Reader = Pick<
  WorkerConfig['backends'] extends ReadonlyMap<string, infer Read> ? Read : never,
  'needsGrants' | 'isRemote'
>

const STORE_REMEDY = 'Set CRUCIBLE_STORE to a bucket that they can reach, such as s3://bucket/prefix.'

/**
 * Returns why machines of a backend cannot or should not use a store; undefined for machines that can. Makes no request: the URL and the
 * settings are enough.
 */
export function storeReachProblem(
  { isRemote, needsGrants }: Reader,
  { storeUrl, hasPermanentKeys }: { storeUrl: string; hasPermanentKeys: boolean },
): Problem | undefined {
  if (!isRemote) return undefined
  const unreachable = (place: string): Problem => ({
    severity: 'error',
    failure: 'invalid',
    remedy: STORE_REMEDY,
    message: `its machines cannot reach the object store, which is ${place}`,
  })
  if (storeUrl.startsWith('file:')) return unreachable('a folder of this host')
  const endpoint = URL.canParse(storeUrl) ? new URL(storeUrl).searchParams.get('endpoint') : null
  if (endpoint !== null && isOnLoopback(endpoint)) return unreachable(`at ${endpoint}, on loopback`)
  if (!needsGrants || !hasPermanentKeys) return undefined
  return {
    severity: 'warning',
    message: 'its machines get keys to the whole object store that never expire',
    remedy: 'Use a store with a token service, and set CRUCIBLE_GRANT_ROLE in place of the keys.',
  }
}

/** A backend that says so in `check` and in every plan, before a machine is paid for. */
export function withStoreReach(backend: Backend, problem: Problem | undefined): Backend {
  if (problem === undefined) return backend
  const { severity, message, remedy } = problem
  const noted = (offer: Offer): Offer => ({ ...offer, note: offer.note ?? message })
  return {
    ...backend,
    check: async (ctx) => [problem, ...(await backend.check(ctx))],
    offers: async (request, ctx, pins) => {
      if (severity === 'error') throw new BackendError({ class: 'invalid', message, hint: remedy })
      return (await backend.offers(request, ctx, pins)).map(noted)
    },
    ...(backend.reserving !== undefined &&
      severity === 'error' && { reserving: buyingNothing(backend.reserving, problem) }),
  }
}

/** Refuses purchases, because no job could use them. Held capacity can still be seen, changed and released. */
function buyingNothing(reserving: ReservingBackend, { message, remedy }: Problem): ReservingBackend {
  const failure = { class: 'invalid', message, hint: remedy } as const
  return {
    ...reserving,
    reservable: async () => {
      throw new BackendError(failure)
    },
    reserve: async () => ({ kind: 'refused', failure }),
  }
}
