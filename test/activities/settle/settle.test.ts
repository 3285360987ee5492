import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { BackendDeps } from '../../../activities/machine/backend'
import type { Backend, LogPage } from '../../../backends/backend'
import { BackendError } from '../../../backends/errors'
import type { SettleInput, Settlement } from '../../../core/activities'
import type { Manifest } from '../../../core/job/checkpoint'
import type { Beat, Diagnosis } from '../../../core/documents'
import { microUsd } from '../../../core/money/money'
import { spendOver } from '../../../core/money/meter'
import { CLOCK_SLACK_MS, MINUTE_MS } from '../../../core/time/time'
import { manifestKey } from '../../../storage/checkpoints'
import { layout } from '../../../storage/layout'
import type { OwnMemory } from '../../../core/job/own-memory'
import { readOwnMemory } from '../../../storage/own-memory'
import { readRecords } from '../../../storage/record'
import { saveCheckpoint, UNTRAINED } from '../../backends/scripted/checkpoints'
import type { WorldOptions } from '../../backends/scripted/world'
import { issueOrder } from '../../backends/orders'
import { until } from '../../support/until'
import { perform, Place, QUICK, surroundings } from '../place'
import { patient } from '../../support/patience'

const HOUR_MS = 3_600_000
const DOWN = { class: 'transient', message: 'the provider does not answer' } as const

let place: Place

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

async function anew(wishes: Partial<WorldOptions>): Promise<void> {
  await place.dispose()
  place = await Place.make({ behave: () => ({ neverStarts: true }), ...wishes })
}

/** A settlement of an attempt that knew its machine, after which nothing is waited for. */
const inputOf = (launched = place.launched()): SettleInput => ({
  ...launched,
  timing: { ...QUICK, powerOffMs: 0 },
  windowMs: 0,
  end: null,
  drainReason: null,
  recordSeq: 4,
})
const settle = (input: SettleInput): Promise<Settlement> => perform(place.verbs(), 'settle', input)

describe('the settlement of an attempt whose store is away', () => {
  it.each([
    ['ends the machine of a cancelled job', 'cancelled', 0, ['gone']],
    ['leaves the machine of a cancelled job in its window', 'cancelled', HOUR_MS, ['alive']],
    ['leaves the machine of a job that moves', 'migrated', 0, ['alive']],
    ['leaves the machine of an attempt that was not asked to stop', null, 0, ['alive']],
  ] as const)('%s, and is made once the store answers', async (_, drainReason, windowMs, states) => {
    const input = { ...inputOf(), drainReason, windowMs }
    expect(place.lives()).toEqual(['alive'])
    const bringBack = await place.storeDown()
    await expect(settle(input)).rejects.toMatchObject({ type: 'transient' })
    expect(place.lives()).toEqual(states)
    await bringBack()
    await settle({ ...input, windowMs: 0 })
    expect(place.lives()).toEqual(['gone'])
  })

  it('is that the job was cancelled, though its machine had gone before the store answered', async () => {
    const input = { ...inputOf(), drainReason: 'cancelled' } as const
    const bringBack = await place.storeDown()
    await expect(settle(input)).rejects.toMatchObject({ type: 'transient' })
    await bringBack()
    expect((await settle(input)).end).toEqual({ kind: 'stopped', by: 'cancelled' })
  })
})

describe('a machine of a provider whose lists may miss it', () => {
  it('has not ended by one look that finds it gone, and is asked about at the pace of its provider', async () => {
    const pace = { observeMs: 200, goneConfirmMs: 300 }
    await anew({ capabilities: { billsUntil: 'terminate', pace } })
    const input = inputOf()
    place.world.faults.add('observe', { kind: 'lies-gone' }, { times: 2 })
    place.world.faults.add('terminate', { kind: 'ignored' }, { times: 1 })
    await settle(input)
    expect(place.lives()).toEqual(['gone'])
    const times = place.world.callsOf('observe').map(({ atMs }) => atMs)
    const gaps = times.slice(1).map((atMs, index) => atMs - times[index]!)
    // A call reaches the provider some milliseconds after its turn.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(pace.observeMs - 10)
    // Seen alive after both lies, and gone for long enough after its end.
    expect(times.length).toBeGreaterThanOrEqual(5)
  })
})

