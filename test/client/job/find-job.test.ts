import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { findJob, knownJobs } from '../../../client/job/find-job'
import { putRecord } from '../../../storage/record'
import { ClientWorld, NOW, SPEC } from '../world'
import { partialEntry } from '../../support/record'

let world: ClientWorld
let notes: string[]

beforeEach(async () => {
  world = await ClientWorld.make()
  notes = []
  world.context.note = (text) => void notes.push(text)
  for (const [index, [id, name]] of JOBS.entries()) await put(id, name, index)
})

async function put(id: string, name: string, afterMs: number): Promise<void> {
  const data = { jobId: id, spec: { ...SPEC, name }, submittedAtMs: NOW + afterMs }
  await putRecord(world.store, id, partialEntry({ seq: 0, atMs: NOW, kind: 'submitted', summary: '', data }))
}

async function finish(id: string): Promise<void> {
  const result = { state: 'succeeded', finishedAtMs: NOW }
  const finished = partialEntry({ seq: 1, atMs: NOW, kind: 'finished', summary: '', data: { result } })
  await putRecord(world.store, id, finished)
}

afterEach(() => world.remove())

const JOBS = [
  ['job-aa1', 'first'],
  ['job-aa2', 'second'],
  ['job-ab1', 'first'],
  ['job-ab10', 'third-of-all'],
] as const

describe('the job that a person means', () => {
  it.each([
    ['its id', 'job-aa2', 'job-aa2'],
    ['its id, though it begins another', 'job-ab1', 'job-ab1'],
    ['the beginning of its id', 'job-ab10', 'job-ab10'],
    ['its name', 'second', 'job-aa2'],
  ])('is found by %s', async (_how, meant, id) => {
    expect(await findJob(world.context, meant)).toBe(id)
  })

  it.each([['job-a'], ['first']])('is asked back about when %s may be several', async (meant) => {
    await expect(findJob(world.context, meant)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(/matches several jobs:\n {2}job-a/),
      details: { candidates: expect.arrayContaining([expect.stringMatching(/^job-a/)]) },
    })
  })

  it('is rather one of that name than one whose id begins so', async () => {
    await put('other', 'job-ab', 5)
    expect(await findJob(world.context, 'job-ab')).toBe('other')
  })

  it('is the one of its name that is not over, with a note', async () => {
    await finish('job-ab1')
    expect(await findJob(world.context, 'first')).toBe('job-aa1')
    expect(notes).toEqual(['"first" means job-aa1, the open one of the jobs with that name.'])
  })

  it('is the newest of its name when all are over, with a note', async () => {
    await finish('job-aa1')
    await finish('job-ab1')
    expect(await findJob(world.context, 'first')).toBe('job-ab1')
    expect(notes).toEqual(['"first" means job-ab1, the newest of the jobs with that name.'])
    expect(await findJob(world.context, 'second')).toBe('job-aa2')
    expect(notes).toHaveLength(1)
  })

  it('is found by its name before Temporal has it in its index', async () => {
    await put('char-lm-x00001', 'char-lm', 10)
    await finish('char-lm-x00001')
    await put('char-lm-x00002', 'char-lm', 20)
    world.client = { workflow: { list: async function* () {} } } as unknown as Partial<Client>
    expect(await findJob(world.context, 'char-lm')).toBe('char-lm-x00002')
  })

  it.each([['third'], ['job-aa9'], ['../x'], ['..'], ['a/b'], ['']])(
    'does not exist for "%s"',
    async (meant) => {
      await expect(findJob(world.context, meant)).rejects.toMatchObject({ kind: 'not-found' })
    },
  )

  it.each([
    ['char-ml', 'char-lm'],
    ['jab-aa2', 'job-aa2'],
  ])('is suggested for %s', async (meant, near) => {
    await put('char-lm-x00001', 'char-lm', 10)
    await expect(findJob(world.context, meant)).rejects.toMatchObject({
      message: expect.stringContaining(`Did you mean ${near}?`),
    })
  })

  it('is listed newest first', async () => {
    expect((await knownJobs(world.context)).map(({ id }) => id)).toEqual([
      'job-ab10',
      'job-ab1',
      'job-aa2',
      'job-aa1',
    ])
  })
})
