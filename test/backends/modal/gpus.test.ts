import { describe, expect, it } from '@jest/globals'
import { gpuRequest, mayBeLarger, MODAL_GPUS } from '../../../backends/modal/gpus'
import type { ResourceRequest } from '../../../core/resources'

const requested = (name: string, request: ResourceRequest): string => {
  const gpu = MODAL_GPUS.find((one) => one.name === name)!
  return gpuRequest(gpu, 8, mayBeLarger(gpu, request))
}

describe('a GPU at Modal', () => {
  it.each<[string, ResourceRequest, string]>([
    ['H100', {}, 'H100:8'],
    ['H100', { accelerators: ['H100'] }, 'H100!:8'],
    ['H100', { accelerators: ['H100', 'H200'] }, 'H100:8'],
    ['H100', { accelerators: ['H100', 'A100'] }, 'H100!:8'],
    ['H100', { gpuMemoryGb: { max: 80 } }, 'H100!:8'],
    // A B300 needs CUDA 13, so only a job that names it gets one.
    ['B200', {}, 'B200:8'],
    ['B200', { accelerators: ['B200'] }, 'B200:8'],
    ['B200', { accelerators: ['B300', 'B200'] }, 'B200+:8'],
    ['B200', { accelerators: ['B300', 'B200'], gpuMemoryGb: { max: 180 } }, 'B200:8'],
    ['RTX-PRO-6000', { accelerators: ['RTXPRO6000'] }, 'RTX-PRO-6000:8'],
  ])('%s is requested for %j as %s', (name, request, words) => {
    expect(requested(name, request)).toBe(words)
  })
})