describe('a machine that came and went before anybody knew of it', () => {
  it('was paid for, and lost: its provider still lists it', async () => {
    const { order, handle } = place.launched()
    const realised = { ...handle.realised, billedAtLeastMs: MINUTE_MS }
    const ended = [{ ...handle, realised }]
    const backend: Backend = {
      ...place.backend,
      find: async () => ({ kind: 'absent', ended }),
      observe: async () => [{ state: 'gone', cause: 'interrupted', endedAtMs: handle.launchedAtMs + 3_000 }],
    }
    const failure = { class: 'transient', message: 'The launch was sent, but produced no machine.' } as const
    const end = { kind: 'failed', isLaunched: false, failure } as const
    const input = { ...inputOf({ order, handle }), handle: null, end }
    const settlement: Settlement = await perform(place.verbs({ backend }), 'settle', input)
    expect(settlement).toMatchObject({
      end: { kind: 'failed', isLaunched: true, failure: { class: 'interrupted' } },
      handle: { id: handle.id },
      costMicroUsd: spendOver(MINUTE_MS, realised.priceMicroUsdPerHour),
    })
  })
})

describe('a machine whose runner left no result', () => {
  const failure = { class: 'interrupted', message: 'It said nothing.', code: 'silent' } as const
  const silent = { kind: 'failed', isLaunched: true, failure } as const
  const page: LogPage = {
    text: '\x1b[31mthe console\x07 of token-1234\r',
    lastWords: 'out of memory, token-1234',
  }
  /** Settles over a backend whose machines tell this; answers how many of them lived when they were asked. */
  async function settled(input: SettleInput, logs: () => Promise<LogPage>, deps: Partial<BackendDeps> = {}) {
    const alive: number[] = []
    const backend: Backend = {
      ...place.backend,
      logs: () => {
        alive.push(place.lives().filter((each) => each === 'alive').length)
        return logs()
      },
    }
    const maskSecrets = async (_jobId: string, text: string) => text.replaceAll('token-1234', '***')
    const verbs = place.verbs({ backend, maskSecrets, ...deps })
    return { settlement: await perform(verbs, 'settle', input), alive }
  }
  const diagnosisOf = ({ order: { jobId, attempt } }: SettleInput) =>
    place.read<Diagnosis>(layout.diagnosis(jobId, attempt))

  it('is asked before it is ended, once, and its last words are in the failure', async () => {
    const input = { ...inputOf(), end: silent }
    const { settlement, alive } = await settled(input, async () => page)
    expect(alive).toEqual([1])
    expect(settlement.end).toMatchObject({
      failure: { message: 'It said nothing.', hint: expect.stringContaining('"out of memory, ***"') },
    })
    expect(await diagnosisOf(input)).toMatchObject({
      machine: input.handle!.id,
      text: 'the console of ***',
      lastWords: 'out of memory, ***',
    })
    expect((await settled(input, async () => page)).alive).toEqual([])
  })

  it('that tells nothing, or too much, does not hold up the settlement', async () => {
    const input = { ...inputOf(), end: silent }
    const refused = () => Promise.reject(new BackendError({ class: 'auth', message: 'no permission' }))
    const { settlement } = await settled(input, refused)
    expect(settlement.end).toEqual(silent)
    expect(await diagnosisOf(input)).toMatchObject({ text: 'No diagnosis: no permission' })
    const other = { ...inputOf(place.launched(place.order({ jobId: 'job-b' }))), end: silent }
    await settled(other, async () => ({ text: 'x'.repeat(100_000) }))
    expect((await diagnosisOf(other))?.text.length).toBe(32_000)
  })

  it('tells nothing where the secrets of its job cannot be opened', async () => {
    const input = { ...inputOf(), end: silent }
    await settled(input, async () => page, { maskSecrets: () => Promise.reject(new Error('another key')) })
    expect(JSON.stringify(await diagnosisOf(input))).not.toContain('token-1234')
  })

  it('is not asked when its owner ended it, or when there is a result', async () => {
    const cancelled = { ...inputOf(), drainReason: 'cancelled' } as const
    expect((await settled(cancelled, async () => page)).alive).toEqual([])
    const done = inputOf(place.launched(place.order({ jobId: 'job-b' })))
    await place.result(done.order)
    expect((await settled(done, async () => page)).alive).toEqual([])
  })
})

