import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { OwnSpeeds } from '../../core/job/own-speeds'
import { layout } from '../../storage/layout'
import { putOwnSpeeds, readOwnSpeeds } from '../../storage/own-speeds'
import { MemoryStore } from '../backends/scripted/memory-store'

const speeds = (jobId: string, steps = 10): OwnSpeeds => ({
  jobId,
  family: null,
  paces: [
    { accelerator: 'V100', steps, ms: 1_000 },
    { accelerator: 'A100', steps: 30, ms: 1_000 },
  ],
})

describe('the speeds that jobs measured', () => {
  let store: MemoryStore
  beforeEach(() => {
    store = new MemoryStore(Date.now)
  })

  it('are read newest first', async () => {
    for (const [jobId, atMs] of [
      ['b', 2],
      ['a', 1],
      ['c', 3],
    ] as const)
      await putOwnSpeeds(store, speeds(jobId), atMs)
    expect((await readOwnSpeeds(store)).map(({ jobId }) => jobId)).toEqual(['c', 'b', 'a'])
  })

  it('are put once, however often a job ends', async () => {
    await Promise.all([1, 2, 3].map(() => putOwnSpeeds(store, speeds('a'), 5)))
    await putOwnSpeeds(store, speeds('a', 99), 5)
    expect(await readOwnSpeeds(store)).toHaveLength(1)
  })

  it('are those of the newest 200 jobs; older ones are deleted', async () => {
    for (let at = 1; at <= 205; at += 1) await putOwnSpeeds(store, speeds(`job-${at}`), at)
    const read = await readOwnSpeeds(store)
    expect([read.length, read.at(-1)!.jobId]).toEqual([200, 'job-6'])
    expect(await store.head(layout.ownSpeeds(5, 'job-5'))).toBeUndefined()
  })

  it('are each read from the store once, and gone once they are deleted', async () => {
    await putOwnSpeeds(store, speeds('a'), 1)
    await readOwnSpeeds(store)
    const get = jest.spyOn(store, 'get')
    expect(await readOwnSpeeds(store)).toHaveLength(1)
    expect(get).not.toHaveBeenCalled()
    await store.delete(layout.ownSpeeds(1, 'a'))
    expect(await readOwnSpeeds(store)).toEqual([])
  })

  it('are left out where a document is unreadable', async () => {
    await store.put(layout.ownSpeeds(1, 'a'), '{"jobId": "a", "paces": [{"steps": 0, "ms": 1}]}')
    await putOwnSpeeds(store, speeds('b'), 2)
    expect((await readOwnSpeeds(store)).map(({ jobId }) => jobId)).toEqual(['b'])
  })
})
