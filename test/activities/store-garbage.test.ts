import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { OwnerLookup } from '../../activities/garbage/garbage'
import { createStoreActivities } from '../../activities/garbage/store'
import type { CollectStoreGarbageInput } from '../../core/activities'
import type { GarbageVerdict } from '../../core/messages'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { keepMarket, listMarket } from '../../storage/market'
import { StoreError } from '../../storage/store'
import { ownerOfKey, type UnfinishedUpload } from '../../storage/unfinished'
import { answer, offer } from '../planner/wishes'
import { Place, surroundings } from './place'

const DEPLOYMENT = 'dep-0123456789'
type Fate = Awaited<ReturnType<OwnerLookup>>

let place: Place
let fates: Record<string, Fate>
let uploads: UnfinishedUpload[]

beforeEach(async () => {
  place = await Place.make()
  fates = {}
  uploads = []
  await putDocument(place.store, layout.deployment(), { id: DEPLOYMENT })
  Object.assign(place.store, {
    unfinished: async () => [...uploads],
    abandon: async ({ id }: UnfinishedUpload) => void (uploads = uploads.filter((each) => each.id !== id)),
  })
})
afterEach(() => place.dispose())

const owners: OwnerLookup = async ({ jobId, attempt }) =>
  fates[attempt === undefined ? jobId : `${jobId}/${attempt}`] ?? 'absent'

function collect(over: Partial<CollectStoreGarbageInput> = {}): Promise<GarbageVerdict[]> {
  const input = { deployment: DEPLOYMENT, candidates: ['u'], isDryRun: false, ...over }
  const { collectStoreGarbage } = createStoreActivities({ store: place.store, owners, now: place.now })
  return surroundings().run(collectStoreGarbage, input)
}

function begun(agoMs: number, key?: string): void {
  uploads = [{ id: 'u', sizeBytes: 5e9, beganAtMs: Date.now() - agoMs, key }]
}

describe('an unfinished upload', () => {
  const CHECKPOINT = `${layout.checkpoint('job-a', 100, 2)}files/weights`

  it.each<[string, Record<string, Fate>, GarbageVerdict['action']]>([
    ['of a job that is over', { 'job-a': 'closed' }, 'ended'],
    ['of an unknown job', {}, 'ended'],
    ['of an attempt that is long gone', { 'job-a': 'open', 'job-a/3': 'open' }, 'ended'],
    ['of the attempt that runs', { 'job-a': 'open', 'job-a/2': 'open' }, 'kept'],
    ['of the attempt that the job is on', { 'job-a': 'open' }, 'kept'],
  ])('%s', async (_name, known, action) => {
    fates = known
    begun(30 * HOUR_MS, CHECKPOINT)
    expect(await collect()).toMatchObject([
      { action, backend: 'store', kind: 'upload', owner: 'job-a-2', place: place.store.url },
    ])
    expect(uploads).toHaveLength(action === 'ended' ? 0 : 1)
  })

  it('is left alone for a day, whosever it is: its job may be about to begin', async () => {
    begun(23 * HOUR_MS, layout.bundle('job-a', 'f'.repeat(64)))
    expect(await collect()).toMatchObject([{ action: 'kept', owner: 'job-a' }])
    expect(uploads).toHaveLength(1)
  })

  it('is only spoken of in a dry run, and where it was not found a grace ago', async () => {
    begun(2 * DAY_MS, CHECKPOINT)
    expect(await collect({ isDryRun: true })).toMatchObject([
      { action: 'would-end', description: `unfinished upload of ${CHECKPOINT}, 5 GB so far` },
    ])
    expect(await collect({ candidates: [] })).toMatchObject([{ action: 'would-end' }])
    expect(uploads).toHaveLength(1)
  })

  it("that is no job's is ended by its age", async () => {
    begun(2 * DAY_MS, layout.runner('f'.repeat(64)))
    expect(await collect()).toMatchObject([{ action: 'kept', owner: '' }])
    begun(4 * DAY_MS)
    expect(await collect()).toMatchObject([{ action: 'ended', owner: '' }])
  })

  it('is not even looked for when the store is of another deployment', async () => {
    begun(4 * DAY_MS)
    await expect(collect({ deployment: 'dep-zzzzzzzzzz' })).rejects.toThrow('Nothing was ended')
    expect(uploads).toHaveLength(1)
  })

  it('that may not be seen is reported with what else ends it; trouble that passes is no reason', async () => {
    const fail = (isTransient: boolean) =>
      Object.assign(place.store, {
        unfinished: () => Promise.reject(new StoreError('Could not list.', { isTransient })),
      })
    fail(false)
    expect(await collect()).toMatchObject([
      { action: 'unseen', reason: expect.stringMatching(/^Could not list\. A lifecycle rule of the bucket/) },
    ])
    fail(true)
    await expect(collect()).rejects.toThrow('Could not list.')
  })
})