describe('the GPU memory that an attempt used', () => {
  const gpu = { index: 0, name: 'T4', utilizationPercent: 5, memoryUsedMiB: 1, memoryTotalMiB: 15_360 }
  const gpus = [{ ...gpu, memoryPeakMiB: 9_000 }]

  /** An attempt with code whose runner reports this. */
  async function settledWith(beat: Partial<Beat>): Promise<OwnMemory[]> {
    const launched = place.launched()
    const runner = { ...launched.order.runner, bundle: { sha256: 'abc', sizeBytes: 1 } }
    const order = { ...launched.order, runner }
    await place.beat(order, { gpus, ...beat })
    await settle(inputOf({ ...launched, order }))
    return readOwnMemory(place.store)
  }

  it('is kept for later plans once it has trained', async () => {
    expect(await settledWith({ firstStepAtMs: 1 })).toMatchObject([
      { bundleSha256: 'abc', gpus: 1, peakMiB: 9_000, totalMiB: 15_360 },
    ])
  })

  it.each([
    ['that trained nothing', {}],
    ['without GPUs', { gpus: [], firstStepAtMs: 1 }],
  ])('is not kept of one %s', async (_, beat: Partial<Beat>) => {
    expect(await settledWith(beat)).toEqual([])
  })
})

describe('how an attempt ended', () => {
  it("is what its runner wrote, with the runner's artifacts and phases", async () => {
    const input = inputOf()
    const artifacts = [{ path: 'w.bin', sizeBytes: 1, sha256: '0'.repeat(64) }]
    const phases = [{ name: 'running', startedAtMs: 1, durationMs: 2 }] as const
    const progress = { step: 9, stepsTotal: 9, loss: 0.1, atMs: 1 }
    await place.result(input.order, { artifacts, phases: [...phases], progress })
    const end = { kind: 'failed', isLaunched: true, failure: DOWN } as const
    expect(await settle({ ...input, end })).toMatchObject({
      end: { kind: 'succeeded' },
      artifacts,
      phases,
      progress,
      stepsLost: 0,
      handle: input.handle,
    })
  })

  it('has as many artifacts as may go through the server, the first ones', async () => {
    const input = inputOf()
    const artifacts = Array.from({ length: 25_000 }, (_, n) => ({
      path: `ü/${n}`,
      sizeBytes: n,
      sha256: '0'.repeat(64),
    }))
    await place.result(input.order, { artifacts })
    const settlement = await settle(input)
    const bytes = Buffer.byteLength(JSON.stringify(settlement))
    // The server takes 2 MB and warns from half of one on.
    expect(bytes).toBeLessThan(512 * 1024)
    expect(bytes).toBeGreaterThan(200 * 1024)
    expect(settlement.artifacts).toEqual(artifacts.slice(0, settlement.artifacts.length))
    expect(await settle(input)).toEqual(settlement)
    expect(await readRecords(place.store, input.order.jobId)).toMatchObject([{ data: { artifacts } }])
  })

  it('is what the attempt saw, where the runner wrote nothing', async () => {
    const end = { kind: 'stopped', by: 'lease' } as const
    expect((await settle({ ...inputOf(), end })).end).toEqual(end)
  })

  it('is the loss of its machine, if its end was not seen', async () => {
    const input = inputOf()
    place.world.machines[0]!.end('interrupted')
    expect((await settle(input)).end).toMatchObject({ kind: 'failed', failure: { class: 'interrupted' } })
  })

  it.each([
    ['superseded', null],
    ['superseded', 'superseded'],
    ['cancelled', 'cancelled'],
    ['budget', 'budget'],
  ] as const)('is that it was stopped when we ended its machine: %s', async (by, drainReason) => {
    expect((await settle({ ...inputOf(), drainReason })).end).toEqual({ kind: 'stopped', by })
  })

  it('is a failure to be examined when the result is unreadable: the machine still ends', async () => {
    const input = inputOf()
    await place.store.put(layout.result(input.order.jobId, 1), '[]')
    expect((await settle(input)).end).toMatchObject({ kind: 'failed', failure: { class: 'damaged' } })
    expect(place.lives()).toEqual(['gone'])
  })

  it('tells the newest checkpoint, what it was restored from, and the steps that are in none', async () => {
    const input = inputOf()
    const { jobId } = input.order
    const saving = { store: place.store, jobId, attempt: 1, nowMs: 1 }
    const first = await saveCheckpoint({ ...UNTRAINED, step: 10 }, saving)
    const second = await saveCheckpoint({ ...UNTRAINED, step: 20 }, saving)
    await place.beat(input.order, {
      progress: { step: 27, stepsTotal: 100, loss: null, atMs: 1 },
      restoredFrom: first,
    })
    expect(await settle(input)).toMatchObject({ checkpoint: second, restoredFrom: first, stepsLost: 7 })
  })

  it('counts no steps from a running number, and keeps what the runner said of its checkpoints and trackers', async () => {
    const input = inputOf()
    const { jobId } = input.order
    const saving = { store: place.store, jobId, attempt: 1, nowMs: 1 }
    const saved = await saveCheckpoint({ ...UNTRAINED, step: 10 }, saving)
    const key = manifestKey(jobId, saved, 1)
    const manifest = JSON.parse((await place.store.get(key))!.toString()) as Manifest
    await place.store.put(key, JSON.stringify({ ...manifest, isStepKnown: false }))
    const news: Partial<Beat> = {
      restoredBecause: 'newest complete checkpoint',
      checkpointState: 'quiet',
      warning: { kind: 'no-checkpoint', text: 'Nothing was saved.', sinceMs: 5 },
      trackers: [{ kind: 'wandb', runId: 'abc' }],
    }
    await place.beat(input.order, { progress: { step: 27, stepsTotal: 100, loss: null, atMs: 1 }, ...news })
    expect(await settle(input)).toMatchObject({
      checkpoint: { ...saved, isStepKnown: false },
      stepsLost: null,
      ...news,
    })
  })

  it.each([
    { hasSpoken: true, class: 'interrupted' },
    { hasSpoken: false, class: 'capacity' },
  ])('tells a machine that broke down from one that never came up: %j', async (at) => {
    const input = { ...inputOf(), end: null }
    if (at.hasSpoken) await place.beat(input.order, {})
    place.world.machines[0]!.end('failed-to-start')
    expect((await settle(input)).end).toMatchObject({ failure: { class: at.class } })
  })

  it('keeps the stages and instants of a runner that left no result, from its last beat', async () => {
    const input = inputOf()
    const phases = [{ name: 'running' as const, startedAtMs: 5, durationMs: 7 }]
    await place.beat(input.order, { phases, clockMs: 12, firstStepAtMs: 6, noNoticeAtMs: 11 })
    expect(await settle(input)).toMatchObject({
      phases,
      times: {
        firstStepAtMs: 6,
        noNoticeAtMs: 11,
        lastBeatAtMs: 12,
        finishedAtMs: null,
        drain: { reason: 'superseded' },
      },
    })
  })

  it('does not know the steps lost of a workload that tells none, and passes over a beat that is none', async () => {
    const input = inputOf()
    await place.store.put(layout.beat(input.order.jobId, 1), 'x')
    expect(await settle(input)).toMatchObject({ stepsLost: null })
  })
})

