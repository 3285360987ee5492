/** `crucible worker local` with a backend whose calls are disturbed on demand. The product is the built one, unchanged. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Backend, CallContext } from '../../backends/backend'
import type * as errors from '../../backends/errors'
import type * as registry from '../../backends/registry'
import type { LaunchOutcome } from '../../core/activities'
import { Seam, type Disturbance, type DisturbedVerb } from './seam'

const product = process.env['CHAOS_PRODUCT']!
const fromProduct = createRequire(join(product, 'package.json'))
const { BackendError } = fromProduct('./dist/backends/errors') as typeof errors
const { BACKENDS } = fromProduct('./dist/backends/registry') as typeof registry
const seam = new Seam(process.env['CHAOS_SEAM']!)

type Registered = (typeof BACKENDS)[string]
const { local } = BACKENDS as { local: Registered }
;(BACKENDS as Record<string, Registered>)['local'] = {
  settings: local.settings,
  read: (settings) => {
    const read = local.read(settings)
    return 'problems' in read ? read : { ...read, create: async (deps) => disturbed(await read.create(deps)) }
  },
}

process.argv = [process.execPath, 'crucible', 'worker', 'local']
fromProduct('./dist/cli/main')

function disturbed(backend: Backend): Backend {
  return {
    ...backend,
    offers: (request, ctx, pins) =>
      meet('offers', [], { ctx, call: () => backend.offers(request, ctx, pins) }),
    launch: (order, ctx) =>
      meet('launch', [order.attemptId], { ctx, call: () => backend.launch(order, ctx), lost: unconfirmed }),
    find: (attemptId, ctx) => meet('find', [attemptId], { ctx, call: () => backend.find(attemptId, ctx) }),
    observe: (handles, ctx) => {
      const ids = handles.map(({ attemptId }) => attemptId)
      return meet('observe', ids, { ctx, call: () => backend.observe(handles, ctx) })
    },
    terminate: (resource, ctx) =>
      meet('terminate', [resource.id], { ctx, call: () => backend.terminate(resource, ctx) }),
  }
}

interface Call<T> {
  ctx: CallContext
  call: () => Promise<T>
  /** What a backend answers that does not know whether its call had an effect; without it the error of one that may be repeated. */
  lost?: (disturbance: Disturbance) => T
}

async function meet<T>(
  verb: DisturbedVerb,
  attemptIds: string[],
  { ctx, call, lost = noAnswer }: Call<T>,
): Promise<T> {
  const disturbance = seam.take(verb, attemptIds)
  if (disturbance === undefined) return call()
  switch (disturbance.kind) {
    case 'slow-request':
      await wait(disturbance.ms, ctx)
      return call()
    case 'slow-answer': {
      const answer = await call()
      await wait(disturbance.ms, ctx)
      return answer
    }
    case 'lost-request':
      return lost(disturbance)
    case 'lost-answer':
      await call()
      return lost(disturbance)
  }
}

async function wait(ms: number, { signal }: CallContext): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {
    throw new BackendError({ class: 'transient', message: 'the caller stopped waiting' })
  })
}

function noAnswer(): never {
  throw new BackendError({ class: 'transient', message: 'the provider did not answer' })
}

function unconfirmed({ ms }: Disturbance): LaunchOutcome {
  return { kind: 'unconfirmed', findAfterMs: ms }
}
