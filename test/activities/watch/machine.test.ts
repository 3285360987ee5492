import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { MachineWatch } from '../../../activities/watch/machine'
import type { WatchInput } from '../../../core/activities'
import type { GrantSource } from '../../../activities/watch/grants'
import type { Lease } from '../../../core/documents'
import type { Sealed } from '../../../core/grants'
import type { Observation } from '../../../core/observation'
import type { Order } from '../../../core/job/plan'
import { attemptIdOf } from '../../../core/queues'
import { CLOCK_SLACK_MS } from '../../../core/time/time'
import { listCheckpoints } from '../../../storage/checkpoints'
import { putDocument } from '../../../storage/json'
import { layout } from '../../../storage/layout'
import { saveCheckpoint, UNTRAINED } from '../../backends/scripted/checkpoints'
import { Place, QUICK } from '../place'

const RUNNING: Observation = { state: 'running' }
const GONE: Observation = { state: 'gone', cause: 'interrupted' }
const TIMING = { ...QUICK, leaseMs: 12_000, goneConfirmMs: 2_000, silenceMs: 60_000 }

let place: Place
let order: Order
let input: WatchInput
/** The clock of the watch: it stands still between two steps of a test. */
let nowMs: number

beforeEach(async () => {
  place = await Place.make()
  const launched = place.launched()
  order = launched.order
  nowMs = launched.handle.launchedAtMs
  input = { ...launched, timing: TIMING, isRunning: false }
})
afterEach(() => place.dispose())

const watch = (over: Partial<WatchInput> = {}): MachineWatch =>
  new MachineWatch(
    { store: place.store, now: () => nowMs, monotonicMs: () => nowMs, backend: {} },
    { ...input, ...over },
  )
const lease = (): Promise<Lease | undefined> => place.read<Lease>(layout.lease(order.jobId, order.attempt))

describe('a watch', () => {
  it('reports once that the workload runs, and not again to who knows it', async () => {
    const one = watch()
    expect(await one.check(RUNNING, true)).toBeUndefined()
    await place.beat(order, { clockMs: nowMs, seq: 1, phase: 'restoring' })
    expect(await one.check(RUNNING, true)).toBeUndefined()
    await place.beat(order, { clockMs: nowMs, seq: 2 })
    expect(await one.check(RUNNING, true)).toEqual({ kind: 'running' })
    expect(await one.check(RUNNING, true)).toBeUndefined()
    expect(await watch({ isRunning: true }).check(RUNNING, true)).toBeUndefined()
  })

  it('reports what the runner warns of once, and that it no longer does', async () => {
    const warning = { kind: 'no-checkpoint', text: 'No checkpoint.', sinceMs: 1 }
    await place.beat(order, { clockMs: nowMs, seq: 1, warning })
    const known = (warned?: string | null): MachineWatch => watch({ isRunning: true, warned })
    expect(await known(null).check(RUNNING, true)).toEqual({ kind: 'warned', warning })
    expect(await known('no-checkpoint').check(RUNNING, true)).toBeUndefined()
    expect(await known().check(RUNNING, true)).toBeUndefined()
    await place.beat(order, { clockMs: nowMs, seq: 2 })
    expect(await known('no-checkpoint').check(RUNNING, true)).toEqual({ kind: 'warned', warning: null })
    expect(await known(null).check(RUNNING, true)).toBeUndefined()
  })

  it('reads nothing when no read is due', async () => {
    await place.beat(order, { clockMs: nowMs })
    expect(await watch().check(RUNNING, false)).toBeUndefined()
  })

  it('ends with what the runner wrote, whatever the provider says', async () => {
    await place.result(order)
    expect(await watch().check(RUNNING, true)).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
    expect(await watch().check(undefined, true)).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
  })

  it('treats an unreadable result as a failure that a person must see', async () => {
    await place.store.put(layout.result(order.jobId, 1), 'not JSON')
    expect(await watch().check(RUNNING, true)).toMatchObject({
      kind: 'over',
      end: { kind: 'failed', failure: { class: 'damaged', code: 'BAD_DOCUMENT' } },
    })
  })

  it("takes another attempt's result for a damaged one, and its beat for no sign that renews a lease", async () => {
    await place.beat(order, { attemptId: 'job-other-1' })
    expect(await watch().check(RUNNING, true)).toBeUndefined()
    expect(await lease()).toBeUndefined()
    await place.result(order, { attemptId: 'job-other-1' })
    expect(await watch().check(RUNNING, true)).toMatchObject({
      kind: 'over',
      end: { failure: { class: 'damaged', message: expect.stringContaining('job-other-1') } },
    })
  })

  it('passes over an unreadable beat', async () => {
    await place.store.put(layout.beat(order.jobId, 1), '{')
    expect(await watch().check(RUNNING, true)).toBeUndefined()
    await place.result(order)
    expect(await watch().check(RUNNING, true)).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
  })
})

