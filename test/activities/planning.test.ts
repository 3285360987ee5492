import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { askOthers, type AskOffers } from '../../activities/plan/asking'
import { createPlanningActivities, type PlanningDeps } from '../../activities/plan/planning'
import { received } from '../../activities/plan/sent-answer'
import { BackendError } from '../../backends/errors'
import type { PlanInput } from '../../core/activities'
import { defined } from '../../core/defined'
import type { JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import type { JobInput, ResolvedJob } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { offerKey } from '../../core/offer'
import { ensureDeployment } from '../../storage/deployment'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import type { Ware } from '../backends/scripted/world'
import { perform, Place, QUICK, SPOT } from './place'

const SPEC: JobSpec = {
  name: 'train',
  run: 'train',
  inputs: [],
  resources: {},
  isInterruptible: true,
  checkpoint: {},
  backends: [],
  optimize: 'cost',
  retries: { failures: 2, interruptions: 7 },
  env: {},
  secrets: [],
  outputs: [],
}
const ON_DEMAND: Ware = { ...SPOT, capacityType: 'on-demand', priceMicroUsdPerHour: microUsd(1_000) }

let place: Place

beforeEach(async () => {
  place = await Place.make({ wares: [SPOT, ON_DEMAND] })
})
afterEach(() => place.dispose())

const ask: AskOffers = async (backend, request) => {
  if (backend !== 'scripted')
    throw new BackendError({ class: 'capacity', message: 'no worker is running for it' })
  return received(await perform(place.verbs(), 'offers', { request }))
}

const planning = (deps: Partial<PlanningDeps> = {}) =>
  createPlanningActivities({
    store: place.store,
    backends: ['scripted'],
    askOffers: ask,
    now: place.now,
    timing: QUICK,
    publishRunner: () => Promise.resolve('a'.repeat(64)),
    ...deps,
  })

const JOB: JobInput = {
  jobId: 'job-a',
  spec: SPEC,
  bundle: null,
  owner: 'me',
  deployment: 'dep-0123456789',
  submittedAtMs: 1,
}

const resolved = (spec: Partial<JobSpec> = {}): ResolvedJob => ({
  spec: { ...SPEC, ...spec },
  policy: { failuresMax: 2, interruptionsMax: 7, unclassifiedMax: 3 },
  timing: QUICK,
  runnerSha256: 'a'.repeat(64),
  storeUrl: place.store.url,
  owner: 'me',
})

const input = (over: Partial<PlanInput> = {}, spec: Partial<JobSpec> = {}): PlanInput => ({
  jobId: 'job-a',
  deployment: 'dep-0123456789',
  recordSeq: 2,
  attempt: 1,
  bundle: null,
  ledger: EMPTY_LEDGER,
  avoid: [],
  resolved: resolved(spec),
  ...over,
})

const outOfStock = (): void => {
  for (const ware of [SPOT, ON_DEMAND]) place.world.setStock(ware, 0)
}

describe('resolveJob', () => {
  it('fixes policy, timing, runner and store for the life of the job, and puts them on record', async () => {
    const answer = await perform(planning(), 'resolveJob', JOB)
    expect(answer).toEqual(resolved())
    // What is installed later does not change a job that has begun.
    const later = planning({ timing: { ...QUICK, leaseMs: 1 }, publishRunner: async () => 'b'.repeat(64) })
    expect(await perform(later, 'resolveJob', JOB)).toEqual(answer)
    expect(await readRecords(place.store, 'job-a')).toMatchObject([{ seq: 1, kind: 'resolved' }])
  })

  it('refuses a job whose documents lie in the store of another deployment', async () => {
    const stored = await ensureDeployment(place.store, () => 'dep-abcdefghij')
    await expect(perform(planning(), 'resolveJob', JOB)).rejects.toMatchObject({
      type: 'invalid',
      nonRetryable: true,
      message: expect.stringMatching(`submitted to deployment dep-0123456789, .* belong to ${stored}`),
    })
    expect(await readRecords(place.store, 'job-a')).toEqual([])
    expect(await perform(planning(), 'resolveJob', { ...JOB, deployment: stored })).toEqual(resolved())
  })

  it('refuses a job that is over, for good', async () => {
    await perform(planning(), 'resolveJob', JOB)
    await putDocument(place.store, layout.record('job-a', 2), { seq: 2, kind: 'finished', atMs: 1, data: {} })
    await expect(perform(planning(), 'resolveJob', JOB)).rejects.toMatchObject({
      type: 'auth',
      nonRetryable: true,
      details: [{ code: 'NOT_ALLOWED', message: 'The job job-a is over.' }],
    })
  })

  it('refuses a spec that is none, for good, and names what is wrong', async () => {
    const spec = { ...SPEC, run: '', env: { '1BAD': 'x' } }
    await expect(perform(planning(), 'resolveJob', { ...JOB, spec })).rejects.toMatchObject({
      type: 'invalid',
      nonRetryable: true,
      message: expect.stringMatching(/run[\s\S]*1BAD/),
    })
    expect(await readRecords(place.store, 'job-a')).toEqual([])
  })

  it('is tried again when the runner cannot be published', async () => {
    const publishRunner = (): Promise<string> => Promise.reject(new Error('disk full'))
    await expect(perform(planning({ publishRunner }), 'resolveJob', JOB)).rejects.toMatchObject({
      nonRetryable: false,
    })
  })
})

describe('plan', () => {
  it('places the job on the cheapest offer, on record with what it was made from', async () => {
    const outcome = await perform(planning(), 'plan', input())
    expect(outcome).toMatchObject({
      kind: 'place',
      order: {
        attemptId: 'job-a-1',
        capacityType: 'spot',
        token: 'job-a-1-dep-0123456789',
        storeUrl: place.store.url,
      },
      words: { summary: 'scripted spot, v100 in a, $360.00/h' },
    })
    const [record] = await readRecords(place.store, 'job-a')
    expect(record).toMatchObject({ seq: 2, kind: 'planned', attempt: 1 })
    // The offers as they were seen lie under their digest.
    const keys: string[] = []
    for await (const { key } of place.store.list('market/scripted/')) keys.push(key)
    expect(await place.read(keys[0]!)).toMatchObject({ offers: [{ type: 'v100' }, { type: 'v100' }] })
  })

  it('names the store where it is now, not where it was when the job was resolved', async () => {
    const asked = input()
    const resolved = { ...asked.resolved, storeUrl: 'file:///where/it/was' }
    expect(await perform(planning(), 'plan', { ...asked, resolved })).toMatchObject({
      order: { storeUrl: place.store.url },
    })
  })

  it('answers a repeated question as it did first, whatever the market says now', async () => {
    const first = await perform(planning(), 'plan', input())
    place.world.setStock(SPOT, 0)
    expect(await perform(planning(), 'plan', input())).toEqual(first)
  })

  it('goes where a migration wants to go, and asks no other backend', async () => {
    const asked: string[] = []
    const askOffers: AskOffers = (backend, request) => {
      asked.push(backend)
      return ask(backend, request)
    }
    const target = { backend: 'scripted', capacityType: 'on-demand' } as const
    const outcome = await perform(
      planning({ askOffers, backends: ['elsewhere', 'scripted'] }),
      'plan',
      input({ target }),
    )
    expect(outcome).toMatchObject({ kind: 'place', order: { capacityType: 'on-demand' } })
    expect(asked).toEqual(['scripted'])
  })

  it('asks each backend to keep to what the job has pinned there', async () => {
    const asked: unknown[] = []
    const askOffers: AskOffers = (backend, request, more) => {
      asked.push([backend, more?.pins])
      return ask('scripted', request)
    }
    const both = planning({ askOffers, backends: ['elsewhere', 'scripted'] })
    await perform(both, 'plan', input({ pins: { scripted: { image: 'one' } } }))
    expect(asked).toEqual([
      ['elsewhere', undefined],
      ['scripted', { image: 'one' }],
    ])
    const [record] = await readRecords(place.store, 'job-a')
    expect(record).toMatchObject({ data: { inputs: { pins: { scripted: { image: 'one' } } } } })
  })

  it('tells each backend the image of the job, which its provider may refuse', async () => {
    const asked: unknown[] = []
    const askOffers: AskOffers = (backend, request, more) => {
      asked.push(more?.image)
      return ask(backend, request)
    }
    for (const [recordSeq, image] of [[2], [3, 'ghcr.io/team/train:1']] as const) {
      const given = input({ recordSeq })
      const spec = { ...given.resolved.spec, ...defined({ image }) }
      await perform(planning({ askOffers }), 'plan', { ...given, resolved: { ...given.resolved, spec } })
    }
    expect(asked).toEqual([undefined, 'ghcr.io/team/train:1'])
  })

  it('tells each backend the load of the disk that the job is expected to have', async () => {
    const asked: unknown[] = []
    const askOffers: AskOffers = (backend, request) => {
      asked.push(request.diskLoadMibPerHour)
      return ask(backend, request)
    }
    const given = input()
    const resources = { ...given.resolved.spec.resources, diskGiB: { min: 100 } }
    const spec = { ...given.resolved.spec, resources, durationMs: 3_600_000 }
    await perform(planning({ askOffers }), 'plan', { ...given, resolved: { ...given.resolved, spec } })
    expect(asked).toEqual([128 * 1024])
  })

  it('continues without a backend that does not answer, and says so when there is nothing else', async () => {
    const both = planning({ backends: ['elsewhere', 'scripted'] })
    expect((await perform(both, 'plan', input())).kind).toBe('place')
    const none = planning({ backends: ['elsewhere'] })
    expect(await perform(none, 'plan', input({ recordSeq: 3 }))).toMatchObject({
      kind: 'wait',
      reason: expect.stringContaining('elsewhere: no worker is running for it'),
      silentBackends: [{ backend: 'elsewhere', reason: 'no worker is running for it' }],
    })
  })

  it('waits for stock, and says on record that it does, and since when', async () => {
    outOfStock()
    const outcome = await perform(planning(), 'plan', input())
    expect(outcome).toMatchObject({
      kind: 'wait',
      retryInMs: 2_000,
      reason: expect.stringContaining('out of stock'),
    })
    const records = await readRecords(place.store, 'job-a')
    expect(records).toMatchObject([{ seq: 2, kind: 'waiting', attempt: 1, data: { outcome } }])
    expect(records[0]!.summary).toMatch(/^Waiting for a machine\. No offer fits this job: .*out of stock/)
    // Asked once more because its answer was lost, when there is a machine after all: what is on record holds.
    place.world.setStock(SPOT, 1)
    expect(await perform(planning(), 'plan', input())).toEqual(outcome)
  })

  it('does not wait where it was only asked to move to', async () => {
    outOfStock()
    const target = { backend: 'scripted', capacityType: 'spot' } as const
    expect(await perform(planning(), 'plan', input({ target }))).toMatchObject({ kind: 'wait' })
    expect(await readRecords(place.store, 'job-a')).toEqual([])
  })

  it('leaves alone only what is still to be left alone when the order goes out', async () => {
    const avoid = place.world
      .offers({})
      .map((offer) => ({ offerKey: offerKey(offer), forMs: 60_000, why: 'capacity' as const }))
    expect(await perform(planning(), 'plan', input({ avoid, startsInMs: 59_000 }))).toMatchObject({
      kind: 'wait',
    })
    expect(
      await perform(planning(), 'plan', input({ avoid, startsInMs: 60_000, recordSeq: 3 })),
    ).toMatchObject({ kind: 'place', order: { capacityType: 'spot' } })
  })

  it('ends a wait in the last moments before its deadline as one that the deadline ended', async () => {
    outOfStock()
    const deadlineAtMs = Date.now() + 10
    expect(await perform(planning(), 'plan', input({ deadlineAtMs }))).toMatchObject({
      kind: 'never',
      reason: 'deadline-reached',
      failure: { message: expect.stringContaining('the deadline leaves no time to save and stop') },
    })
  })

  it('reports at once what no offer can ever do, and what only an operator can fix', async () => {
    const never = await perform(planning(), 'plan', input({}, { resources: { gpus: { min: 64 } } }))
    expect(never).toMatchObject({ kind: 'never', reason: 'no-placement', failure: { class: 'invalid' } })
    place.world.quota = 0
    expect(await perform(planning(), 'plan', input({ recordSeq: 3 }))).toMatchObject({
      kind: 'never',
      reason: 'quota',
      failure: { class: 'quota', hint: expect.stringContaining('quota') },
    })
  })

  it('names who was asked if there is no offer at all', async () => {
    await place.dispose()
    place = await Place.make({ wares: [] })
    const sentence = async (deps: Partial<PlanningDeps>, over: Partial<PlanInput> = {}, spec = {}) => {
      const outcome = await perform(planning(deps), 'plan', input({ recordSeq: seq++, ...over }, spec))
      return outcome.kind === 'never' ? outcome.failure.message : outcome.kind
    }
    let seq = 2
    const askOffers: AskOffers = async (backend) => ({ ...(await ask('scripted', {})), backend })
    expect(await sentence({ askOffers, backends: ['scripted', 'other'] })).toBe(
      'No offer fits this job: no offer from scripted, other.',
    )
    expect(await sentence({}, {}, { backends: [{ backend: 'a' }, { backend: 'b' }, { backend: 'a' }] })).toBe(
      'No offer fits this job: this deployment has no backend a or b.',
    )
    expect(await sentence({}, { target: { backend: 'c' } })).toBe(
      'No offer fits this job: this deployment has no backend c.',
    )
    expect(await sentence({ backends: [] })).toBe('No offer fits this job: this deployment has no backend.')
  })

  it('gives the machine a hard stop for the money that is left, not for the whole budget', async () => {
    const ledger = { ...EMPTY_LEDGER, spentMicroUsd: microUsd(360) }
    const outcome = await perform(planning(), 'plan', input({ ledger, budgetMicroUsd: microUsd(720) }))
    const budget = { microUsd: microUsd(360), priceMaxMicroUsdPerHour: microUsd(360) }
    expect(outcome).toMatchObject({ kind: 'place', order: { runner: { limits: { budget } } } })
  })
})

describe('planWhenAvailable', () => {
  it.each([
    [1, 2_000],
    [5, 10_000],
    [1_000, 30_000],
  ])('asks again without an error being counted, ever more at leisure: try %i', async (attempt, delayMs) => {
    outOfStock()
    await expect(perform(planning(), 'planWhenAvailable', input(), { attempt })).rejects.toMatchObject({
      type: 'capacity',
      nonRetryable: false,
      category: 'BENIGN',
      nextRetryDelay: delayMs,
    })
  })

  it('answers once there is a machine', async () => {
    outOfStock()
    const asking = planning()
    await expect(perform(asking, 'planWhenAvailable', input())).rejects.toMatchObject({ type: 'capacity' })
    place.world.setStock(ON_DEMAND, 1)
    expect(await perform(asking, 'planWhenAvailable', input(), { attempt: 2 })).toMatchObject({
      kind: 'place',
    })
    expect(await readRecords(place.store, 'job-a')).toHaveLength(1)
  })
})

describe('previewPlan', () => {
  it('ranks all offers as a first attempt would find them, and leaves no trace of a job', async () => {
    const plan = await perform(planning(), 'previewPlan', { spec: SPEC })
    expect(plan.placements.map(({ offer }) => offer.capacityType)).toEqual(['spot', 'on-demand'])
    expect(await place.store.listFolders(layout.jobs())).toEqual([])
  })

  it('says what one change would gain', async () => {
    const spec = { ...SPEC, isInterruptible: false, durationMs: 3_600_000 }
    const plan = await perform(planning(), 'previewPlan', { spec })
    expect(plan.relaxations).toMatchObject([{ wish: 'interruptible', change: 'interruptible: true' }])
  })

  it('explains one offer with the figures of the plan', async () => {
    const ask = (explain: string) => perform(planning(), 'previewPlan', { spec: SPEC, explain })
    const { placements, explained } = await ask('on-demand')
    const total = explained!.arithmetic.reduce((sum, { addedMicroUsd }) => sum + addedMicroUsd, 0)
    expect(explained).toMatchObject({ rank: 2, costMicroUsd: placements[1]!.costMicroUsd })
    expect(total).toBe(placements[1]!.costMicroUsd)
    expect((await ask('p9')).explained).toBeNull()
  })

  it('counts what its store charges, if that is a bucket of AWS', async () => {
    const at = (url: string): ObjectStore =>
      Object.create(place.store, { url: { value: url } }) as ObjectStore
    const ask = (url: string) =>
      perform(planning({ store: at(url) }), 'previewPlan', { spec: SPEC, explain: 'on-demand' })
    const partsOf = async (url: string) => (await ask(url)).explained!.arithmetic.map(({ part }) => part)
    expect(await partsOf('s3://jobs')).toContain('store')
    expect(await partsOf(place.store.url)).not.toContain('store')
  })

  it('asks backends that the job does not allow for what it would gain there, and waits for none that fails', async () => {
    const askOffers: AskOffers = async (backend, request) => {
      if (backend === 'broken') throw new Error('no credentials')
      const answer = received(await perform(place.verbs(), 'offers', { request }))
      if (backend === 'scripted') return answer
      const offers = answer.offers.map((offer) => ({ ...offer, backend, priceMicroUsdPerHour: 1 }))
      return { ...answer, backend, offers }
    }
    const preview = planning({ askOffers, backends: ['scripted', 'broken', 'cheap'] })
    const spec = { ...SPEC, backends: [{ backend: 'scripted' }], durationMs: 3_600_000 }
    const plan = await perform(preview, 'previewPlan', { spec })
    expect(plan.relaxations).toMatchObject([
      { wish: 'backend', change: expect.stringMatching(/^backends: \[cheap:/) },
    ])
    expect(new Set(plan.placements.map(({ offer }) => offer.backend))).toEqual(new Set(['scripted']))
    expect(plan).toMatchObject({ silentBackends: [] })
    const free = await perform(preview, 'previewPlan', { spec: { ...spec, backends: [] } })
    expect(free.silentBackends).toMatchObject([{ backend: 'broken' }])
  })

  it('asks backends that the job does not allow about its image, too', async () => {
    const images: unknown[] = []
    const askOffers: AskOffers = (_backend, _request, more) => {
      images.push(more?.image)
      return Promise.reject(new Error('no credentials'))
    }
    const spec = { ...SPEC, backends: [{ backend: 'scripted' }], image: 'example.org/team/image:1' }
    await askOthers({ askOffers, backends: ['other'] }, spec, new AbortController().signal)
    expect(images).toEqual([spec.image])
  })

  it('waits no longer than it may for backends that the job does not allow', async () => {
    const askOffers: AskOffers = () => new Promise(() => undefined)
    const spec = { ...SPEC, backends: [{ backend: 'scripted' }] }
    const over = new AbortController()
    const answers = askOthers({ askOffers, backends: ['slow'] }, spec, over.signal)
    over.abort()
    expect(await answers).toEqual([])
  })

  it('refuses a spec that is none', async () => {
    await expect(perform(planning(), 'previewPlan', { spec: { ...SPEC, run: '' } })).rejects.toMatchObject({
      type: 'invalid',
    })
  })
})
