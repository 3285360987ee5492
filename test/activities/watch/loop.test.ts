import { setMaxListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { WatchLoop } from '../../../activities/watch/loop'
import type { WatchInput } from '../../../core/activities'
import type { Timing } from '../../../core/time/timing'
import { layout } from '../../../storage/layout'
import { until } from '../../support/until'
import { Place, QUICK, SPOT } from '../place'

let place: Place
let leaving: AbortController

beforeEach(async () => {
  place = await Place.make({ wares: [{ ...SPOT, stock: 1_000 }] })
  leaving = new AbortController()
  setMaxListeners(0, leaving.signal)
})
afterEach(async () => {
  leaving.abort()
  await place.dispose()
})

const watched = (timing: Partial<Timing> = {}): WatchInput => ({
  ...place.launched(),
  timing: { ...QUICK, ...timing },
  isRunning: false,
})

/** Watches without waiting for the outcome, which is reported at the end of the test. */
function follow(loop: WatchLoop, input: WatchInput): { outcome: unknown } {
  const followed: { outcome: unknown } = { outcome: undefined }
  loop.watch(input, leaving.signal).then(
    (outcome) => (followed.outcome = outcome),
    (error: unknown) => (followed.outcome = error),
  )
  return followed
}

const observed = (): number => place.world.callsOf('observe').length

describe('a loop', () => {
  it('asks the provider once for all its machines, and answers each watch separately', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    const inputs = Array.from({ length: 50 }, () => watched())
    const followed = inputs.map((input) => follow(loop, input))
    await until(() => place.world.callsOf('observe').some(({ attemptIds }) => attemptIds.length === 50))
    await place.result(inputs[7]!.order)
    await until(() => followed[7]!.outcome !== undefined)
    expect(followed[7]!.outcome).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
    expect(followed.filter(({ outcome }) => outcome !== undefined)).toHaveLength(1)
    expect(loop.size).toBe(49)
  })

  it('asks a provider no more often than it allows, and reads documents meanwhile', async () => {
    // By the clock of the loop, as it reads it: another one can tick in between.
    let nowMs = 0
    const times: number[] = []
    const observe = place.backend.observe.bind(place.backend)
    Object.assign(place.backend, {
      capabilities: { ...place.backend.capabilities, pace: { observeMs: 600 } },
      observe: (...args: Parameters<typeof observe>) => {
        times.push(nowMs)
        return observe(...args)
      },
    })
    const loop = new WatchLoop(place.backend, place.store, place.now, () => (nowMs = place.now()))
    const inputs = Array.from({ length: 5 }, () => watched({ beatMs: 0 }))
    const [first] = inputs.map((input) => follow(loop, input))
    await until(() => observed() === 1)
    await place.result(inputs[0]!.order)
    await until(() => first!.outcome !== undefined)
    expect(observed()).toBe(1)
    await until(() => observed() === 4)
    const gaps = times.slice(1).map((atMs, index) => atMs - times[index]!)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(600)
  })

  it('keeps hearing of machines at one place while another one does not answer', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    const [lost, seen] = [watched(), watched()]
    Object.assign(place.backend, {
      placeOf: ({ id }: { id: string }) => (id === lost.handle.id ? 'down' : 'up'),
    })
    const observe = place.backend.observe.bind(place.backend)
    place.backend.observe = async (handles, ctx) => {
      if (handles.some(({ id }) => id === lost.handle.id)) throw new Error('no answer')
      return observe(handles, ctx)
    }
    const followed = [lost, seen].map((input) => follow(loop, input))
    for (const { handle } of [lost, seen]) await place.backend.terminate(handle, { signal: leaving.signal })
    await until(() => followed[1]!.outcome !== undefined)
    expect(followed[0]!.outcome).toBeUndefined()
  })

  it('keeps hearing of other machines while its provider does not answer about one', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    const [lost, seen] = [watched(), watched()]
    const observe = place.backend.observe.bind(place.backend)
    place.backend.observe = async (handles, ctx) =>
      (await observe(handles, ctx)).map((look, at) => (handles[at]!.id === lost.handle.id ? undefined : look))
    const followed = [lost, seen].map((input) => follow(loop, input))
    for (const { handle } of [lost, seen]) await place.backend.terminate(handle, { signal: leaving.signal })
    await until(() => followed[1]!.outcome !== undefined)
    expect(followed[0]!.outcome).toBeUndefined()
  })

  it('tells once when its provider does not answer, and once when it does again', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    const told: (string | undefined)[] = []
    loop.onProviderTrouble = (trouble) => told.push(trouble?.message)
    const failure = { class: 'auth', message: 'the credentials have expired' } as const
    place.world.faults.add('observe', { kind: 'throws', failure }, { times: 3 })
    follow(loop, watched())
    await until(() => told.length === 2)
    const atMs = observed()
    await until(() => observed() > atMs + 2)
    expect(told).toEqual([failure.message, undefined])
  })

  it('continues without a provider that never answers', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    loop.observeLimitMs = 20
    place.world.faults.add('observe', { kind: 'hangs', hasEffect: false }, { times: 2 })
    const input = watched({ beatMs: 0 })
    const followed = follow(loop, input)
    await until(() => observed() > 3)
    await place.result(input.order)
    await until(() => followed.outcome !== undefined)
    expect(followed.outcome).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
  })

  it('continues with the others while the store never answers about one', async () => {
    const [other, stuck] = ['job-a', 'job-b'].map((jobId) => ({
      ...place.launched(place.order({ jobId })),
      timing: { ...QUICK, beatMs: 0 },
      isRunning: false,
    })) as [WatchInput, WatchInput]
    let asked = 0
    const get = place.store.get.bind(place.store)
    place.store.get = (key) => {
      if (!key.startsWith(layout.attempts('job-b'))) return get(key)
      asked += 1
      return new Promise(() => undefined)
    }
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    loop.checkLimitMs = 20
    const [followed, held] = [follow(loop, other), follow(loop, stuck)]
    await until(() => asked > 0 && observed() > 3)
    await place.result(other.order)
    await until(() => followed.outcome !== undefined)
    expect(followed.outcome).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
    expect([held.outcome, asked]).toEqual([undefined, 1])
  })

  it('looks at a new machine at once, in the middle of a long pause', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    follow(loop, watched({ observeMs: 600_000 }))
    await until(() => observed() === 1)
    const input = watched({ observeMs: 600_000 })
    await place.beat(input.order)
    const followed = follow(loop, input)
    await until(() => followed.outcome !== undefined)
    expect(followed.outcome).toEqual({ kind: 'running' })
  })

  it('lets go of a watch at once when it is cancelled, and of nothing else', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    const one = new AbortController()
    const watch = loop.watch(watched({ observeMs: 600_000 }), one.signal)
    follow(loop, watched({ observeMs: 600_000 }))
    await until(() => observed() > 0)
    one.abort(new Error('cancelled'))
    await expect(watch).rejects.toThrow('cancelled')
    expect(loop.size).toBe(1)
    await expect(loop.watch(watched(), one.signal)).rejects.toThrow('cancelled')
    expect(loop.size).toBe(1)
  })

  it('does nothing more when none is left, and begins again with the next', async () => {
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    const input = watched()
    await place.result(input.order)
    await loop.watch(input, leaving.signal)
    expect(loop.size).toBe(0)
    const looks = observed()
    const next = watched()
    await place.result(next.order)
    await loop.watch(next, leaving.signal)
    expect(observed()).toBe(looks + 1)
  })

  it('takes no answer of the provider for an empty answer', async () => {
    const failure = { class: 'transient', message: 'no answer' } as const
    place.world.faults.add('observe', { kind: 'throws', failure }, { times: 3 })
    const loop = new WatchLoop(place.backend, place.store, place.now, place.now)
    const followed = follow(loop, watched())
    await until(() => observed() >= 5)
    expect(followed.outcome).toBeUndefined()
  })

  it('does not leave a watch without an end when its own code breaks', async () => {
    const { store } = place
    store.head = () => Promise.reject(new TypeError('a bug'))
    const loop = new WatchLoop(place.backend, store, place.now, place.now)
    await expect(loop.watch(watched(), leaving.signal)).rejects.toThrow('a bug')
    expect(loop.size).toBe(0)
  })

  it('reads a large loop more slowly than it looks at it: 200 machines a second', async () => {
    let nowMs = Date.now()
    const reads: string[] = []
    const counting = new Proxy(place.store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          if (name === 'get' && String(args[0]).endsWith('beat.json')) reads.push(String(args[0]))
          return (value as (...all: unknown[]) => unknown).apply(target, args)
        }
      },
    })
    const loop = new WatchLoop(
      place.backend,
      counting,
      () => nowMs,
      () => nowMs,
    )
    const COUNT = 600
    for (let index = 0; index < COUNT; index++) follow(loop, watched({ beatMs: 1_000 }))
    const looks = async (count: number): Promise<void> => {
      const goal = observed() + count
      await until(() => observed() >= goal)
    }
    await until(() => new Set(reads).size === COUNT)
    // The first were added while the loop was still small, and were read again soon.
    nowMs += 3_000
    await looks(2)
    const before = reads.length
    nowMs += 2_999
    await looks(3)
    expect(reads.length).toBe(before)
    nowMs += 1
    await looks(3)
    expect(reads.length).toBe(before + COUNT)
  })

  it('knows how long ago it has looked at each machine', async () => {
    let monotonicMs = 0
    const loop = new WatchLoop(place.backend, place.store, place.now, () => monotonicMs)
    expect(loop.longestUncheckedMs).toBe(0)
    follow(loop, watched({ observeMs: 600_000 }))
    await until(() => observed() > 0)
    monotonicMs = 7_000
    expect(loop.longestUncheckedMs).toBe(7_000)
  })
})