describe('a machine that reported that it starts no runner', () => {
  const say = (words: string): Promise<void> => place.store.put(layout.lastWords(order.jobId, 1), words)
  const failed = (words: string): object => ({
    kind: 'over',
    end: { kind: 'failed', failure: { class: 'unreachable', code: 'start-failed', message: words } },
  })

  it('ends its attempt half a minute later, unless another machine of the order claims it', async () => {
    const one = watch()
    await say('the image has no python3\n\u001b[31m')
    expect(await one.check(RUNNING, true)).toBeUndefined()
    nowMs += 29_999
    expect(await one.check(RUNNING, true)).toBeUndefined()
    nowMs += 1
    expect(await one.check(RUNNING, true)).toMatchObject(
      failed('The machine started no runner: the image has no python3 [31m.'),
    )
    await putDocument(place.store, layout.claim(order.jobId, 1), { machine: 'another' })
    expect(await one.check(RUNNING, true)).toBeUndefined()
  })

  it('is believed no more once its runner beats', async () => {
    const one = watch()
    await say('nonsense')
    await one.check(RUNNING, true)
    nowMs += 60_000
    await place.beat(order, { seq: 1 })
    expect(await one.check(RUNNING, true)).toEqual({ kind: 'running' })
    expect(await one.check(RUNNING, true)).toBeUndefined()
  })

  it('is not read if it says too much', async () => {
    const one = watch()
    await say('x'.repeat(5_000))
    await one.check(RUNNING, true)
    nowMs += 30_000
    expect(await one.check(RUNNING, true)).toMatchObject(
      failed('The machine started no runner: its message is too long.'),
    )
  })
})

describe('a machine whose reservation ends', () => {
  const LEFT_MS = 600_000
  const usable = (): Partial<WatchInput> => ({
    timing: { ...TIMING, leaseMs: 10 * LEFT_MS },
    order: { ...order, runner: { ...order.runner, usableUntilMs: nowMs + LEFT_MS } },
  })
  /** When its runner begins to drain, and when that should have been seen. */
  const drainsAfterMs = LEFT_MS - CLOCK_SLACK_MS - TIMING.powerOffMs - TIMING.drainMs
  const noticedAfterMs = drainsAfterMs + TIMING.drainMs / 2

  it('is passed on only when its runner does not drain on its own, and once', async () => {
    const one = watch(usable())
    await place.beat(order, { clockMs: nowMs, seq: 1 })
    await one.check(RUNNING, true)
    nowMs += noticedAfterMs - 1
    await place.beat(order, { clockMs: nowMs, seq: 2 })
    expect(await one.check(RUNNING, true)).toBeUndefined()
    nowMs += 1
    await place.beat(order, { clockMs: nowMs, seq: 3 })
    const outcome = { kind: 'expiring', leftMs: TIMING.drainMs / 2 }
    expect(await one.check(RUNNING, true)).toEqual(outcome)
    nowMs -= noticedAfterMs
    const told = watch({ ...usable(), isRunning: true, isExpiring: true })
    const draining = watch({ ...usable(), isRunning: true })
    nowMs += noticedAfterMs
    expect(await told.check(RUNNING, true)).toBeUndefined()
    await place.beat(order, { clockMs: nowMs, seq: 4, phase: 'draining' })
    expect(await draining.check(RUNNING, true)).toBeUndefined()
  })

  it('continues if its provider says that it ends later, and its runner learns it from its lease', async () => {
    const input = usable()
    const longerMs = nowMs + 2 * LEFT_MS
    const one = watch({ ...input, isRunning: true })
    await place.beat(order, { clockMs: nowMs, seq: 1 })
    await one.check(RUNNING, true)
    expect(await lease()).not.toHaveProperty('usableUntilMs')
    await place.beat(order, { clockMs: nowMs, seq: 2 })
    // At once, though the lease itself is young.
    await one.check({ ...RUNNING, usableUntilMs: longerMs }, true)
    expect(await lease()).toMatchObject({ seq: 2, usableUntilMs: longerMs })
    await place.beat(order, { clockMs: nowMs, seq: 3 })
    await one.check({ ...RUNNING, usableUntilMs: longerMs }, true)
    expect(await lease()).toMatchObject({ seq: 2 })
    // Another watch knows it from there, where the provider does not report it.
    nowMs += noticedAfterMs
    const next = watch({ ...input, isRunning: true })
    await place.beat(order, { clockMs: nowMs, seq: 4 })
    expect(await next.check(RUNNING, true)).toBeUndefined()
    expect(await lease()).toMatchObject({ seq: 3, usableUntilMs: longerMs })
  })
})

