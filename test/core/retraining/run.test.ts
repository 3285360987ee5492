import { describe, expect, it } from '@jest/globals'
import { isTrainingOf, runJobId } from '../../../core/retraining/run'

describe('the trainings of a run', () => {
  const run = { jobPrefix: 'ranker-20270104' }
  const first = runJobId(run, { part: 'training' })

  it('are the first one, and those that continue it', () => {
    for (const number of [1, 2, 11])
      expect(isTrainingOf(first, runJobId(run, { part: 'training', number }))).toBe(true)
  })

  it.each([
    runJobId(run, { part: 'evaluation' }),
    runJobId({ jobPrefix: 'ranker-20270104b' }, { part: 'training' }),
    `${first}-t`,
    `${first}-t2x`,
    `${first}-tx2`,
    `${first}-x2`,
    `x${first}`,
  ])('are not %s', (jobId) => {
    expect(isTrainingOf(first, jobId)).toBe(false)
  })
})