describe('the end of the machines', () => {
  it('comes after the runner has saved and stopped: drain.json first, then its window', async () => {
    const input = { ...inputOf(), windowMs: 60_000 }
    const settling = settle(input)
    await until(async () => (await place.store.head(layout.drain(input.order.jobId, 1))) !== undefined)
    await until(() => place.world.callsOf('observe').length > 2)
    expect(place.world.callsOf('terminate')).toEqual([])
    await place.result(input.order, { outcome: 'stopped', reason: 'superseded' })
    expect((await settling).end).toEqual({ kind: 'stopped', by: 'superseded' })
    expect(place.lives()).toEqual(['gone'])
  })

  it('comes when the window is over, with nothing written', async () => {
    const input = { ...inputOf(), windowMs: 60_000 }
    const settling = settle(input)
    await until(() => place.world.callsOf('observe').length > 2)
    expect(place.lives()).not.toContain('gone')
    place.passedMs = 61_000
    expect((await settling).end).toEqual({ kind: 'stopped', by: 'superseded' })
    expect(place.lives()).toEqual(['gone'])
  })

  it('comes at once if the machine was never reachable, unless it has spoken', async () => {
    const failure = { class: 'unreachable', message: 'Its agent has not registered.' } as const
    const end = { kind: 'failed', isLaunched: true, failure } as const
    expect((await settle({ ...inputOf(), end, windowMs: HOUR_MS })).end).toEqual(end)
    expect(place.lives()).toEqual(['gone'])
    const spoken = inputOf(place.launched(place.order({ jobId: 'job-b' })))
    await place.beat(spoken.order)
    const settling = settle({ ...spoken, end, windowMs: HOUR_MS })
    const looks = place.world.callsOf('observe').length
    await until(() => place.world.callsOf('observe').length > looks + 2)
    expect(place.lives()).toEqual(['gone', 'alive'])
    await place.result(spoken.order, { outcome: 'stopped', reason: 'superseded' })
    // The runner stopped because we ended it, and does not know why we did.
    expect((await settling).end).toEqual(end)
  })

  it('is waited for: terminate is sent until the provider says that it is done', async () => {
    place.world.faults.add('terminate', { kind: 'ignored' }, { times: 3 })
    await settle(inputOf())
    expect(place.world.callsOf('terminate').length).toBeGreaterThanOrEqual(4)
    expect(place.lives()).toEqual(['gone'])
  })

  it('comes to what a machine left when it ended on its own: a directory, a volume', async () => {
    const input = inputOf()
    place.world.machines[0]!.end('ended')
    await settle(input)
    expect(place.world.callsOf('terminate')).toHaveLength(1)
  })

  it('comes to all that a provider made of one order', async () => {
    await anew({ capabilities: { idempotency: 'tag' } })
    const launched = place.launched()
    place.world.duplicate(launched.order)
    expect((await settle(inputOf(launched))).handle).toEqual(launched.handle)
    expect(place.lives()).toEqual(['gone', 'gone'])
  })

  it('waits until the last of them is gone, whichever that is', async () => {
    await anew({ capabilities: { idempotency: 'tag' } })
    const launched = place.launched()
    const { handle } = place.world.duplicate(launched.order)
    for (const stubborn of [handle, launched.handle]) {
      let ignored = 0
      const backend: Backend = {
        ...place.backend,
        terminate: async (machine, options) => {
          if (machine.id === stubborn.id && ignored++ < 2) return
          await place.backend.terminate(machine, options)
        },
      }
      await perform(place.verbs({ backend }), 'settle', inputOf(launched))
      expect(place.lives()).toEqual(['gone', 'gone'])
    }
  })

  it('comes to one that the lists of its provider do not show', async () => {
    await anew({ capabilities: { idempotency: 'tag' } })
    place.world.freezeLists(30)
    const hidden = place.launched()
    await settle(inputOf(hidden))
    expect(place.lives()).toEqual(['gone'])
  })

  it('comes to a machine that only the store knows', async () => {
    const launched = place.launched()
    const order = place.order()
    const handle = { ...launched.handle, attemptId: order.attemptId }
    // The provider has lost its tag.
    place.world.machine(handle.id)!.handle.attemptId = ''
    await place.store.put(layout.machine(order.jobId, 1), JSON.stringify(handle))
    expect((await settle({ ...inputOf({ order, handle }), handle: null })).handle).toEqual(handle)
    expect(place.lives()).toEqual(['gone'])
  })

  it('waits for lists that may be stale before it believes that no machine exists', async () => {
    place.world.freezeLists(1_000)
    const launched = place.launched()
    const settlement = await settle({ ...inputOf(launched), handle: null })
    expect(place.world.callsOf('find').length).toBeGreaterThan(1)
    expect(settlement.handle).toEqual(launched.handle)
    expect(place.lives()).toEqual(['gone'])
  })

  it('costs nothing where there was no machine', async () => {
    const input = { ...inputOf({ order: place.order(), handle: null as never }), handle: null }
    const end = { kind: 'failed', isLaunched: false, failure: DOWN } as const
    expect(await settle({ ...input, end })).toEqual({
      end,
      handle: null,
      costMicroUsd: 0,
      stepsLost: null,
      artifacts: [],
      phases: [],
      times: {
        firstStepAtMs: null,
        noNoticeAtMs: null,
        lastBeatAtMs: null,
        finishedAtMs: null,
        drain: { reason: 'superseded', atMs: expect.any(Number) },
      },
    })
  })

  it('costs at most what it can have cost if an unseen machine spoke', async () => {
    const order = place.order()
    const issuedAtMs = Date.now() - 2 * HOUR_MS
    await issueOrder(place.store, order, issuedAtMs)
    await place.beat(order, { clockMs: issuedAtMs + HOUR_MS })
    const input = { ...inputOf({ order, handle: null as never }), handle: null }
    const { costMicroUsd } = await settle({ ...input, timing: { ...QUICK, powerOffMs: MINUTE_MS } })
    expect(costMicroUsd).toBe(spendOver(HOUR_MS + MINUTE_MS, order.priceMaxMicroUsdPerHour))
  })

  it('costs the least that is billed if an unseen machine spoke only for a moment', async () => {
    const offers = place.order().offers.map((offer) => ({ ...offer, billedAtLeastMs: HOUR_MS }))
    const order = { ...place.order(), offers }
    const issuedAtMs = Date.now() - 2 * HOUR_MS
    await issueOrder(place.store, order, issuedAtMs)
    await place.beat(order, { clockMs: issuedAtMs + MINUTE_MS })
    const { costMicroUsd } = await settle({ ...inputOf({ order, handle: null as never }), handle: null })
    expect(costMicroUsd).toBe(spendOver(HOUR_MS, order.priceMaxMicroUsdPerHour))
  })

  it('stops waiting when the activity is cancelled', async () => {
    const env = surroundings()
    const settling = env.run((one) => place.verbs().settle(one), { ...inputOf(), windowMs: 60_000 })
    await until(() => place.world.callsOf('observe').length > 0)
    env.cancel()
    await expect(settling).rejects.toThrow()
  })
})

