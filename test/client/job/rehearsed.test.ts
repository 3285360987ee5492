import { describe, expect, it } from '@jest/globals'
import type { Context } from '../../../client/context'
import { parseJobFile } from '../../../client/job/file'
import { keepRehearsed, rehearsedBefore } from '../../../client/job/rehearsed'
import { savedBefore } from '../../../client/job/saved'
import type { JobSpec } from '../../../core/job/job'
import type { Home } from '../../../storage/home'
import { testFolder } from '../../support/folders'

const LEARNED = { version: 1, name: 'a', atMs: 1, survives: true, summary: 'It survives.' } as const

function spec(text: string): JobSpec {
  const read = parseJobFile(text, { fileName: 'job.yaml', nowMs: 0 })
  if (!('job' in read)) throw new Error('the job file is wrong')
  return read.job.spec
}

describe('what a rehearsal has learned', () => {
  const home = { directory: testFolder('rehearsed') } as Home
  const job = spec('name: a\nrun: python3 train.py\n')

  it('is what plan expects of checkpoints until a job of that name has saved one', async () => {
    const context = {
      config: { home },
      temporal: () => Promise.reject(new Error('no server')),
    } as unknown as Context
    expect(await savedBefore(context, job)).toBeUndefined()
    keepRehearsed(home, job, { ...LEARNED, totalBytes: 20_000, saveMs: 700 })
    expect(await savedBefore(context, job)).toEqual({ totalBytes: 20_000, saveMs: 700 })
  })

  it('is not used for another command', () => {
    keepRehearsed(home, job, LEARNED)
    expect(rehearsedBefore(home, job)).toEqual(LEARNED)
    expect(rehearsedBefore(home, spec('name: a\nrun: python3 other.py\n'))).toBeUndefined()
  })
})
