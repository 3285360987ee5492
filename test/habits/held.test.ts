import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { FileStore } from '../../storage/file-store'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import { testFolder } from '../support/folders'
import { HeldSaves } from './held'
import type { Note } from './notes'

const JOB = 'job-held'

let store: ObjectStore
let held: HeldSaves

beforeEach(() => {
  store = new FileStore(testFolder('held'), Date.now)
  held = new HeldSaves(store, JOB)
})

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
const saved = (step: number, ...texts: string[]): Note => ({
  event: 'saved',
  step,
  state: '',
  attempt: 1,
  pid: 1,
  atMs: step,
  files: texts.map((text) => digest(text).slice(0, 16)),
})

/** A checkpoint whose files hold these texts. */
async function put(step: number, texts: readonly string[], revision = 1): Promise<string> {
  const folder = layout.checkpoint(JOB, step, 1)
  for (const text of texts) await store.put(`${folder}files/${text}.pt`, text)
  const files = texts.map((text) => ({ path: `${text}.pt`, sizeBytes: text.length, parts: [digest(text)] }))
  const name = revision === 1 ? 'manifest.json' : `manifest.${revision}.json`
  await store.put(`${folder}${name}`, JSON.stringify({ files }))
  return folder
}

describe('what the store holds of the saves of a habit', () => {
  const NOTES = [saved(10, 'a', 'b'), saved(20, 'c', 'd')]

  it('may lose old saves and files of no save', async () => {
    const old = await put(10, ['a', 'b', 'x'])
    await put(20, ['c', 'd'])
    await held.look(NOTES, 1)
    await store.delete(`${old}manifest.json`)
    await held.lookAgain(NOTES, 1)
    expect(held.breaches).toEqual([])
  })

  it.each(['manifest.json', 'files/d.pt'])('must not lose %s of the newest whole one', async (name) => {
    await put(10, ['a', 'b'])
    const newest = await put(20, ['c', 'd'])
    await held.look(NOTES, 1)
    await store.delete(`${newest}${name}`)
    await held.lookAgain(NOTES, 1)
    expect(held.breaches).toMatchObject([{ kind: 'deleted', words: expect.stringContaining('step 20') }])
  })

  it('goes by the newest manifest of a checkpoint', async () => {
    await put(20, ['c', 'd'])
    await held.look(NOTES, 1)
    await put(20, ['c'], 2)
    await held.lookAgain(NOTES, 1)
    expect(held.breaches).toHaveLength(1)
  })

  it('must not lose the one that the program last went on from', async () => {
    const old = await put(10, ['a', 'b'])
    await put(20, ['c', 'd'])
    const at = { attempt: 2, pid: 2, atMs: 30, step: 10 }
    const notes: Note[] = [...NOTES, { ...at, event: 'resumed', state: '' }, { ...at, event: 'step' }]
    await held.look(notes, 2)
    await store.delete(`${old}manifest.json`)
    await held.lookAgain(notes, 2)
    expect(held.breaches).toMatchObject([{ kind: 'deleted', words: expect.stringContaining('went on from') }])
  })
})
