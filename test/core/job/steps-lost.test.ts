import { describe, expect, it } from '@jest/globals'
import { stepsLost, type StepsAtEnd } from '../../../core/job/steps-lost'

const at = (step: number) => ({ id: `${step}-1`, step, attempt: 1 })
const progress = (step: number | null) => ({ step, stepsTotal: 100, loss: null, atMs: 1 })
const END: StepsAtEnd = {
  isDone: false,
  progress: progress(60),
  restoredFrom: undefined,
  checkpoint: undefined,
  isCheckpointStepKnown: true,
}

describe('steps lost', () => {
  it.each<[string, Partial<StepsAtEnd>, number | null]>([
    ['all without a checkpoint', {}, 60],
    ['those since the newest checkpoint', { checkpoint: at(50) }, 10],
    ['none where more was saved than was reported', { checkpoint: at(70) }, 0],
    ['none of an attempt whose work is done', { isDone: true }, 0],
    ['unknown where no step is', { progress: progress(null) }, null],
    ['unknown if nothing was reported', { progress: undefined }, null],
    [
      'unknown where the checkpoint has a running number',
      { checkpoint: at(3), isCheckpointStepKnown: false },
      null,
    ],
    ['all without a checkpoint, whatever its number would be', { isCheckpointStepKnown: false }, 60],
    ['none where only the restored ones were repeated', { restoredFrom: at(60), checkpoint: at(60) }, 0],
    ['those since the restored one', { restoredFrom: at(50), checkpoint: at(50) }, 10],
    ['unknown where steps count anew', { restoredFrom: at(500), checkpoint: at(500) }, null],
  ])('are %s', (_, end, lost) => {
    expect(stepsLost({ ...END, ...end })).toBe(lost)
  })
})
