import { expect } from '@jest/globals'
import { sendOnce } from '../../activities/machine/sending'
import type { Backend, CallContext } from '../../backends/backend'
import type { LaunchOutcome } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import type { Observation } from '../../core/observation'
import type { Order } from '../../core/job/plan'
import { parseAttemptId } from '../../core/queues'
import { Ages } from '../../core/time/ages'
import { parseClaim } from '../../intake/documents'
import { layout } from '../../storage/layout'
import { Sends } from '../../storage/sends'
import { until } from '../support/until'
import { patiently, settled, type Harness } from './harness'

/** No send of a test takes longer. */
const SEND_MS = 10_000

/** What the tests of the contract do to a backend, with patience; `harness` is that of the test that runs. */
export function deedsOn(harness: () => Harness) {
  /** As the product sends: where no token is recognised, with a mark in the store first. */
  const send = (
    order: Order,
    { by = harness().backend, ctx = patiently() }: { by?: Backend; ctx?: CallContext } = {},
  ): Promise<LaunchOutcome> =>
    sendOnce(
      {
        backend: by,
        store: harness().store,
        now: Date.now,
        ages: new Ages({ now: Date.now, monotonicMs: Date.now }),
      },
      order,
      ctx.signal,
    )

  const launch = async (order: Order, by: Backend = harness().backend): Promise<MachineHandle> => {
    const outcome = await send(order, { by })
    if (outcome.kind === 'launched') return outcome.handle
    const isOpen = outcome.kind === 'unconfirmed' && by.capabilities.idempotency === 'tag'
    const [found] = isOpen ? await find(order.attemptId) : []
    if (found === undefined) throw new Error(`not launched: ${JSON.stringify(outcome)}`)
    return found
  }

  /** As the product looks: not before the last send can have no more effect. */
  const find = async (attemptId: string): Promise<MachineHandle[]> => {
    const { store, backend } = harness()
    const sends = new Sends(store, { ...parseAttemptId(attemptId)!, attemptId }, Date.now)
    const isTag = backend.capabilities.idempotency === 'tag'
    let handles: MachineHandle[] = []
    await until(async () => {
      const sentUntilMs = isTag ? await sends.sentUntilMs(SEND_MS) : undefined
      const outcome = await backend.find(attemptId, { ...patiently(), sentUntilMs })
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

  /** Which of some machines says that the attempt is its own, as soon as one does. */
  const claimantOf = async (
    { jobId, attempt }: Order,
    among: MachineHandle[],
  ): Promise<MachineHandle | undefined> => {
    let claim: Buffer | undefined
    await until(async () => (claim = await harness().store.get(layout.claim(jobId, attempt))) !== undefined)
    const { machine, send: name } = parseClaim(claim!.toString())
    const isNamed = harness().backend.capabilities.claimsBy !== 'send'
    return among.find((one) => (isNamed ? one.id === machine : one.send === name))
  }

  const owned = async (deployment: string): Promise<string[]> =>
    (await harness().backend.list(deployment, patiently())).map((resource) => resource.handle.id)

  /** The machine of a launch without capacity waits at the provider, costs nothing, and can be ended. */
  const waitsFreeOfCharge = async ({ attemptId }: Order, outcome: LaunchOutcome): Promise<void> => {
    if (outcome.kind !== 'launched') throw new Error(`the launch was ${outcome.kind}`)
    const { handle } = outcome
    expect((await observe(handle)).state).toBe('queued')
    expect(await harness().runningOf(attemptId)).toBe(0)
    await harness().backend.terminate(handle, patiently())
    const { billedFromAtMs } = await untilGone(handle)
    expect(billedFromAtMs).toBeUndefined()
    expect(await harness().runningOf(attemptId)).toBe(0)
  }
  return {
    send,
    launch,
    find,
    observe,
    untilGone,
    begin,
    claimantOf,
    owned,
    waitsFreeOfCharge,
    everyVerb: everyVerbOf(harness),
  }
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
