/** How a job gets the checkpoint of the job that it continues. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import type { Failure } from '../../core/failure'
import type { JobInput } from '../../core/messages'
import { SECOND_MS } from '../../core/time/time'
import type * as Copies from '../../workflows/job/copy-checkpoint'
import type * as Runs from '../../workflows/job/run'
import { SPEC } from '../support/spec'
import { played, playedActivities, playedWorkflow } from './played-job'
import { untilCancelled } from './scopes'

jest.mock('@temporalio/workflow', () => playedWorkflow())
jest.mock('../../workflows/activities', () => playedActivities())
const { JobRun } = jest.requireActual<typeof Runs>('../../workflows/job/run')
const { copyCheckpoint } = jest.requireActual<typeof Copies>('../../workflows/job/copy-checkpoint')

const SOURCE = { jobId: 'job-0', checkpoint: { id: '5-1', step: 5, attempt: 1 } }
const COPY = { id: '5-0', step: 5, attempt: 0 }

let run: Runs.JobRun

function begin(input: Partial<JobInput> = {}): Promise<unknown> {
  run = new JobRun({
    ...{ jobId: 'job-1', spec: SPEC, bundle: null, owner: 'ada', deployment: 'dep-1', submittedAtMs: 0 },
    ...{ source: SOURCE, ...input },
  })
  return copyCheckpoint(run)
}

const failing = (failure: Failure) => (): never => {
  const { class: type, message } = failure
  throw ApplicationFailure.create({ type, message, details: [failure] })
}

beforeEach(() => {
  played.reset()
  played.answers = { copyCheckpoint: () => ({ checkpoint: COPY }) }
})

describe('the checkpoint that a job begins with', () => {
  it('is copied once, under a record number of its own, and is then the newest of the job', async () => {
    played.answers['copyCheckpoint'] = () => {
      expect(run.page.status).toMatchObject({
        ...{ reason: 'planning', message: 'Copying the checkpoint of step 5 of job-0.' },
      })
      return { checkpoint: COPY }
    }
    expect(await played.endOf(begin())).toBeUndefined()
    expect(played.asked).toEqual([['copyCheckpoint', { jobId: 'job-1', source: SOURCE, recordSeq: 2 }]])
    expect(run.page.status).toMatchObject({ checkpoint: COPY, message: 'Looking for a place.' })
    expect(run.nextSeq()).toBe(3)
  })

  it('is copied by no job that starts over', async () => {
    // A job that needs no copy keeps its record numbers.
    expect(await played.endOf(begin({ source: undefined } as never))).toBeUndefined()
    expect([played.asked, run.nextSeq()]).toEqual([[], 2])
  })

  it.each([
    [undefined, 'No checkpoint is left.'],
    ['Start over with --fresh.', 'No checkpoint is left. Start over with --fresh.'],
  ])('may be lost, which ends the job, with the hint %s', async (hint, message) => {
    const failure = { class: 'invalid', code: 'NO_CHECKPOINT', message: 'No checkpoint is left.' } as const
    played.answers['copyCheckpoint'] = failing({ ...failure, ...(hint !== undefined && { hint }) })
    expect(await played.endOf(begin())).toEqual({
      ...{ kind: 'finish', state: 'failed', reason: 'invalid', message },
    })
  })

  it('is tried again if the store has trouble of any other kind', async () => {
    played.answers['copyCheckpoint'] = failing({ class: 'invalid', message: 'No store.' })
    const ended = begin()
    await played.settled()
    expect(run.page.status.trouble).toBe('No store.')
    played.answers['copyCheckpoint'] = () => ({ checkpoint: COPY })
    expect(await played.endPause()).toBe(10 * SECOND_MS)
    expect(await played.endOf(ended)).toBeUndefined()
    expect(run.page.status).not.toHaveProperty('trouble')
    expect(run.page.status.checkpoint).toBe(COPY)
  })

  it('is not waited for by a job that is being stopped, nor is its trouble shown any longer', async () => {
    played.answers['copyCheckpoint'] = () => untilCancelled()
    const ended = begin()
    await played.settled()
    run.page.trouble({ class: 'transient', message: 'No store.' })
    run.drains.add({ reason: 'cancelled', windowMs: 1_000 })
    expect(await played.endOf(ended)).toBeUndefined()
    expect(run.page.status).not.toHaveProperty('trouble')
    expect(run.page.status).not.toHaveProperty('checkpoint')
  })
})