describe('what an attempt cost', () => {
  const PRICE = microUsd(360)

  it('is counted until the provider stopped the bill, not until somebody asked', async () => {
    const input = inputOf()
    const [machine] = place.world.machines
    machine!.handle.launchedAtMs -= HOUR_MS
    machine!.end('ended')
    place.aheadMs = HOUR_MS
    const { costMicroUsd, endedAtMs } = await settle(input)
    expect(endedAtMs).toBe(machine!.endedAtMs)
    expect(costMicroUsd).toBe(spendOver(machine!.endedAtMs! - input.handle!.launchedAtMs, PRICE))
    expect(costMicroUsd).toBeGreaterThanOrEqual(PRICE)
  })

  it('is counted until a machine began to shut down for us, not until it had', async () => {
    const input = inputOf()
    const [machine] = place.world.machines
    const beganAtMs = input.handle!.launchedAtMs + HOUR_MS
    const whole = machine!.observation.bind(machine)
    const ends = [beganAtMs, beganAtMs + 90_000, beganAtMs + 180_000]
    jest.spyOn(machine!, 'observation').mockImplementation(() => {
      const { state } = whole()
      if (state !== 'gone') return { state }
      const endedAtMs = ends.shift()!
      return { state: ends.length > 0 ? 'stopping' : 'gone', cause: 'ended', endedAtMs }
    })
    const { costMicroUsd, endedAtMs } = await settle(input)
    expect(ends).toEqual([])
    expect(endedAtMs).toBe(beganAtMs)
    expect(costMicroUsd).toBe(PRICE)
  })

  it('is counted until now where the provider does not tell: never less than was seen', async () => {
    const input = inputOf()
    const { handle } = input
    // It has forgotten the machine.
    const forgotten = { ...handle!, id: 'unknown', launchedAtMs: handle!.launchedAtMs - HOUR_MS }
    place.world.machines[0]!.end('ended')
    const before = place.now()
    const { costMicroUsd } = await settle({ ...input, handle: forgotten })
    expect(costMicroUsd).toBeGreaterThanOrEqual(spendOver(before - forgotten.launchedAtMs, PRICE))
  })

  it('has the duplicates in it that a provider made', async () => {
    await anew({ capabilities: { idempotency: 'tag' } })
    const launched = place.launched()
    const { handle } = place.world.duplicate(launched.order)
    for (const machine of [handle, launched.handle]) machine.launchedAtMs -= HOUR_MS
    const { costMicroUsd } = await settle(inputOf(launched))
    expect(costMicroUsd).toBeGreaterThan(2 * PRICE)
  })
})

