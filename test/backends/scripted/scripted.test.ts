import { describe, expect, it } from '@jest/globals'
import { tmpdir } from 'node:os'
import type { Backend } from '../../../backends/backend'
import type { MachineHandle } from '../../../core/handle'
import type { Beat, Drain, Lease, Limits, LogLine, RunnerResult } from '../../../core/documents'
import type { Order } from '../../../core/job/plan'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { parseBeat, parseLogLine, parseManifest, parseResult } from '../../../intake/documents'
import { readArtifact } from '../../../storage/artifacts'
import { listCheckpoints, readManifest, verifyCheckpoint } from '../../../storage/checkpoints'
import { paidFor } from '../../support/money'
import { until } from '../../support/until'
import { layout } from '../../../storage/layout'
import { readLines } from '../../../storage/logs'
import { testStoreContract } from '../../storage/contract'
import { patiently, settled } from '../harness'
import { issueOrder, makeOrder, type OrderOptions } from '../orders'
import type { Behaviour } from './behaviour'
import { weightsAfter } from './checkpoints'
import { DrivenClock } from './clock'
import { MemoryStore } from './memory-store'
import { createScriptedBackend } from './scripted-backend'
import { WEIGHTS_ARTIFACT } from './scripted-runner'
import { ScriptedWorld, type Ware, type WorldOptions } from './world'

const START_MS = Date.parse('2026-11-21T00:00:00Z')
const SPOT: Ware = { capacityType: 'spot', type: 'v100', priceMicroUsdPerHour: 900_000 }
/** 10 steps a second, 1,000 of them, saved every 100. */
const TRAINING: Partial<Behaviour> = { stepsTotal: 1_000, stepsPerSecond: 10, checkpointEverySteps: 100 }

interface Scene {
  clock: DrivenClock
  store: MemoryStore
  world: ScriptedWorld
  backend: Backend
  /** Issues and launches an order. */
  launch(options?: Partial<OrderOptions>): Promise<{ order: Order; handle: MachineHandle }>
  beat(order: Order): Promise<Beat>
  result(order: Order): Promise<RunnerResult>
}

function scene(behaviour: Partial<Behaviour> = {}, options: Partial<WorldOptions> = {}): Scene {
  const clock = new DrivenClock(START_MS)
  const store = new MemoryStore(() => clock.now())
  const behave = (): Partial<Behaviour> => ({ ...TRAINING, ...behaviour })
  const world = new ScriptedWorld({ clock, store, wares: [SPOT], behave, ...options })
  const backend = createScriptedBackend(world)
  const text = async (key: string): Promise<string> => (await store.get(key))!.toString()
  return {
    clock,
    store,
    world,
    backend,
    launch: async (more = {}) => {
      const order = makeOrder({ store, offers: world.offers({}), ...more })
      await issueOrder(more.store ?? store, order, clock.now())
      const outcome = await backend.launch(order, patiently())
      if (outcome.kind !== 'launched') throw new Error(outcome.kind)
      return { order, handle: outcome.handle }
    },
    beat: async ({ jobId, attempt }) => parseBeat(await text(layout.beat(jobId, attempt))),
    result: async ({ jobId, attempt }) => parseResult(await text(layout.result(jobId, attempt))),
  }
}

const weightsOf = async ({ store }: Scene, { jobId }: Order): Promise<Buffer | undefined> =>
  readArtifact(store, jobId, WEIGHTS_ARTIFACT)

const memory = new MemoryStore(Date.now)
testStoreContract(
  'the memory store',
  () => memory,
  (method, url, body) => memory.ask(method, url, body),
)

