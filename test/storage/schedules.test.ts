import { describe, expect, it } from '@jest/globals'
import type { PromotedModel } from '../../core/retraining/retraining'
import { layout } from '../../storage/layout'
import { promote, putRevision, putRunEntry, readProduction, readRevisions } from '../../storage/schedules'
import { MemoryStore } from '../backends/scripted/memory-store'

const MODEL: Omit<PromotedModel, 'seq' | 'previousSeq'> = {
  jobId: 'ranker-1',
  checkpointId: '000000000100-1',
  step: 100,
  digest: 'd'.repeat(64),
  artifactsUrl: 'file:///store/x/',
  promotedAtMs: 1,
  schedule: 'ranker',
  run: '2027-01-04',
  window: { start: '2026-10-01', end: '2027-01-01' },
  bundleSha256: null,
}

describe('the model in production', () => {
  it('moves to exactly one of the models that are promoted at once, and all get a number', async () => {
    const store = new MemoryStore(() => 0)
    const runs = Array.from({ length: 8 }, (_, index) => `2027-01-0${index + 1}`)
    const made = await Promise.all(runs.map((run) => promote(store, 'ranker', { ...MODEL, run })))
    expect(made.map(({ seq }) => seq).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    for (const { seq, previousSeq } of made) expect(previousSeq).toBe(seq === 1 ? null : seq - 1)
    const production = await readProduction(store, 'ranker')
    expect(production).toEqual(made.find(({ seq }) => seq === 8))
    expect(JSON.parse((await store.get(layout.production('ranker')))!.toString())).toEqual(production)
  })

  it('stays where it is when a run promotes the same again', async () => {
    const store = new MemoryStore(() => 0)
    const first = await promote(store, 'ranker', MODEL)
    expect(await promote(store, 'ranker', { ...MODEL, promotedAtMs: 2 })).toEqual(first)
    expect(await promote(store, 'ranker', { ...MODEL, run: 'other' })).toMatchObject({
      seq: 2,
      previousSeq: 1,
    })
  })

  it('does not move back when a run repeats its promotion after that of another run', async () => {
    const store = new MemoryStore(() => 0)
    const first = await promote(store, 'ranker', MODEL)
    const second = await promote(store, 'ranker', { ...MODEL, run: 'other' })
    expect(await promote(store, 'ranker', MODEL)).toEqual(first)
    expect(await readProduction(store, 'ranker')).toEqual(second)
  })

  it('is copied for programs also if the copy was lost', async () => {
    const store = new MemoryStore(() => 0)
    const first = await promote(store, 'ranker', MODEL)
    await store.delete(layout.production('ranker'))
    await promote(store, 'ranker', MODEL)
    expect(JSON.parse((await store.get(layout.production('ranker')))!.toString())).toEqual(first)
  })
})

describe('the record of a schedule', () => {
  it('takes each revision and each entry of a run once', async () => {
    const store = new MemoryStore(() => 0)
    const input = { schedule: 'ranker' } as Parameters<typeof putRevision>[1]['input']
    const revision = { revision: 1, atMs: 1, by: 'ada', kind: 'created' as const, input }
    expect(await putRevision(store, revision)).toBe(true)
    expect(await putRevision(store, { ...revision, by: 'bob' })).toBe(false)
    expect(await readRevisions(store, 'ranker')).toEqual([revision])
    const at = { schedule: 'ranker', run: '2027-01-04' }
    const entry = { seq: 0, atMs: 1, kind: 'started' as const, summary: 'x', data: 1 }
    expect(await putRunEntry(store, at, entry)).toEqual(entry)
    expect(await putRunEntry(store, at, { ...entry, data: 2 })).toEqual(entry)
    // Of a history that was reset: the entry of the new one goes behind it.
    const checked = { ...entry, kind: 'checked' as const }
    expect(await putRunEntry(store, at, checked)).toEqual({ ...checked, seq: 1 })
    expect(await putRunEntry(store, at, { ...checked, data: 2 })).toEqual({ ...checked, seq: 1 })
  })
})
