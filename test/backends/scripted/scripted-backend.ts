import type { Backend, CallContext } from '../../../backends/backend'
import { assertOfAttempt, BackendError } from '../../../backends/errors'
import type { LaunchOutcome } from '../../../core/activities'
import type { Observation } from '../../../core/observation'
import { formatInstant, MINUTE_MS } from '../../../core/time/time'
import { sleep } from './clock'
import type { Fault, Verb } from './faults'
import { createScriptedReserving } from './reserving/reserving'
import type { ScriptedWorld } from './world'

interface Call<T> {
  verb: Verb
  attemptIds: string[]
  ctx: CallContext
  /** What the call does and answers when nothing is scripted. */
  effect: (fault: Fault | undefined) => T
  /** What is answered where the effect is unknown to the caller; nothing may be, where a call changes nothing. */
  unknown?: (findAfterMs: number) => T
  /** From its effect to its answer. */
  takesMs?: number | undefined
}

/** How soon a launch that was left without an answer may be looked for. */
const FIND_AFTER_MS = MINUTE_MS

/** A backend over a scripted world. It keeps every promise of the contract but for what the world's script says. */
export function createScriptedBackend(world: ScriptedWorld): Backend {
  const { name, capabilities } = world
  const call = <T>(one: Call<T>): Promise<T> => answer(world, one)
  return {
    name,
    capabilities,
    check: (ctx) => call({ verb: 'check', attemptIds: [], ctx, effect: () => world.problems }),
    offers: (request, ctx) =>
      call({ verb: 'offers', attemptIds: [], ctx, effect: () => world.offers(request) }),
    launch: async (order, ctx) => {
      const { send } = ctx
      const userData = ctx.signal.aborted ? undefined : await world.userDataOf(order, send)
      return call<LaunchOutcome>({
        verb: 'launch',
        attemptIds: [order.attemptId],
        ctx,
        effect: (fault) => {
          if (fault?.kind === 'refuses') return { kind: 'refused', failure: fault.failure }
          if (!world.takesLaunch()) throw tooSoon(world)
          const outcome = world.buy(order, { send, userData })
          if (fault?.kind === 'duplicates') world.duplicate(order, { send, userData })
          return outcome
        },
        unknown: (findAfterMs) => ({ kind: 'unconfirmed', findAfterMs }),
        takesMs: world.manners.answersAfterMs,
      })
    },
    find: (attemptId, ctx) =>
      call({
        verb: 'find',
        attemptIds: [attemptId],
        ctx,
        effect: () => world.find(attemptId, ctx.sentUntilMs),
      }),
    ...(capabilities.runnerStart === 'after-launch' && {
      start: (handle, _order, ctx) =>
        call({
          verb: 'start',
          attemptIds: [handle.attemptId],
          ctx,
          effect: () => {
            if (world.machine(handle.id)?.start() !== true) throw transient('the machine cannot take it yet')
          },
        }),
      drain: (handle, order, ctx) =>
        call({
          verb: 'drain',
          attemptIds: [handle.attemptId],
          ctx,
          effect: () => world.machine(handle.id)?.drain(order),
        }),
    }),
    observe: (handles, ctx) =>
      call({
        verb: 'observe',
        attemptIds: handles.map((handle) => handle.attemptId),
        ctx,
        effect: (fault) =>
          handles.map(({ id }): Observation => {
            const gone: Observation = { state: 'gone', cause: 'unknown' }
            return fault?.kind === 'lies-gone' ? gone : (world.known(id)?.observation() ?? gone)
          }),
      }),
    terminate: (resource, ctx) =>
      call({
        verb: 'terminate',
        attemptIds: [world.machine(resource.id)?.handle.attemptId ?? resource.id],
        ctx,
        effect: (fault) => {
          const machine = world.machine(resource.id)
          if (machine !== undefined) assertOfAttempt(resource, machine.handle.attemptId)
          if (fault?.kind !== 'ignored') machine?.terminate()
        },
      }),
    list: (deployment, ctx) =>
      call({
        verb: 'list',
        attemptIds: [],
        ctx,
        effect: () =>
          world.listed(deployment).map(({ handle, owner, state }) => ({
            handle,
            owner,
            createdAtMs: handle.launchedAtMs,
            description: `${state} since ${formatInstant(handle.launchedAtMs)}`,
          })),
      }),
    interrupt: ({ id, attemptId }, { noticeMs }, ctx) =>
      call({
        verb: 'interrupt',
        attemptIds: [attemptId],
        ctx,
        effect: () => world.machine(id)?.interrupt(noticeMs),
      }),
    reserving: world.market !== undefined ? createScriptedReserving(world.market) : undefined,
  }
}

async function answer<T>(
  world: ScriptedWorld,
  { verb, attemptIds, ctx, effect, unknown, takesMs }: Call<T>,
): Promise<T> {
  const left = transient('the caller stopped waiting')
  if (ctx.signal.aborted) throw left
  world.calls.push({ verb, attemptIds, atMs: world.clock.now() })
  const fault = world.faults.take(verb, attemptIds)
  switch (fault?.kind) {
    case 'throws':
      throw new BackendError(fault.failure)
    case 'slow':
      await sleep(world.clock, fault.durationMs, ctx.signal)
      if (ctx.signal.aborted) throw left
      return effect(fault)
    case 'loses-answer':
      if (fault.hasEffect) effect(fault)
      if (unknown === undefined) throw transient('the answer was lost')
      return unknown(fault.findAfterMs)
    case 'late':
      world.later(fault.effectAfterMs, () => tried(() => effect(fault)))
      return unknown!(fault.findAfterMs)
    case 'hangs':
      if (fault.hasEffect) effect(fault)
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      if (unknown === undefined) throw left
      return unknown(FIND_AFTER_MS)
    case undefined:
    case 'refuses':
    case 'duplicates':
    case 'lies-gone':
    case 'ignored': {
      const answered = effect(fault)
      if (takesMs !== undefined) await sleep(world.clock, takesMs, ctx.signal)
      return takesMs !== undefined && ctx.signal.aborted ? unknown!(takesMs) : answered
    }
  }
}

/** No caller waits for its answer, whatever that is. */
function tried(effect: () => unknown): void {
  try {
    effect()
  } catch (error) {
    if (!(error instanceof BackendError)) throw error
  }
}

function tooSoon({ manners: { launchEveryMs } }: ScriptedWorld): BackendError {
  const message = 'too many launches'
  return new BackendError({ class: 'throttled', message, retryAfterMs: launchEveryMs })
}

function transient(message: string): BackendError {
  return new BackendError({ class: 'transient', message })
}
