import type { Backend, CallContext } from '../../backends/backend'
import type { MachineHandle } from '../../core/handle'
import type { Observation } from '../../core/observation'
import type { Order } from '../../core/plan'
import { parseClaim } from '../../intake/documents'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { patiently, settled, type Harness } from './harness'

/** What the tests of the contract do to a backend, with patience; `harness` is that of the test that runs. */
export function deedsOn(harness: () => Harness) {
  const launch = async (order: Order, by: Backend = harness().backend): Promise<MachineHandle> => {
    const outcome = await by.launch(order, patiently())
    if (outcome.kind !== 'launched') throw new Error(`not launched: ${JSON.stringify(outcome)}`)
    return outcome.handle
  }

  const find = async (attemptId: string): Promise<MachineHandle[]> => {
    let handles: MachineHandle[] = []
    await until(async () => {
      const outcome = await harness().backend.find(attemptId, patiently())
      handles = outcome.kind === 'found' ? outcome.handles : []
      return outcome.kind !== 'unsettled'
    })
    return handles
  }

  const observe = async (handle: MachineHandle, by: Backend = harness().backend): Promise<Observation> =>
    (await by.observe([handle], patiently()))[0]!

  const untilGone = async (handle: MachineHandle): Promise<Observation> => {
    await until(async () => (await observe(handle)).state === 'gone')
    return observe(handle)
  }

  /** Starts the runner where the launch does not. */
  const begin = async (handle: MachineHandle, order: Order): Promise<void> => {
    const { backend } = harness()
    if (backend.start === undefined) return
    await until(async () => (await settled(backend.start!(handle, order, patiently()))) === 'answer')
  }

  /** The machine that says that the attempt is its own, as soon as one does. */
  const claimantOf = async ({ jobId, attempt }: Order): Promise<string> => {
    let claim: Buffer | undefined
    await until(async () => (claim = await harness().store.get(layout.claim(jobId, attempt))) !== undefined)
    return parseClaim(claim!.toString()).machine
  }

  const owned = async (deployment: string): Promise<string[]> =>
    (await harness().backend.list(deployment, patiently())).map((resource) => resource.handle.id)

  return { launch, find, observe, untilGone, begin, claimantOf, owned, everyVerb: everyVerbOf(harness) }
}

/** Every verb once, with what the backend may make of such arguments. */
function everyVerbOf(harness: () => Harness) {
  return (order: Order, handle: MachineHandle, ctx: CallContext): Promise<unknown>[] => {
    const { backend } = harness()
    return [
      backend.check(ctx),
      backend.offers({}, ctx),
      backend.launch(order, ctx),
      backend.find(order.attemptId, ctx),
      ...(backend.start ? [backend.start(handle, order, ctx)] : []),
      backend.observe([handle], ctx),
      ...(backend.logs ? [backend.logs(handle, undefined, ctx)] : []),
      backend.list(order.deployment, ctx),
      ...(backend.interrupt ? [backend.interrupt(handle, { noticeMs: null }, ctx)] : []),
      backend.terminate(handle, ctx),
    ]
  }
}
