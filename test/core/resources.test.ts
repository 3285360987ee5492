import { describe, expect, it } from '@jest/globals'
import {
  formatBytes,
  formatRange,
  formatShape,
  isWithin,
  wantsGpu,
  type Range,
  type ResourceRequest,
} from '../../core/resources'

describe('a range', () => {
  it.each<[Range | undefined, number[]]>([
    [{ min: 2, max: 4 }, [2, 3, 4]],
    [{ min: 3 }, [3, 4, 5]],
    [{ max: 3 }, [1, 2, 3]],
    [{ min: 3, max: 3 }, [3]],
    [{}, [1, 2, 3, 4, 5]],
    [undefined, [1, 2, 3, 4, 5]],
  ])('%j holds %j of 1 to 5', (range, inside) => {
    expect([1, 2, 3, 4, 5].filter((value) => isWithin(value, range))).toEqual(inside)
  })

  it.each<[Range, string]>([
    [{ min: 24, max: 80 }, '24 GiB..80 GiB'],
    [{ min: 16 }, '16 GiB+'],
    [{ max: 8 }, '..8 GiB'],
    [{ min: 4, max: 4 }, '4 GiB'],
    [{}, '..'],
  ])('%j is shown as %s', (range, words) => {
    expect(formatRange(range, ' GiB')).toBe(words)
  })
})

describe('a request', () => {
  it.each<[boolean, ResourceRequest]>([
    [false, {}],
    [false, { cpus: { min: 8 }, memoryGiB: { min: 8 } }],
    [true, { gpus: { min: 1 } }],
    [false, { gpus: { min: 0 } }],
    [false, { gpus: { max: 4 } }],
    // What is said of the number counts most.
    [false, { gpus: { min: 0 }, accelerators: ['H100'] }],
    [true, { gpuMemoryGb: { min: 40 } }],
    [true, { gpuMemoryGiB: { min: 40 } }],
    [true, { accelerators: ['H100'] }],
    [false, { accelerators: [] }],
  ])('wants a GPU: %s for %j', (isWanted, request) => {
    expect(wantsGpu(request)).toBe(isWanted)
  })
})

describe('a shape', () => {
  it.each([
    [{ cpus: 1, memoryGiB: 1, gpus: 0 }, '1 cpu, 1 GiB'],
    [{ cpus: 8, memoryGiB: 61.04, gpus: 0 }, '8 cpus, 61 GiB'],
    [{ cpus: 0.5, memoryGiB: 15.25, gpus: 1 }, '1x GPU, 0.5 cpus, 15.3 GiB'],
    [
      { cpus: 96, memoryGiB: 1152, gpus: 8, accelerator: 'A100', gpuMemoryGiB: 39.59 },
      '8x A100 39.6 GiB, 96 cpus, 1152 GiB',
    ],
  ])('%j is shown as %s', (shape, words) => {
    expect(formatShape(shape)).toBe(words)
  })
})

it.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1 kB'],
  [1_540_000, '1.5 MB'],
  [5e9, '5 GB'],
  [2.5e12, '2.5 TB'],
  [3e15, '3000 TB'],
])('%d bytes are shown as %s', (count, words) => {
  expect(formatBytes(count)).toBe(words)
})
