import { describe, expect, it } from '@jest/globals'
import { peakOf, type OwnMemory } from '../../../core/job/own-memory'
import { measuredMemory } from '../../../planner/plan/own-memory'

const used = (changes: Partial<OwnMemory> = {}): OwnMemory => ({
  jobId: 'train-a',
  run: 'python train.py',
  bundleSha256: 'abc',
  gpus: 1,
  peakMiB: 10_240,
  totalMiB: 40_960,
  ...changes,
})
const ASKED = { run: 'python train.py', bundle: { sha256: 'abc' } }

describe('the measured GPU memory of a job', () => {
  it('is that of the newest attempt of the same code and command', () => {
    const all = [used({ jobId: 'newest' }), used({ jobId: 'older', peakMiB: 1 })]
    expect(measuredMemory(all, ASKED)).toEqual({ jobId: 'newest', gpus: 1, peakGiB: 10 })
  })

  it.each([
    ['another command', used({ run: 'python train.py --large' })],
    ['other code', used({ bundleSha256: 'def' })],
    ['a GPU that may have been reserved as a whole', used({ peakMiB: 30_720 })],
  ])('is not known from %s', (_, one) => {
    expect(measuredMemory([one], ASKED)).toBeUndefined()
  })

  it('is not known for a job without code', () => {
    expect(measuredMemory([used()], { ...ASKED, bundle: null })).toBeUndefined()
  })
})

describe('the peak of GPU memory', () => {
  const gpu = { index: 0, name: 'T4', utilizationPercent: 5, memoryUsedMiB: 1, memoryTotalMiB: 15_360 }

  it('is that of the fullest GPU', () => {
    const gpus = [
      { ...gpu, memoryPeakMiB: 500 },
      { ...gpu, index: 1, memoryPeakMiB: 900 },
    ]
    expect(peakOf(gpus)).toEqual({ gpus: 2, peakMiB: 900, totalMiB: 15_360 })
  })

  it('is unknown without GPUs, and from a runner that reports none', () => {
    expect(peakOf([])).toBeUndefined()
    expect(peakOf([gpu])).toBeUndefined()
  })
})