describe('a scripted machine', () => {
  it('trains to the end and leaves what only its steps decide', async () => {
    const s = scene()
    const { order, handle } = await s.launch()
    await s.clock.advance(99 * SECOND_MS)
    expect((await s.backend.observe([handle], patiently()))[0]).toEqual({ state: 'running' })
    const beat = await s.beat(order)
    expect(beat).toMatchObject({ phase: 'running', progress: { step: 950 }, checkpoint: { step: 900 } })
    expect(beat.seq).toBe(20)
    await s.clock.advance(SECOND_MS)
    expect(await s.result(order)).toMatchObject({
      outcome: 'succeeded',
      reason: 'completed',
      exitCode: 0,
      finishedAtMs: START_MS + 100 * SECOND_MS,
      progress: { step: 1_000 },
      checkpoint: { step: 1_000 },
      restoredFrom: null,
    })
    expect(await weightsOf(s, order)).toEqual(weightsAfter(1_000))
    const checkpoints = await listCheckpoints(s.store, order.jobId)
    expect(checkpoints.map(({ step }) => step / 100)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    const newest = { jobId: order.jobId, checkpoint: checkpoints[0]! }
    const manifest = (await readManifest(s.store, newest, parseManifest))!
    expect(await verifyCheckpoint(s.store, { ...newest, manifest }, tmpdir())).toEqual([])
    expect((await s.backend.observe([handle], patiently()))[0]).toMatchObject({
      state: 'gone',
      cause: 'ended',
    })
  })

  it('that was interrupted is followed by one that ends with the same weights', async () => {
    const s = scene()
    const { order, handle } = await s.launch()
    await s.clock.advance(25 * SECOND_MS)
    await s.backend.interrupt!(handle, { noticeMs: 2 * MINUTE_MS }, patiently())
    await s.clock.advance(SECOND_MS)
    expect(await s.result(order)).toMatchObject({
      outcome: 'stopped',
      reason: 'interrupted',
      exitCode: 143,
      checkpoint: { step: 250, attempt: 1 },
    })
    const second = await s.launch({ jobId: order.jobId, attempt: 2 })
    await s.clock.advance(27 * SECOND_MS)
    await s.backend.interrupt!(second.handle, { noticeMs: null }, patiently())
    await s.clock.advance(MINUTE_MS)
    expect(await s.store.get(layout.result(order.jobId, 2))).toBeUndefined()
    const third = await s.launch({ jobId: order.jobId, attempt: 3 })
    await s.clock.advance(2 * MINUTE_MS)
    expect(await s.result(third.order)).toMatchObject({
      outcome: 'succeeded',
      restoredFrom: { step: 500, attempt: 2 },
    })
    expect(await weightsOf(s, order)).toEqual(weightsAfter(1_000))
  })

  it('resumes from the newest checkpoint that is whole', async () => {
    for (const how of ['no-manifest', 'wrong-bytes'] as const) {
      const s = scene(
        {},
        {
          behave: ({ attempt }) => ({
            ...TRAINING,
            ...(attempt === 1 && { diesAtStep: 350, torn: { atStep: 300, how } }),
          }),
        },
      )
      const { order } = await s.launch()
      await s.clock.advance(MINUTE_MS)
      const second = await s.launch({ jobId: order.jobId, attempt: 2 })
      await s.clock.advance(2 * MINUTE_MS)
      expect(await s.result(second.order)).toMatchObject({
        outcome: 'succeeded',
        restoredFrom: { step: 200, attempt: 1 },
      })
      expect(await weightsOf(s, order)).toEqual(weightsAfter(1_000))
    }
  })

  it('begins where it was restored, and saves nothing that was saved before', async () => {
    const s = scene({}, { behave: () => ({ ...TRAINING, diesAtStep: 250 }) })
    const { order } = await s.launch()
    await s.clock.advance(MINUTE_MS)
    const second = await s.launch({ jobId: order.jobId, attempt: 2 })
    await s.backend.interrupt!(second.handle, { noticeMs: MINUTE_MS }, patiently())
    await s.clock.advance(SECOND_MS)
    const restored = { step: 200, attempt: 1 }
    expect(await s.result(second.order)).toMatchObject({ restoredFrom: restored, checkpoint: null })
    const late = scene({ diesAtStep: 100 }, { store: s.store })
    const third = await late.launch({ store: s.store, jobId: order.jobId, attempt: 3 })
    await late.clock.advance(MINUTE_MS)
    expect(await s.beat(third.order)).toMatchObject({
      restoredFrom: restored,
      phase: 'running',
    })
    expect((await late.backend.observe([third.handle], patiently()))[0]!.state).toBe('running')
  })

  it('has only to end when it was restored at its own end, or beyond', async () => {
    for (const stepsTotal of [200, 150]) {
      const s = scene(
        {},
        { behave: ({ attempt }) => ({ ...TRAINING, ...(attempt === 2 && { stepsTotal }) }) },
      )
      const { order, handle } = await s.launch()
      await s.clock.advance(20 * SECOND_MS)
      await s.backend.interrupt!(handle, { noticeMs: null }, patiently())
      const second = await s.launch({ jobId: order.jobId, attempt: 2 })
      await s.clock.advance(SECOND_MS)
      expect(await s.result(second.order)).toMatchObject({
        outcome: 'succeeded',
        progress: { step: 200 },
        restoredFrom: { step: 200 },
        checkpoint: null,
      })
    }
  })

  it('takes its secrets, and runs no bundle but the one that was ordered', async () => {
    const s = scene()
    const order = makeOrder({ store: s.store, offers: s.world.offers({}) })
    const bundle = { sha256: 'f'.repeat(64), sizeBytes: 1 }
    await s.store.put(layout.bundle(order.jobId, bundle.sha256), 'x')
    await s.store.put(layout.attemptSecrets(order.jobId, 1), 'sealed')
    await issueOrder(s.store, { ...order, runner: { ...order.runner, secrets: ['KEY'], bundle } }, START_MS)
    await s.backend.launch(order, patiently())
    await s.clock.advance(SECOND_MS)
    expect(await s.store.get(layout.attemptSecrets(order.jobId, 1))).toBeUndefined()
    expect(await s.result(order)).toMatchObject({ outcome: 'failed', reason: 'bundle', progress: null })
  })

  it('saves and stops when asked to, and never starts when it was asked before', async () => {
    const s = scene({ savesInMs: 3 * SECOND_MS })
    const { order } = await s.launch()
    await s.clock.advance(12 * SECOND_MS)
    const drain: Drain = { reason: 'cancelled', windowMs: MINUTE_MS, requestedAtMs: s.clock.now() }
    await s.store.putIfAbsent(layout.drain(order.jobId, 1), JSON.stringify(drain))
    await s.clock.advance(10 * SECOND_MS)
    const result = await s.result(order)
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'cancelled', checkpoint: { step: 150 } })
    expect(result.finishedAtMs).toBe(START_MS + 18 * SECOND_MS)
    expect(result.phases.map((phase) => phase.name)).toEqual([
      'starting',
      'restoring',
      'running',
      'draining',
      'finishing',
    ])
    const order2 = makeOrder({ store: s.store, offers: s.world.offers({}), jobId: order.jobId, attempt: 2 })
    await issueOrder(s.store, order2, s.clock.now())
    await s.store.putIfAbsent(
      layout.drain(order.jobId, 2),
      JSON.stringify({ ...drain, reason: 'superseded' }),
    )
    await s.backend.launch(order2, patiently())
    await s.clock.advance(SECOND_MS)
    expect(await s.result(order2)).toMatchObject({ outcome: 'stopped', reason: 'superseded', progress: null })
  })

  it('that is deaf or too slow is killed when its time to stop is over', async () => {
    for (const behaviour of [{ isDeaf: true }, { savesInMs: MINUTE_MS }]) {
      const s = scene(behaviour)
      const { order } = await s.launch()
      await s.clock.advance(12 * SECOND_MS)
      const drain: Drain = { reason: 'migrated', windowMs: 10 * SECOND_MS, requestedAtMs: s.clock.now() }
      await s.store.putIfAbsent(layout.drain(order.jobId, 1), JSON.stringify(drain))
      await s.clock.advance(30 * SECOND_MS)
      const result = await s.result(order)
      expect(result).toMatchObject({ outcome: 'stopped', reason: 'migrated', signal: 'SIGKILL' })
      expect(result.finishedAtMs).toBe(START_MS + 25 * SECOND_MS)
      expect(result.checkpoint!.step).toBe('isDeaf' in behaviour ? 200 : 100)
    }
  })

  it('stops in time for its limits, and obeys new ones', async () => {
    const s = scene({ stepsTotal: 1e6 })
    const limits: Limits = { seq: 0, deadlineAtMs: START_MS + 10 * MINUTE_MS, budget: paidFor(5 * MINUTE_MS) }
    const { order } = await s.launch({ runner: { limits } })
    const wider: Limits = { seq: 1, deadlineAtMs: START_MS + 10 * MINUTE_MS, budget: paidFor(20 * MINUTE_MS) }
    await s.store.put(layout.limits(order.jobId, 1, 1), JSON.stringify(wider))
    await s.clock.advance(9 * MINUTE_MS)
    const result = await s.result(order)
    // The drain's 110 s and the power-off's 10 s before the deadline.
    expect(result).toMatchObject({ reason: 'deadline', finishedAtMs: START_MS + 8 * MINUTE_MS })
    const plain = await s.launch({ runner: { limits: { ...limits, deadlineAtMs: null } } })
    await s.clock.advance(9 * MINUTE_MS)
    expect(await s.result(plain.order)).toMatchObject({ reason: 'budget' })
  })

  it('counts the time that it took to get the machine as paid', async () => {
    const s = scene({ stepsTotal: 1e6 }, { bootMs: 2 * MINUTE_MS })
    const limits: Limits = { seq: 0, deadlineAtMs: null, budget: paidFor(5 * MINUTE_MS) }
    const { order } = await s.launch({ runner: { limits } })
    await s.clock.advance(9 * MINUTE_MS)
    const finishedAtMs = START_MS + 3 * MINUTE_MS
    expect(await s.result(order)).toMatchObject({ reason: 'budget', finishedAtMs })
  })

  it('continues while its lease is renewed, and fences itself off when it lapses', async () => {
    const s = scene({ stepsTotal: 1e6 })
    const { order } = await s.launch({ timing: { leaseMs: HOUR_MS } })
    await s.clock.advance(50 * MINUTE_MS)
    const { seq } = await s.beat(order)
    const renew = (lease: Lease): Promise<void> =>
      s.store.put(layout.lease(order.jobId, 1), JSON.stringify(lease))
    await renew({ seq: 1, answersBeat: seq, ttlMs: HOUR_MS })
    await s.clock.advance(50 * MINUTE_MS)
    expect(await s.beat(order)).toMatchObject({ leaseSeq: 1, phase: 'running' })
    await renew({ seq: 2, answersBeat: 1e9, ttlMs: HOUR_MS })
    await s.clock.advance(11 * MINUTE_MS)
    expect(await s.result(order)).toMatchObject({ reason: 'lease', outcome: 'stopped' })
  })

  it('that loses its network works on unseen and ends when its lease lapses', async () => {
    const s = scene({ stepsTotal: 1e6, silentAtStep: 120 })
    const { order, handle } = await s.launch({ timing: { leaseMs: 10 * MINUTE_MS } })
    await s.clock.advance(9 * MINUTE_MS)
    const beat = await s.beat(order)
    expect(beat.clockMs).toBeLessThan(START_MS + 13 * SECOND_MS)
    expect((await s.backend.observe([handle], patiently()))[0]!.state).toBe('running')
    await s.clock.advance(4 * MINUTE_MS)
    expect((await s.backend.observe([handle], patiently()))[0]!.state).toBe('gone')
    expect(await s.store.get(layout.result(order.jobId, 1))).toBeUndefined()
  })

  it('waits out a store that does not answer, and loses nothing', async () => {
    const s = scene()
    const { order } = await s.launch()
    await s.clock.advance(35 * SECOND_MS)
    s.store.isDown = true
    await s.clock.advance(2 * MINUTE_MS)
    s.store.isDown = false
    await s.clock.advance(2 * SECOND_MS)
    expect(await s.result(order)).toMatchObject({ outcome: 'succeeded', checkpoint: { step: 1_000 } })
    expect(await weightsOf(s, order)).toEqual(weightsAfter(1_000))
  })

  it('fails, dies, hangs or comes too late as scripted', async () => {
    const failing = scene({ fails: { atStep: 150, exitCode: 3 } })
    const failed = await failing.launch()
    await failing.clock.advance(MINUTE_MS)
    expect(await failing.result(failed.order)).toMatchObject({
      outcome: 'failed',
      reason: 'workload',
      exitCode: 3,
      progress: { step: 150 },
    })
    for (const [behaviour, state] of [
      [{ diesAtStep: 150 }, 'gone'],
      [{ hangsAtStep: 150 }, 'running'],
      [{ neverStarts: true }, 'running'],
      [{ neverBoots: true }, 'pending'],
    ] as const) {
      const s = scene(behaviour)
      const { order, handle } = await s.launch()
      await s.clock.advance(10 * HOUR_MS)
      expect((await s.backend.observe([handle], patiently()))[0]!.state).toBe(state)
      expect(await s.store.get(layout.result(order.jobId, 1))).toBeUndefined()
    }
    const slow = scene({}, { bootMs: 2 * HOUR_MS })
    const late = await slow.launch()
    await slow.clock.advance(3 * HOUR_MS)
    expect(await slow.result(late.order)).toMatchObject({ outcome: 'stopped', reason: 'late' })
  })

  it('uploads its log in chunks without a hole, and merges them', async () => {
    const s = scene({ stepsTotal: 5_000 })
    const { order } = await s.launch()
    await s.clock.advance(10 * MINUTE_MS)
    let chunks = 0
    for await (const chunk of s.store.list(layout.logs(order.jobId, 1))) chunks += Number(chunk.sizeBytes > 0)
    expect(chunks).toBeLessThan(64)
    const lines: LogLine[] = []
    const range = { jobId: order.jobId, attempt: 1, afterLine: 0, isOver: true }
    for await (const line of readLines(s.store, range, parseLogLine)) lines.push(line)
    const { logLines } = await s.result(order)
    expect(lines.map((line) => line.n)).toEqual(Array.from({ length: logLines }, (_, at) => at + 1))
    expect(lines.at(-1)!.m).toMatch(/^step 5000\/5000 loss /)
  })
})

