import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { RecordEntryOf } from '../../core/job/record'
import { ensureDeployment, readDeployment } from '../../storage/deployment'
import { putDocument, putDocumentIfAbsent, readDocument } from '../../storage/json'
import { openStore } from '../../storage/open-store'
import { eachOf } from '../../storage/parallel'
import { putRecord, readRecords, type RecordCache } from '../../storage/record'
import { StoreError, type ObjectStore } from '../../storage/store'
import { partialEntry } from '../support/record'

let root: string
let store: ObjectStore

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'crucible-record-'))
  store = openStore(pathToFileURL(root).href)
})
afterEach(() => rm(root, { recursive: true, force: true }))

function entry(seq: number, summary: string): RecordEntryOf<'planned'> {
  const atMs = 1_795_500_000_000 + seq
  return partialEntry({ seq, atMs, kind: 'planned', attempt: 1, summary, data: { offers: [seq] } })
}

describe('the record of a job', () => {
  it('is read back whole and in order', async () => {
    const entries = Array.from({ length: 12 }, (_, i) => entry(i + 1, `entry ${i + 1}`))
    for (const one of [...entries].reverse()) expect(await putRecord(store, 'job-a', one)).toEqual(one)
    await putRecord(store, 'job-ab', entry(1, 'of another job'))
    expect(await readRecords(store, 'job-a')).toEqual(entries)
    expect(await readRecords(store, 'job-none')).toEqual([])
  })

  it('takes no other step under the number of an earlier one', async () => {
    await putRecord(store, 'job-a', partialEntry({ ...entry(4, 'over'), kind: 'finished', data: {} }))
    await expect(putRecord(store, 'job-a', entry(4, 'first'))).rejects.toMatchObject({
      code: 'OTHER_HISTORY',
    })
  })

  it('is read again without what is known of it', async () => {
    await putRecord(store, 'job-a', entry(1, 'first'))
    const known: RecordCache = new Map()
    await readRecords(store, 'job-a', { known })
    await putRecord(store, 'job-a', entry(2, 'second'))
    const read = jest.spyOn(store, 'get')
    const entries = [entry(1, 'first'), entry(2, 'second')]
    expect(await readRecords(store, 'job-a', { known })).toEqual(entries)
    expect(await readRecords(store, 'job-a', { known })).toEqual(entries)
    expect(read.mock.calls.map(([key]) => key)).toEqual(['jobs/job-a/record/000002.json'])
  })

  it('keeps the first of two entries with the same number, and answers that one', async () => {
    const first = entry(1, 'first')
    await putRecord(store, 'job-a', first)
    expect(await putRecord(store, 'job-a', { ...entry(1, 'second'), atMs: 5 })).toEqual(first)
    expect(await readRecords(store, 'job-a')).toEqual([first])
  })

  it('returns one entry to all concurrent writers', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => putRecord(store, 'job-a', entry(1, `by ${i}`))),
    )
    expect(new Set(answers.map((answer) => answer.summary)).size).toBe(1)
    expect(await readRecords(store, 'job-a')).toEqual([answers[0]])
  })

  it.each(['', '{', 'null', '[]', '{"seq": 1, "kind": "guessed"}'])(
    'names the entry that reads %j',
    async (text) => {
      await store.put('jobs/job-a/record/000001.json', text)
      const reading = readRecords(store, 'job-a')
      await expect(reading).rejects.toThrow('The document jobs/job-a/record/000001.json cannot be read')
      await expect(reading).rejects.toMatchObject({ code: 'BAD_DOCUMENT', isTransient: false })
    },
  )
})

describe('documents', () => {
  it('are put and read as JSON', async () => {
    await putDocument(store, 'a', { n: 1 })
    expect(await readDocument(store, 'a', JSON.parse)).toEqual({ n: 1 })
    expect(await readDocument(store, 'none', JSON.parse)).toBeUndefined()
    expect(await putDocumentIfAbsent(store, 'a', { n: 2 })).toBe(false)
    expect(await putDocumentIfAbsent(store, 'b', { n: 2 })).toBe(true)
    expect(await readDocument(store, 'b', JSON.parse)).toEqual({ n: 2 })
  })

  it('that a parser refuses are a store error with its words', async () => {
    await store.put('a', 'x')
    const refuse = (text: string): never => {
      throw new Error(`not a valid beat: ${text}`)
    }
    const reading = readDocument(store, 'a', refuse)
    await expect(reading).rejects.toBeInstanceOf(StoreError)
    await expect(reading).rejects.toThrow('The document a cannot be read: not a valid beat: x')
  })
})

describe('eachOf', () => {
  it('keeps the order and a bound on what is under way', async () => {
    let underWay = 0
    let most = 0
    const results = await eachOf(
      Array.from({ length: 50 }, (_, i) => i),
      async (i) => {
        most = Math.max(most, ++underWay)
        await new Promise(setImmediate)
        underWay--
        return i * 2
      },
    )
    expect(results).toEqual(Array.from({ length: 50 }, (_, i) => i * 2))
    expect(most).toBe(8)
    expect(await eachOf([], () => Promise.reject(new Error('never')))).toEqual([])
  })

  it('begins nothing after an error', async () => {
    const begun: number[] = []
    const doing = eachOf([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], async (i) => {
      begun.push(i)
      await new Promise(setImmediate)
      if (i === 0) throw new Error('first')
    })
    await expect(doing).rejects.toThrow('first')
    await new Promise(setImmediate)
    expect(begun).toHaveLength(8)
  })
})

describe('the deployment of a store', () => {
  it('is made by the first to ask, and answered to all', async () => {
    expect(await readDeployment(store)).toBeUndefined()
    const ids = await Promise.all(
      Array.from({ length: 8 }, (_, i) => ensureDeployment(store, () => `dep-000000000${i}`)),
    )
    expect(new Set(ids).size).toBe(1)
    expect(await readDeployment(store)).toBe(ids[0])
    const never = (): string => {
      throw new Error('asked for another id')
    }
    expect(await ensureDeployment(store, never)).toBe(ids[0])
  })

  it('is refused if its document is invalid', async () => {
    await expect(ensureDeployment(store, () => 'Dep-1')).rejects.toThrow(
      '"Dep-1" is not the id of a deployment',
    )
    expect(await readDeployment(store)).toBeUndefined()
    await store.put('deployment.json', '{"id": 5}')
    await expect(readDeployment(store)).rejects.toThrow(
      'The document deployment.json cannot be read: 5 is not the id',
    )
  })
})