describe('the lease', () => {
  it('is renewed after a fresh beat only, and when a twelfth of it has passed', async () => {
    const one = watch()
    await one.check(RUNNING, true)
    expect(await lease()).toBeUndefined()
    await place.beat(order, { clockMs: nowMs, seq: 1 })
    await one.check(RUNNING, true)
    expect(await lease()).toMatchObject({ seq: 1, answersBeat: 1, ttlMs: TIMING.leaseMs })
    nowMs += 999
    await place.beat(order, { clockMs: nowMs, seq: 2 })
    await one.check(RUNNING, true)
    expect(await lease()).toMatchObject({ seq: 1 })
    nowMs += 1
    // The same beat once more is no sign of life.
    await one.check(RUNNING, true)
    expect(await lease()).toMatchObject({ seq: 1 })
    await place.beat(order, { clockMs: nowMs, seq: 3 })
    await one.check(RUNNING, true)
    expect(await lease()).toMatchObject({ seq: 2, answersBeat: 3, ttlMs: TIMING.leaseMs })
  })

  it.each(['draining', 'finishing'] as const)('is not renewed for a runner that is %s', async (phase) => {
    await place.beat(order, { clockMs: nowMs, phase })
    await watch().check(RUNNING, true)
    expect(await lease()).toBeUndefined()
  })

  it('is renewed where the one that an earlier watch left cannot be read, and the runner obeys it', async () => {
    const silenceMs = TIMING.silenceMs
    await place.store.put(layout.lease(order.jobId, order.attempt), '{"seq": 4, ')
    const one = watch({ isRunning: true, timing: { ...TIMING, leaseMs: 10 * silenceMs } })
    for (let seq = 1; seq <= 3; seq++) {
      await place.beat(order, { clockMs: nowMs, seq, leaseSeq: 4 })
      expect(await one.check(RUNNING, true)).toBeUndefined()
      nowMs += silenceMs - 1
    }
    expect(await lease()).toMatchObject({ seq: 7, answersBeat: 3 })
  })

  it('is not renewed for a beat that cannot be read, which is still a sign of life', async () => {
    const { silenceMs } = TIMING
    const one = watch({ isRunning: true, timing: { ...TIMING, leaseMs: 10 * silenceMs } })
    const beat = layout.beat(order.jobId, order.attempt)
    const { store } = place
    for (let seq = 1; seq <= 3; seq++) {
      jest
        .spyOn(store, 'head')
        .mockImplementation(async (key) =>
          key === beat ? { key, sizeBytes: 1, modifiedAtMs: seq } : undefined,
        )
      await store.put(beat, `{"seq": ${seq}`)
      expect(await one.check(RUNNING, true)).toBeUndefined()
      nowMs += silenceMs - 1
    }
    nowMs += silenceMs
    expect(await one.check(RUNNING, true)).toMatchObject({ kind: 'silent' })
  })

  it('continues where an earlier watch left it', async () => {
    await place.beat(order, { clockMs: nowMs, seq: 1 })
    await watch().check(RUNNING, true)
    const next = watch()
    nowMs += TIMING.leaseMs
    await place.beat(order, { clockMs: nowMs, seq: 2 })
    await next.check(RUNNING, true)
    expect(await lease()).toMatchObject({ seq: 2, answersBeat: 2 })
  })
})