describe('a hand-over that is left in the store', () => {
  const KEY = layout.handOver('job-a', 2, 'job-a-2-s1')
  const read = async (): Promise<boolean> => (await place.store.get(KEY)) !== undefined

  it.each<[string, Record<string, Fate>, GarbageVerdict['action']]>([
    ['is deleted when its job is over', { 'job-a': 'closed' }, 'ended'],
    ['is deleted when its job is on a later attempt', { 'job-a': 'open', 'job-a/3': 'open' }, 'ended'],
    ['is kept while its machine may still start', { 'job-a': 'open', 'job-a/2': 'open' }, 'kept'],
  ])('%s', async (_name, known, action) => {
    fates = known
    await place.store.put(KEY, '{}')
    expect(await collect({ candidates: [KEY] })).toMatchObject([
      { action, backend: 'store', kind: 'hand-over', id: KEY, owner: 'job-a-2', place: place.store.url },
    ])
    expect(await read()).toBe(action === 'kept')
  })

  it('stays for a grace period', async () => {
    await place.store.put(KEY, '{}')
    expect(await collect({ candidates: [] })).toMatchObject([{ action: 'would-end' }])
    expect(await read()).toBe(true)
  })
})

describe('a market document', () => {
  const ANSWER = answer([offer()])
  const keep = async (jobId: string): Promise<string> => {
    await keepMarket(place.store, [ANSWER], { jobId, nowMs: place.now() })
    return (await listMarket(place.store))[0]!.id
  }
  const kept = async (): Promise<boolean> => (await listMarket(place.store)).length > 0
  const record = (jobId: string): Promise<void> => place.store.put(layout.record(jobId, 0), RECORD)
  const RECORD = JSON.stringify({ seq: 0, atMs: 0, kind: 'submitted', summary: '', data: {} })

  it('is deleted with its traces when no job in the store uses it', async () => {
    const id = await keep('job-a')
    place.aheadMs = 25 * HOUR_MS
    expect(await collect({ candidates: [id] })).toMatchObject([
      { action: 'ended', backend: 'store', kind: 'market', id, owner: '' },
    ])
    expect(await kept()).toBe(false)
  })

  it('is kept, and not reported, as long as the record of one job uses it', async () => {
    await keep('job-a')
    const id = await keep('job-b')
    await record('job-b')
    place.aheadMs = 400 * DAY_MS
    expect(await collect({ candidates: [id] })).toEqual([])
    expect(await kept()).toBe(true)
  })

  it('is kept for a day: a plan writes it before the record names it', async () => {
    const id = await keep('job-a')
    place.aheadMs = 23 * HOUR_MS
    expect(await collect({ candidates: [id] })).toEqual([])
    expect(await kept()).toBe(true)
  })

  it('is only spoken of where it was not found a grace ago', async () => {
    await keep('job-a')
    place.aheadMs = 25 * HOUR_MS
    expect(await collect({ candidates: [] })).toMatchObject([{ action: 'would-end' }])
    expect(await kept()).toBe(true)
  })

  it('is kept if a plan uses it while it is judged', async () => {
    const id = await keep('job-a')
    place.aheadMs = 25 * HOUR_MS
    const listFolders = place.store.listFolders.bind(place.store)
    place.store.listFolders = async (prefix) => {
      const folders = await listFolders(prefix)
      await keep('job-b')
      return folders
    }
    expect(await collect({ candidates: [id] })).toMatchObject([
      { action: 'failed', reason: 'A plan has just used it.' },
    ])
    expect(await kept()).toBe(true)
  })
})

describe('the owner of a key', () => {
  it.each<[string, object | undefined]>([
    [layout.beat('job-a', 3), { jobId: 'job-a', attempt: 3 }],
    [`${layout.checkpoint('job-a', 7, 2)}files/a/b`, { jobId: 'job-a', attempt: 2 }],
    [`${layout.artifactsOf('job-a', 4)}model`, { jobId: 'job-a', attempt: 4 }],
    [layout.record('job-a', 1), { jobId: 'job-a' }],
    [layout.runner('0'), undefined],
    [layout.deployment(), undefined],
  ])('%s', (key, owner) => expect(ownerOfKey(key)).toEqual(owner))
})
