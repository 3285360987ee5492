import { describe, expect, it } from '@jest/globals'
import type { JobSpec } from '../../../core/job/job'
import {
  aheadOf,
  inOrder,
  lineInWords,
  poolOf,
  reservationOfWish,
  wishNamed,
  type Waiter,
} from '../../../core/job/waiting'

const waiter = (jobId: string, sinceMs: number, wish = 'w'): Waiter => ({
  jobId,
  sinceMs,
  wish,
  backends: [],
})
const ids = (waiters: readonly Waiter[]): string[] => waiters.map(({ jobId }) => jobId)

describe('the line of jobs that wait', () => {
  it('has the oldest first, and jobs of one age by their ids', () => {
    const waiters = [waiter('c', 2), waiter('b', 2), waiter('d', 1), waiter('a', 3)]
    expect(ids(inOrder(waiters))).toEqual(['d', 'b', 'c', 'a'])
  })

  it('has only older jobs of the same wish ahead of a job, and never the job itself', () => {
    const self = waiter('m', 5)
    const waiters = [
      self,
      waiter('n', 5),
      waiter('l', 5),
      waiter('z', 4),
      waiter('a', 6),
      waiter('b', 1, 'x'),
    ]
    expect(ids(aheadOf(self, waiters))).toEqual(['z', 'l'])
  })
})

describe('what a job waits for', () => {
  it.each<[string, Partial<Pick<JobSpec, 'backends' | 'resources'>>]>([
    ['any backend', {}],
    ['ec2', { backends: [{ backend: 'ec2' }] }],
    ['ec2:spot or local', { backends: [{ backend: 'ec2', capacityType: 'spot' }, { backend: 'local' }] }],
    ['any backend GPU', { resources: { gpus: { min: 1 } } }],
    ['any backend 2x GPU', { resources: { gpus: { min: 2 } } }],
    ['any backend GPU', { resources: { gpuMemoryGb: { min: 40 } } }],
    ['any backend 8x A100 or H100', { resources: { gpus: { min: 8 }, accelerators: ['A100', 'H100'] } }],
  ])('is %s for %j', (words, spec) => {
    expect(poolOf({ backends: [], resources: {}, ...spec })).toBe(words)
  })

  it('is reported with its place in the line', () => {
    expect(lineInWords({ position: 3, pool: 'ec2:spot A10G' })).toBe('waiting, 3rd for ec2:spot A10G')
    const ordinal = (position: number): string => / (\w+) for /.exec(lineInWords({ position, pool: '' }))![1]!
    expect([1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 101, 111, 112].map(ordinal)).toEqual([
      '1st',
      '2nd',
      '3rd',
      '4th',
      '10th',
      '11th',
      '12th',
      '13th',
      '21st',
      '22nd',
      '101st',
      '111th',
      '112th',
    ])
  })
})

it('a wish shows the reservation that its jobs name, if they name one', () => {
  expect(wishNamed('d1', undefined)).toBe('d1')
  expect([undefined, 'res-1'].map((name) => reservationOfWish(wishNamed('d1', name)))).toEqual([
    undefined,
    'res-1',
  ])
})