describe('the lease of a machine that lives on grants', () => {
  const HOLDS_MS = 40_000
  /** Numbered as they were given; one is refused while the reason is set. */
  let given: number
  let asked: number
  let trouble: Error | undefined
  const sealed = (number: number): Sealed => ({ v: 1, nonce: String(number), text: '', tag: '' })
  const endOf = new Map<number, number>()
  const source: GrantSource = {
    holdsForMs: HOLDS_MS,
    learnHoldsForMs: async () => HOLDS_MS,
    grant: async () => {
      asked += 1
      if (trouble !== undefined) throw trouble
      given += 1
      endOf.set(given, nowMs + HOLDS_MS)
      return { sealed: sealed(given), endsAtMs: nowMs + HOLDS_MS }
    },
    recall: (_, { nonce, ...rest }) => {
      if (nonce === 'of another key') throw new Error('another key')
      return { sealed: { nonce, ...rest }, endsAtMs: endOf.get(Number(nonce))! }
    },
  }
  const granted = (): MachineWatch =>
    new MachineWatch(
      { store: place.store, now: () => nowMs, monotonicMs: () => nowMs, backend: {}, grants: source },
      { ...input, timing: { ...TIMING, drainMs: 3_000, powerOffMs: 1_000 } },
    )
  let seq = 0
  const beatAndLook = async (one: MachineWatch, afterMs = 0): Promise<Lease | undefined> => {
    nowMs += afterMs
    await place.beat(order, { clockMs: nowMs, seq: ++seq })
    await one.check(RUNNING, true)
    return lease()
  }
  beforeEach(() => {
    given = asked = 0
    trouble = undefined
    endOf.clear()
  })

  it('carries one from the first on, and asks for another only when half of it is over', async () => {
    const one = granted()
    expect(await beatAndLook(one)).toMatchObject({ seq: 1, ttlMs: 12_000, grant: sealed(1) })
    expect(await beatAndLook(one, 900)).toMatchObject({ seq: 1 })
    for (let passedMs = 900; passedMs < HOLDS_MS / 2; passedMs += 1_000) await beatAndLook(one, 1_000)
    expect(asked).toBe(2)
    expect(await lease()).toMatchObject({ ttlMs: 12_000, grant: sealed(2) })
  })

  it('is renewed at once with a new one, though it is not due yet', async () => {
    const one = granted()
    await beatAndLook(one)
    const before = await beatAndLook(one, 19_500)
    expect(before).toMatchObject({ seq: 2, grant: sealed(1) })
    expect(await beatAndLook(one, 600)).toMatchObject({ seq: 3, grant: sealed(2) })
  })

  it('reaches no further than the present one less a drain while there is no new one, and never shrinks', async () => {
    const one = granted()
    await beatAndLook(one)
    const endsAtMs = nowMs + HOLDS_MS
    trouble = new Error('the token service does not answer')
    let lapsesAtMs = 0
    while (nowMs < endsAtMs) {
      const { seq: was } = (await lease())!
      const { seq: now, ttlMs, grant } = (await beatAndLook(one, 500))!
      expect(grant).toEqual(sealed(1))
      if (now === was) continue
      expect(nowMs + ttlMs).toBeLessThanOrEqual(endsAtMs - 4_000)
      expect(nowMs + ttlMs).toBeGreaterThan(lapsesAtMs)
      lapsesAtMs = nowMs + ttlMs
    }
    // To the very end of what the grant allows.
    expect(lapsesAtMs).toBe(endsAtMs - 4_000)
    trouble = undefined
    expect(await beatAndLook(one, 500)).toMatchObject({ ttlMs: 12_000, grant: sealed(2) })
  })

  it('is left alone while it is unknown how long the first one holds', async () => {
    const one = granted()
    trouble = new Error('the token service does not answer')
    expect(await beatAndLook(one)).toBeUndefined()
    trouble = undefined
    expect(await beatAndLook(one, 500)).toMatchObject({ seq: 1, grant: sealed(1) })
  })

  it('is renewed without one where the machine was started without and none can be got', async () => {
    const before = new MachineWatch(
      { store: place.store, now: () => nowMs, monotonicMs: () => nowMs, backend: {} },
      input,
    )
    expect(await beatAndLook(before)).toMatchObject({ seq: 1 })
    trouble = new Error('workers have no role to give')
    const one = granted()
    const renewed = await beatAndLook(one, 5_000)
    expect(renewed).toMatchObject({ seq: 2, ttlMs: TIMING.leaseMs })
    expect(renewed).not.toHaveProperty('grant')
    trouble = undefined
    expect(await beatAndLook(one, 5_000)).toMatchObject({ seq: 3, grant: sealed(1) })
  })

  it('continues with the one that an earlier watch left, and asks for another where that cannot be opened', async () => {
    await beatAndLook(granted())
    expect(await beatAndLook(granted(), 5_000)).toMatchObject({ seq: 2, grant: sealed(1) })
    expect(asked).toBe(1)
    const foreign = { ...sealed(1), nonce: 'of another key' }
    await place.store.put(
      layout.lease(order.jobId, 1),
      JSON.stringify({ ...(await lease()), grant: foreign }),
    )
    expect(await beatAndLook(granted(), 5_000)).toMatchObject({ seq: 3, grant: sealed(2) })
  })

  it('carries none to a runner that ends', async () => {
    await place.beat(order, { clockMs: nowMs, seq: ++seq, phase: 'draining' })
    await granted().check(RUNNING, true)
    expect(asked).toBe(0)
  })
})

