import { describe, expect, it } from '@jest/globals'
import { resourcesInWords, trainingTimeInWords } from '../../../core/job/words'
import type { ResourceRequest } from '../../../core/resources'
import { HOUR_MS } from '../../../core/time/time'

describe('the training time of a job in words', () => {
  it('has the accelerator that it refers to, if the job names one', () => {
    expect(trainingTimeInWords({ durationMs: 10 * HOUR_MS, durationOn: 'A100' })).toBe('10h on A100')
    expect(trainingTimeInWords({ durationMs: 10 * HOUR_MS })).toBe('10h')
  })

  it('is missing if the job states none', () => {
    expect(trainingTimeInWords({ durationOn: 'A100' })).toBeUndefined()
  })
})

describe('the resources of a job in words', () => {
  it.each<[words: string, ResourceRequest]>([
    ['1 GPU', { gpus: { min: 1, max: 1 } }],
    ['1+ GPUs', { gpus: { min: 1 } }],
    ['1..4 GPUs', { gpus: { min: 1, max: 4 } }],
    ['..1 GPUs', { gpus: { max: 1 } }],
    ['2 GPUs', { gpus: { min: 2, max: 2 } }],
    ['H100', { accelerators: ['H100'] }],
    ['A100 or H100', { accelerators: ['A100', 'H100'] }],
    ['GPU memory 24 GB+', { gpuMemoryGb: { min: 24 } }],
    ['8+ cpus', { cpus: { min: 8 } }],
    ['memory 32 GiB+', { memoryGiB: { min: 32 } }],
    ['disk ..100 GiB', { diskGiB: { max: 100 } }],
    ['disk throughput 500 MiB/s, disk 6000 IOPS', { diskMibPerSecond: 500, diskIops: 6_000 }],
    ['shared memory 16 GiB', { shmGiB: 16 }],
    ['shared memory 0 GiB', { shmGiB: 0 }],
    ['8+ cpus', { accelerators: [], cpus: { min: 8 } }],
    [
      '2 GPUs, H100, GPU memory 16 GiB..40 GiB, 8..64 cpus, memory 32 GiB, disk 100 GiB+, shared memory 4 GiB',
      {
        gpus: { min: 2, max: 2 },
        accelerators: ['H100'],
        gpuMemoryGiB: { min: 16, max: 40 },
        cpus: { min: 8, max: 64 },
        memoryGiB: { min: 32, max: 32 },
        diskGiB: { min: 100 },
        shmGiB: 4,
      },
    ],
  ])('are "%s"', (words, request) => {
    expect(resourcesInWords(request)).toBe(words)
  })

  it('are missing without a request', () => {
    expect(resourcesInWords({})).toBeUndefined()
    expect(resourcesInWords({ accelerators: [] })).toBeUndefined()
  })
})
