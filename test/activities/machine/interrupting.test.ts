import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { BackendDeps } from '../../../activities/machine/backend'
import type { Backend } from '../../../backends/backend'
import { layout } from '../../../storage/layout'
import { putDocument } from '../../../storage/json'
import { readRecords } from '../../../storage/record'
import { perform, Place } from '../place'

let place: Place

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

/** A machine on record, and what was done to it through a backend that cannot do these. */
async function interrupted(
  noticeMs: number | null,
  lacking: readonly (keyof Backend)[],
): Promise<{ asked: string[]; drain: unknown }> {
  const { order, handle } = place.launched()
  const { jobId, attempt } = order
  await putDocument(place.store, layout.machine(jobId, attempt), handle)
  const asked: string[] = []
  const verb = (name: string) => (): Promise<void> => Promise.resolve(void asked.push(name))
  const backend: BackendDeps['backend'] = { ...place.backend, terminate: verb('terminate') }
  if (lacking.includes('interrupt')) delete backend.interrupt
  else backend.interrupt = (_handle, { noticeMs: given }) => verb(`interrupt ${String(given)}`)()
  if (!lacking.includes('endAbruptly')) backend.endAbruptly = verb('endAbruptly')
  const verbs = place.verbs({ backend })
  await perform(verbs, 'interrupt', { jobId, attempt, noticeMs, recordSeq: 7 })
  const drain = await place.store.get(layout.drain(jobId, attempt))
  const [entry] = await readRecords(place.store, jobId)
  expect(entry).toMatchObject({ seq: 7, kind: 'interrupted', attempt, data: { noticeMs } })
  return { asked, drain: drain === undefined ? undefined : JSON.parse(drain.toString()) }
}

describe('a machine that a rehearsal takes back', () => {
  it('is taken back by the provider where that can be asked to', async () => {
    expect(await interrupted(5_000, [])).toEqual({ asked: ['interrupt 5000'], drain: undefined })
  })

  it('gets the order that a notice amounts to where the provider gives none on request', async () => {
    const { asked, drain } = await interrupted(5_000, ['interrupt'])
    expect(asked).toEqual([])
    expect(drain).toMatchObject({ reason: 'interrupted', windowMs: 5_000 })
  })

  it('is ended without a word to its processes where there is to be no notice', async () => {
    expect(await interrupted(null, ['interrupt'])).toEqual({ asked: ['endAbruptly'], drain: undefined })
  })

  it('is terminated where that tells its processes nothing', async () => {
    expect((await interrupted(null, ['interrupt', 'endAbruptly'])).asked).toEqual(['terminate'])
  })

  it('must be on record', async () => {
    const verbs = place.verbs()
    const interrupt = perform(verbs, 'interrupt', {
      jobId: 'job-none',
      attempt: 1,
      noticeMs: null,
      recordSeq: 7,
    })
    await expect(interrupt).rejects.toThrow(/has no machine/)
  })
})