describe('a provider that does not answer', () => {
  const noAnswer = (): void => place.world.faults.add('find', { kind: 'throws', failure: DOWN })
  const leaseMs = QUICK.leaseMs + QUICK.drainMs + CLOCK_SLACK_MS

  it('holds the job up while the machine may live', async () => {
    noAnswer()
    await expect(settle(inputOf())).rejects.toMatchObject({ type: 'transient', nonRetryable: false })
    place.aheadMs = leaseMs + QUICK.startWithinMs - 1_000
    noAnswer()
    await expect(settle(inputOf())).rejects.toMatchObject({ type: 'transient' })
  })

  it.each([
    ['exit', QUICK.startWithinMs + leaseMs],
    ['terminate', QUICK.startWithinMs + leaseMs + HOUR_MS],
  ] as const)('no longer does when the lease has run out (billed until %s)', async (billsUntil, billedMs) => {
    await anew({ capabilities: { billsUntil } })
    const input = inputOf()
    place.aheadMs = QUICK.startWithinMs + leaseMs + HOUR_MS
    noAnswer()
    const { end, costMicroUsd } = await settle(input)
    expect(end).toMatchObject({ kind: 'failed', failure: { class: 'interrupted' } })
    // What is billed until we end it is billed still; the rest stopped with its runner at the latest.
    const expected = spendOver(billedMs, microUsd(360))
    expect(costMicroUsd).toBeGreaterThanOrEqual(expected)
    expect(costMicroUsd).toBeLessThan(expected + microUsd(3))
  })

  it('counts from the renewal where a lease was renewed', async () => {
    const input = inputOf()
    const { order, handle } = input
    handle!.launchedAtMs -= 24 * HOUR_MS
    await place.store.put(layout.lease(order.jobId, 1), JSON.stringify({ seq: 1, answersBeat: 1, ttlMs: 1 }))
    place.aheadMs = leaseMs - 1_000
    noAnswer()
    await expect(settle(input)).rejects.toMatchObject({ type: 'transient' })
    place.aheadMs = leaseMs + HOUR_MS
    noAnswer()
    const { endedAtMs } = await settle(input)
    expect(Math.abs(endedAtMs! - Date.now() - leaseMs)).toBeLessThan(patient(10_000))
  })

  it('holds it up for ever if the machine is unknown', async () => {
    place.aheadMs = 10 * HOUR_MS * 24
    noAnswer()
    await expect(settle({ ...inputOf(), handle: null })).rejects.toMatchObject({ type: 'transient' })
  })
})

describe('a store that does not answer', () => {
  it('holds the job up, and no machine is ended before its runner was asked to save', async () => {
    const input = inputOf()
    await place.storeDown()
    await expect(settle(input)).rejects.toMatchObject({ type: 'transient', nonRetryable: false })
    expect(place.world.callsOf('terminate')).toEqual([])
  })
})

describe('the record of a settlement', () => {
  it('is written once, and a repeated settlement answers what was settled first', async () => {
    const input = inputOf()
    const first = await settle(input)
    place.aheadMs = HOUR_MS
    await place.result(input.order)
    expect(await settle(input)).toEqual(first)
    const records = await readRecords(place.store, input.order.jobId)
    expect(records).toMatchObject([
      { seq: 4, kind: 'settled', attempt: 1, summary: expect.stringContaining('stopped (superseded)') },
    ])
  })
})