describe('the scripted provider', () => {
  const outcomeOf = async ({ backend, store, world }: Scene): Promise<string> => {
    const outcome = await backend.launch(makeOrder({ store, offers: world.offers({}) }), patiently())
    return outcome.kind === 'refused' ? outcome.failure.class : outcome.kind
  }

  it('sells what it has, at the price of the moment, within the quota', async () => {
    const ware: Ware = {
      ...SPOT,
      stock: 2,
      priceMicroUsdPerHour: [
        [0, 900_000],
        [START_MS + HOUR_MS, 1_200_000],
      ],
    }
    const s = scene({}, { wares: [ware] })
    const first = await s.launch()
    expect(await outcomeOf(s)).toBe('launched')
    expect(await outcomeOf(s)).toBe('capacity')
    expect(s.world.offers({})[0]).toMatchObject({
      availability: 'unavailable',
      priceMicroUsdPerHour: 900_000,
    })
    await s.backend.terminate(first.handle, patiently())
    await s.clock.advance(HOUR_MS)
    expect(s.world.offers({})[0]).toMatchObject({
      availability: 'available',
      priceMicroUsdPerHour: 1_200_000,
    })
    s.world.quota = 2
    expect(await outcomeOf(s)).toBe('launched')
    expect(s.world.offers({})[0]).toMatchObject({ availability: 'no-quota' })
    expect(await outcomeOf(s)).toBe('quota')
  })

  it('tells its scripted lies once, to those that they are meant for', async () => {
    const s = scene()
    const { order, handle } = await s.launch()
    const other = await s.launch()
    const observe = async (of: MachineHandle): Promise<string> =>
      (await s.backend.observe([of], patiently()))[0]!.state
    s.world.faults.add('observe', { kind: 'lies-gone' }, { attemptId: order.attemptId })
    s.world.faults.add('terminate', { kind: 'ignored' }, { times: 2 })
    await s.clock.advance(1)
    expect([await observe(other.handle), await observe(handle), await observe(handle)]).toEqual([
      'running',
      'gone',
      'running',
    ])
    for (const state of ['running', 'running', 'gone']) {
      await s.backend.terminate(handle, patiently())
      expect(await observe(handle)).toBe(state)
    }
    s.world.faults.add('launch', { kind: 'duplicates' })
    const doubled = await s.launch()
    expect(await s.backend.find(doubled.order.attemptId, patiently())).toMatchObject({
      kind: 'found',
      handles: [doubled.handle, { attemptId: doubled.order.attemptId }],
    })
  })

  it('does not show in stale lists what was made meanwhile, and makes it twice without tokens', async () => {
    // One that bills until it is asked to stop keeps the second machine, which has nothing to do, on the list.
    const s = scene({}, { capabilities: { idempotency: 'tag', billsUntil: 'terminate' } })
    s.world.freezeLists(MINUTE_MS)
    const { order } = await s.launch()
    expect(await s.backend.find(order.attemptId, patiently())).toEqual({
      kind: 'unsettled',
      againInMs: MINUTE_MS,
    })
    expect(await s.backend.list('test', patiently())).toEqual([])
    await s.backend.launch(order, patiently())
    await s.clock.advance(MINUTE_MS)
    expect(await s.backend.find(order.attemptId, patiently())).toMatchObject({
      handles: [{ id: 'm-1' }, { id: 'm-2' }],
    })
    expect(await s.backend.list('test', patiently())).toHaveLength(2)
    await s.backend.launch(order, patiently())
    expect(s.world.machinesOf(order.attemptId)).toHaveLength(3)
  })

  it('sells and ends what its wares say of isolation, preemption and the longest run', async () => {
    const facts = { runMsMax: MINUTE_MS, isolation: 'shared', isPreemptible: true } as const
    const s = scene({ stepsTotal: 1_000_000 }, { wares: [{ ...SPOT, ...facts }] })
    expect(s.world.offers({})).toMatchObject([facts])
    const { handle } = await s.launch()
    const observed = async () => (await s.backend.observe([handle], patiently()))[0]
    await s.clock.advance(MINUTE_MS - 1)
    expect(await observed()).toMatchObject({ state: 'running' })
    await s.clock.advance(1)
    expect(await observed()).toMatchObject({ cause: 'interrupted', endedAtMs: START_MS + MINUTE_MS })
  })

  it('forgets ended machines: lists and observations know nothing of them', async () => {
    const s = scene({}, { forgetsAfterMs: MINUTE_MS })
    const { handle } = await s.launch()
    await s.backend.terminate(handle, patiently())
    const observed = async () => (await s.backend.observe([handle], patiently()))[0]
    expect(await observed()).toMatchObject({ cause: 'ended', endedAtMs: START_MS })
    await s.clock.advance(MINUTE_MS)
    expect(await observed()).toEqual({ state: 'gone', cause: 'unknown' })
  })

  it('shows new machines late, and is not certain of their absence before', async () => {
    const s = scene({}, { listsLagMs: 20 * SECOND_MS, effectWithinMs: 10 * SECOND_MS })
    const { order, handle } = await s.launch()
    const look = { ...patiently(), sentUntilMs: START_MS }
    const none = `${order.jobId}-2`
    const answers = async () =>
      Promise.all([none, order.attemptId].map((attemptId) => s.backend.find(attemptId, look)))
    const unsettled = (againInMs: number) => ({ kind: 'unsettled', againInMs })
    const found = { kind: 'found', handles: [handle] }
    expect(await answers()).toEqual([unsettled(30_000), unsettled(30_000)])
    await s.clock.advance(20 * SECOND_MS)
    expect(await answers()).toEqual([unsettled(10_000), found])
    await s.clock.advance(10 * SECOND_MS)
    expect(await answers()).toEqual([{ kind: 'absent' }, found])
  })

  it('throttles launches that follow one another too soon, and makes nothing of them', async () => {
    const s = scene({}, { launchEveryMs: 12 * SECOND_MS })
    await s.launch()
    const order = makeOrder({ store: s.store, offers: s.world.offers({}) })
    await s.clock.advance(12 * SECOND_MS - 1)
    await expect(s.backend.launch(order, patiently())).rejects.toMatchObject({
      failure: { class: 'throttled', retryAfterMs: 12 * SECOND_MS },
    })
    await s.clock.advance(1)
    expect(await s.backend.launch(order, patiently())).toMatchObject({ kind: 'launched' })
    expect(s.world.machines).toHaveLength(2)
  })

  it('answers a launch later than its caller waits, and has made the machine', async () => {
    const s = scene({}, { answersAfterMs: MINUTE_MS })
    const order = makeOrder({ store: s.store, offers: s.world.offers({}) })
    const caller = new AbortController()
    const launching = s.backend.launch(order, caller)
    await until(() => s.world.calls.length > 0)
    caller.abort()
    expect(await launching).toMatchObject({ kind: 'unconfirmed' })
    expect(s.world.machinesOf(order.attemptId)).toHaveLength(1)
  })

  it('has the effect of a launch after it was given up', async () => {
    const s = scene({}, { effectWithinMs: MINUTE_MS })
    const order = makeOrder({ store: s.store, offers: s.world.offers({}) })
    s.world.faults.add('launch', { kind: 'late', effectAfterMs: MINUTE_MS, findAfterMs: 0 })
    expect(await s.backend.launch(order, patiently())).toEqual({ kind: 'unconfirmed', findAfterMs: 0 })
    await s.clock.advance(MINUTE_MS - 1)
    const look = { ...patiently(), sentUntilMs: START_MS }
    expect(await s.backend.find(order.attemptId, look)).toEqual({ kind: 'unsettled', againInMs: 1 })
    await s.clock.advance(1)
    expect(await s.backend.find(order.attemptId, look)).toMatchObject({ kind: 'found' })
  })

  it('made twice works once: the second machine finds the claim, writes nothing, and ends', async () => {
    const s = scene()
    const { order } = await s.launch()
    await s.clock.advance(5 * SECOND_MS)
    const { seq } = await s.beat(order)
    const duplicate = s.world.duplicate(order)
    await s.clock.advance(0)
    expect(duplicate).toMatchObject({ state: 'gone', workedFromMs: undefined })
    expect((await s.beat(order)).seq).toBe(seq)
    await s.clock.advance(95 * SECOND_MS)
    expect(await s.result(order)).toMatchObject({ outcome: 'succeeded' })
    const [, ...more] = s.world.machinesOf(order.attemptId).filter((one) => one.workedFromMs !== undefined)
    expect(more).toEqual([])
  })

  it('loses answers, hangs, refuses and throws as scripted, with or without effect', async () => {
    const s = scene()
    const effects = async (): Promise<number> => s.world.machines.length
    for (const [hasEffect, machines] of [
      [true, 1],
      [false, 1],
    ] as const) {
      s.world.faults.add('launch', { kind: 'loses-answer', hasEffect, findAfterMs: 5 })
      expect(await outcomeOf(s)).toBe('unconfirmed')
      expect(await effects()).toBe(machines)
    }
    s.world.faults.add('launch', { kind: 'hangs', hasEffect: true })
    const caller = new AbortController()
    const order = makeOrder({ store: s.store, offers: s.world.offers({}) })
    const launching = settled(s.backend.launch(order, caller))
    expect(await Promise.race([launching, Promise.resolve('waiting')])).toBe('waiting')
    caller.abort()
    expect(await launching).toBe('unconfirmed')
    expect(s.world.machinesOf(order.attemptId)).toHaveLength(1)
    s.world.faults.add('launch', { kind: 'refuses', failure: { class: 'auth', message: 'no' } })
    expect(await outcomeOf(s)).toBe('auth')
    s.world.faults.add('terminate', { kind: 'hangs', hasEffect: false })
    expect(
      await settled(s.backend.terminate(s.world.machines[0]!.handle, { signal: AbortSignal.timeout(1) })),
    ).toBe('BackendError')
    expect(s.world.machines[0]!.state).not.toBe('gone')
    s.world.faults.add('find', { kind: 'throws', failure: { class: 'throttled', message: 'slow down' } })
    await expect(s.backend.find('job-a-1', patiently())).rejects.toMatchObject({ class: 'throttled' })
    expect(s.world.callsOf('launch').map((call) => call.attemptIds)).toHaveLength(4)
    s.world.faults.add('list', { kind: 'slow', durationMs: SECOND_MS })
    const listing = s.backend.list('test', patiently())
    expect(await Promise.race([listing, Promise.resolve('waiting')])).toBe('waiting')
    await s.clock.advance(SECOND_MS)
    expect(await listing).toHaveLength(2)
  })
})
