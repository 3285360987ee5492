import type { Backend } from '../../backends/backend'
import type { BackendDeps } from '../../backends/registry'

/** How far the lists of this cloud are behind at most. */
const LIST_LAG_MS = 3_000
const LOOK_AGAIN_MS = 500

/**
 * The same provider, had it no tokens: each send is another request, and only its lists tell what came of one. A hand-over goes before each,
 * which none of its machines reads: the settlement must delete it.
 */
export function tokenless(backend: Backend, handOver: NonNullable<BackendDeps['handOver']>): Backend {
  return {
    ...backend,
    capabilities: { ...backend.capabilities, idempotency: 'tag' },
    launch: async (order, ctx) => {
      const { send = `${order.token}-${Date.now()}` } = ctx
      await handOver(order, send)
      const outcome = await backend.launch({ ...order, token: send }, ctx)
      return outcome.kind === 'launched' ? { ...outcome, handle: { ...outcome.handle, send } } : outcome
    },
    find: async (attemptId, ctx) => {
      const answer = await backend.find(attemptId, ctx)
      const isSure = Date.now() >= (ctx.sentUntilMs ?? -Infinity) + LIST_LAG_MS
      return answer.kind === 'absent' && !isSure ? { kind: 'unsettled', againInMs: LOOK_AGAIN_MS } : answer
    },
  }
}