describe('a machine that is gone', () => {
  it('is gone when the provider has said so twice, far enough apart', async () => {
    const one = watch()
    expect(await one.check(GONE, true)).toBeUndefined()
    nowMs += TIMING.goneConfirmMs - 1
    expect(await one.check(GONE, true)).toBeUndefined()
    nowMs += 1
    expect(await one.check(GONE, true)).toMatchObject({
      kind: 'over',
      end: { kind: 'failed', isLaunched: true, failure: { class: 'interrupted' } },
    })
  })

  it('is not gone by the time that passes after one look', async () => {
    const one = watch()
    await one.check(GONE, true)
    nowMs += 2 * TIMING.goneConfirmMs
    expect(await one.check('not-due', true)).toBeUndefined()
    expect(await one.check(undefined, true)).toBeUndefined()
    expect(await one.check(GONE, true)).toMatchObject({ kind: 'over' })
  })

  it('is not gone when it was seen alive in between', async () => {
    const one = watch()
    await one.check(GONE, true)
    nowMs += TIMING.goneConfirmMs
    await one.check(RUNNING, true)
    expect(await one.check(GONE, true)).toBeUndefined()
  })

  it('is not gone while it beats, if its provider has given it up and not ended it', async () => {
    const givenUp: Observation = { state: 'gone', cause: 'failed-to-start', isStillBilled: true }
    const missedMs = 3 * TIMING.beatMs
    const one = watch({ isRunning: true })
    for (let seq = 1; seq <= 10; seq++) {
      await place.beat(order, { clockMs: nowMs, seq })
      expect(await one.check(givenUp, true)).toBeUndefined()
      nowMs += missedMs - 1
    }
    expect(await one.check(givenUp, true)).toBeUndefined()
    nowMs += 1
    expect(await one.check(givenUp, true)).toMatchObject({ kind: 'over', end: { kind: 'failed' } })
  })

  it('had its say first: a result written on the way out counts more', async () => {
    const one = watch()
    await one.check(GONE, true)
    await place.result(order, { outcome: 'stopped', reason: 'lease' })
    nowMs += TIMING.goneConfirmMs
    expect(await one.check(GONE, false)).toEqual({ kind: 'over', end: { kind: 'stopped', by: 'lease' } })
  })

  it('is not judged while the store does not answer: its result may lie there', async () => {
    const one = watch()
    await one.check(GONE, true)
    nowMs += TIMING.goneConfirmMs
    const bringBack = await place.storeDown()
    expect(await one.check(GONE, true)).toBeUndefined()
    await bringBack()
    await place.result(order)
    nowMs += 1
    expect(await one.check(GONE, true)).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
  })
})

