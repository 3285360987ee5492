import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { AttemptDocuments } from '../../activities/documents'
import { layout } from '../../storage/layout'
import { StoreError } from '../../storage/store'
import { Place } from './place'
import { patient } from '../support/patience'

let place: Place
let documents: AttemptDocuments
const at = { jobId: 'job-a', attempt: 2 }

beforeEach(async () => {
  place = await Place.make()
  documents = new AttemptDocuments(place.store, at, place.now)
})
afterEach(() => place.dispose())

describe('the documents of an attempt', () => {
  it('are put once: repeating an activity changes nothing', async () => {
    const { runner } = place.order()
    const handle = { ...place.launched().handle, attemptId: 'job-a-2' }
    await documents.putMachine(handle)
    await documents.putMachine({ ...handle, id: 'another' })
    expect(await documents.readMachine()).toEqual(handle)
    await documents.putDrain({ reason: 'cancelled', windowMs: 5 })
    await documents.putDrain({ reason: 'superseded', windowMs: 0 })
    expect(await place.read(layout.drain('job-a', 2))).toMatchObject({ reason: 'cancelled', windowMs: 5 })
    await documents.putDrain({ seq: 2, reason: 'cancelled', windowMs: 2 })
    await documents.putDrain({ seq: 2, reason: 'cancelled', windowMs: 1 })
    expect(await place.read(layout.shorterDrain('job-a', 2, 2))).toMatchObject({ seq: 2, windowMs: 2 })
    expect(await documents.readDrain()).toMatchObject({ windowMs: 5 })
    await documents.putLimits({ seq: 1, deadlineAtMs: 1, budget: null })
    await documents.putLimits({ seq: 1, deadlineAtMs: 2, budget: null })
    expect(await place.read(layout.limits('job-a', 2, 1))).toEqual({ seq: 1, deadlineAtMs: 1, budget: null })
    await documents.putOrder(runner)
    const first = await place.read<object>(layout.order('job-a', 2))
    place.aheadMs = 60_000
    await documents.putOrder(runner)
    expect(await place.read(layout.order('job-a', 2))).toEqual(first)
  })

  it('count shorter windows on from the newest request to stop, whatever put that', async () => {
    const numbered = (seq: number): Promise<unknown> => place.read(layout.shorterDrain('job-a', 2, seq))
    await documents.shortenDrain({ reason: 'superseded', windowMs: 50 })
    expect(await place.read(layout.drain('job-a', 2))).toMatchObject({ reason: 'superseded', windowMs: 50 })
    // No more time than was granted before.
    await documents.shortenDrain({ reason: 'cancelled', windowMs: 50 })
    expect(await documents.newestDrain()).toEqual({ seq: 1, windowMs: 50 })
    await documents.putDrain({ seq: 2, reason: 'cancelled', windowMs: 30 })
    const both = [20, 10].map((windowMs) => documents.shortenDrain({ reason: 'cancelled', windowMs }))
    await Promise.all(both)
    expect(await documents.newestDrain()).toMatchObject({ windowMs: 10 })
    expect(await numbered(2)).toMatchObject({ seq: 2, windowMs: 30 })
    expect(await numbered(3)).toMatchObject({ seq: 3, reason: 'cancelled' })
  })

  it('tell when the lease was renewed, by the clock of the store', async () => {
    expect(await documents.readLease()).toBeUndefined()
    const before = Date.now()
    await documents.putLease({ seq: 1, answersBeat: 4, ttlMs: 10 })
    await documents.putLease({ seq: 2, answersBeat: 5, ttlMs: 10 })
    const lease = await documents.readLease()
    expect(lease?.lease?.seq).toBe(2)
    expect(Math.abs(lease!.renewedAtMs - before)).toBeLessThan(patient(5_000))
  })

  it('are undefined if they do not exist, and an error if they are something else', async () => {
    expect(await documents.readBeat()).toBeUndefined()
    expect(await documents.readResult()).toBeUndefined()
    expect(await documents.readMachine()).toBeUndefined()
    await place.store.put(layout.result('job-a', 2), '{"outcome": "great"}')
    const error = await documents.readResult().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StoreError)
    expect(error).toMatchObject({ code: 'BAD_DOCUMENT', message: expect.stringContaining('outcome') })
  })

  it.each([
    ['{"machine":"m-1"}', 'm-1'],
    ['{"machine": "m-1", "later": true}\n', 'm-1'],
    ['"m-1"', undefined],
    ['null', undefined],
    ['{"mach', undefined],
  ])('name the machine that works on it: %s', async (claim, machine) => {
    expect(await documents.readClaim()).toBeUndefined()
    await place.store.put(layout.claim('job-a', 2), claim)
    expect(await documents.readClaim()).toEqual(machine === undefined ? undefined : { machine })
  })

  it('claim an attempt for a machine, unless one has claimed it', async () => {
    await documents.putClaim('m-1')
    await documents.putClaim('m-2')
    expect(await documents.readClaim()).toEqual({ machine: 'm-1' })
  })
})
