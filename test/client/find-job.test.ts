import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { findJob, knownJobs } from '../../client/find-job'
import { putRecord } from '../../storage/record'
import { ClientWorld, NOW, SPEC } from './world'

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.make()
  for (const [index, [id, name]] of JOBS.entries()) {
    const data = { jobId: id, spec: { ...SPEC, name }, submittedAtMs: NOW + index }
    await putRecord(world.store, id, { seq: 0, atMs: NOW, kind: 'submitted', summary: '', data })
  }
})

afterEach(() => world.remove())

const JOBS = [
  ['job-aa1', 'first'],
  ['job-aa2', 'second'],
  ['job-ab1', 'first'],
  ['job-ab10', 'job-aa'],
] as const

describe('the job that a person means', () => {
  it.each([
    ['its id', 'job-aa2', 'job-aa2'],
    ['its id, though it begins another', 'job-ab1', 'job-ab1'],
    ['the beginning of its id', 'job-ab10', 'job-ab10'],
    ['its name', 'second', 'job-aa2'],
  ])('is told by %s', async (_how, meant, id) => {
    expect(await findJob(world.context, meant)).toBe(id)
  })

  it.each([['job-aa'], ['first']])('is asked back about when %s may be several', async (meant) => {
    await expect(findJob(world.context, meant)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(/may be any of these jobs:\n {2}job-a/),
      details: { candidates: expect.arrayContaining([expect.stringMatching(/^job-a/)]) },
    })
  })

  it('is rather one whose id begins so than one of that name', async () => {
    await expect(findJob(world.context, 'job-aa')).rejects.toMatchObject({
      details: { candidates: ['job-aa1', 'job-aa2'] },
    })
  })

  it.each([['third'], ['../x'], ['..'], ['a/b'], ['']])('is none for "%s"', async (meant) => {
    await expect(findJob(world.context, meant)).rejects.toMatchObject({ kind: 'not-found' })
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