describe('silence', () => {
  it('is reported only when it was long, with all the others answering', async () => {
    const one = watch({ timing: { ...TIMING, leaseMs: 600_000 } })
    await place.beat(order, { clockMs: nowMs })
    await one.check(RUNNING, true)
    nowMs += TIMING.silenceMs - 1
    expect(await one.check(RUNNING, true)).toBeUndefined()
    nowMs += 1
    expect(await one.check(RUNNING, true)).toEqual({ kind: 'silent', silentMs: TIMING.silenceMs })
  })

  it.each(['the provider', 'the store'])('does not count while %s does not answer', async (who) => {
    const one = watch({ isRunning: true, timing: { ...TIMING, leaseMs: 600_000 } })
    await place.beat(order, { clockMs: nowMs })
    await one.check(RUNNING, true)
    nowMs += TIMING.silenceMs - 1
    const bringBack = who === 'the store' ? await place.storeDown() : undefined
    expect(await one.check(who === 'the store' ? RUNNING : undefined, true)).toBeUndefined()
    await bringBack?.()
    nowMs += TIMING.silenceMs - 1
    expect(await one.check(RUNNING, true)).toBeUndefined()
    nowMs += 1
    expect(await one.check(RUNNING, true)).toMatchObject({ kind: 'silent' })
  })

  it('ends an attempt once its lease has certainly run out, start, drain, power-off and slack included', async () => {
    const one = watch({ timing: { ...TIMING, startWithinMs: 1_000, silenceMs: 1e9 } })
    expect(await one.check(undefined, true)).toBeUndefined()
    nowMs += 1_000 + TIMING.leaseMs + TIMING.drainMs + TIMING.powerOffMs + CLOCK_SLACK_MS
    expect(await one.check(undefined, true)).toBeUndefined()
    nowMs += 1
    expect(await one.check(undefined, true)).toEqual({ kind: 'over', end: { kind: 'stopped', by: 'lease' } })
  })
})

describe('after a new checkpoint', () => {
  it('the oldest go, but for the one that the attempt was restored from', async () => {
    const { store } = place
    const saved = []
    for (let step = 1; step <= 5; step++) {
      const saving = { store, jobId: order.jobId, attempt: 1, nowMs }
      saved.push(await saveCheckpoint({ ...UNTRAINED, step }, saving))
    }
    await place.beat(order, { clockMs: nowMs, checkpoint: saved[4]!, restoredFrom: saved[0]! })
    await watch().check(RUNNING, true)
    const left = await listCheckpoints(store, order.jobId)
    expect(left.map(({ step }) => step)).toEqual([5, 4, 3, 1])
  })

  it('what the attempt is uploading stays, whatever its step, and what an attempt before it left goes', async () => {
    const { store } = place
    const [own, old] = [2, 1].map((attempt) => `${layout.checkpoint(order.jobId, 3, attempt)}files/model.pt`)
    for (const key of [own!, old!]) await store.put(key, 'half of it')
    const saving = { store, jobId: order.jobId, attempt: 2, nowMs }
    const checkpoint = await saveCheckpoint({ ...UNTRAINED, step: 5 }, saving)
    const second = { ...order, attempt: 2, attemptId: attemptIdOf(order.jobId, 2) }
    await place.beat(second, { checkpoint })
    await watch({ order: second }).check(RUNNING, true)
    expect(await store.head(own!)).toBeDefined()
    expect(await store.head(old!)).toBeUndefined()
  })
})
