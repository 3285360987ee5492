import { describe, expect, it } from '@jest/globals'
import { makeDeploymentId, makeJobId } from '../../core/ids'
import { attemptIdOf, attemptWorkflowId, JOB_ID_PATTERN, parseAttemptId, sendNameOf } from '../../core/queues'
import { CHECKPOINT_STEP_DIGITS, checkpointId, parseCheckpointId } from '../../core/job/checkpoint'

const least = (): number => 0
const most = (limit: number): number => limit - 1

describe('the id of a job', () => {
  it('is its name, a letter, and five digits or letters that are not mistaken for others', () => {
    expect(makeJobId('char-lm', least)).toBe('char-lm-a00000')
    expect(makeJobId('char-lm', most)).toBe('char-lm-zzzzzz')
  })

  it.each(['char-lm', '7b', 'x'.repeat(60), `${'x'.repeat(32)}-y`, `${'x'.repeat(33)}-y`])(
    'is legal for the name %s',
    (name) => {
      for (const random of [least, most]) expect(makeJobId(name, random)).toMatch(JOB_ID_PATTERN)
    },
  )

  it('uses all the length there is for a long name, and ends no part with a dash', () => {
    expect(makeJobId('x'.repeat(60), least)).toHaveLength(40)
    expect(makeJobId(`${'x'.repeat(32)}--y`, least)).toBe(`${'x'.repeat(32)}-a00000`)
  })

  it('begins with a letter, whatever its name does', () => {
    expect(makeJobId('7b', least)).toBe('job-7b-a00000')
  })

  it.each(['', '1a', 'a-', '-a', 'A', 'a_b', 'a.b', 'a/b', 'a b', 'a\n', 'a'.repeat(41)])(
    'is not %j',
    (id) => {
      expect(JOB_ID_PATTERN.test(id)).toBe(false)
    },
  )

  it.each(['a', 'a1', 'a-1', 'a'.repeat(40)])('may be %s', (id) => {
    expect(JOB_ID_PATTERN.test(id)).toBe(true)
  })
})

it('the id of a deployment has ten digits or letters', () => {
  expect(makeDeploymentId(least)).toBe('dep-0000000000')
  expect(makeDeploymentId(most)).toBe('dep-zzzzzzzzzz')
})

describe('the id of an attempt', () => {
  it('names job and number, and is read back', () => {
    expect(attemptIdOf('char-lm-a00000', 12)).toBe('char-lm-a00000-12')
    expect(parseAttemptId('char-lm-a00000-12')).toEqual({ jobId: 'char-lm-a00000', attempt: 12 })
    expect(attemptWorkflowId('char-lm-a00000', 12)).toBe('job/char-lm-a00000/12')
  })

  it('is not that of a send, nor anything else', () => {
    const ids = [sendNameOf('job-1', 2), 'job', 'job-', '-1', 'job-1x', 'job-x1', '']
    expect(ids.filter((id) => parseAttemptId(id) !== undefined)).toEqual([])
  })
})

describe('the id of a checkpoint', () => {
  it('names step and attempt, sorts by step, and is read back', () => {
    expect(checkpointId(1_500, 3)).toBe('000000001500-3')
    expect(parseCheckpointId('000000001500-3')).toEqual({ id: '000000001500-3', step: 1_500, attempt: 3 })
  })

  it.each(['1500-3', '000000001500', '000000001500-', '000000001500-3x', 'x000000001500-3'])(
    'is not %s',
    (id) => expect(parseCheckpointId(id)).toBeUndefined(),
  )

  it('has all its digits for the largest step', () => {
    const largest = 10 ** CHECKPOINT_STEP_DIGITS - 1
    expect(parseCheckpointId(checkpointId(largest, 1))?.step).toBe(largest)
  })
})
