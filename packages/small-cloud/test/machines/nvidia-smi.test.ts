import { describe, expect, it } from '@jest/globals'
import { nvidiaSmi, type SimulatedGpu } from '../../src/machines/nvidia-smi'
import { KINDS, sh, useMachines } from './machines'

const createWorld = useMachines()

function ask(gpus: SimulatedGpu[], ...words: string[]): string {
  return nvidiaSmi({ program: 'nvidia-smi', arguments: words, directory: '/' }, gpus).stdout
}

const TWO: SimulatedGpu[] = [
  { name: 'Tesla V100-SXM2-16GB', memoryMiB: 16_160 },
  { name: 'NVIDIA A10G', memoryMiB: 23_028, memoryUsedMiB: 2048, utilizationPercent: 93 },
]

describe('nvidia-smi', () => {
  it('has a header and units unless they are left out, and one GPU when one is asked for', () => {
    expect(ask(TWO, '--query-gpu', 'name,memory.free', '--format', 'csv', '-i', '1')).toBe(
      'name, memory.free [MiB]\nNVIDIA A10G, 20980 MiB\n',
    )
    expect(ask(TWO, '-L')).toMatch(/^GPU 0: Tesla.*\(UUID: GPU-[\da-f-]{36}\)\nGPU 1: .*\n$/)
    expect(() => ask(TWO, '--query-gpu=colour', '--format=csv')).toThrow('not a valid field')
    expect(() => ask(TWO)).toThrow('--query-gpu')
    expect(() => ask(TWO, '--query-gpu=name', '--format=csv', '-i', '7')).toThrow('No devices')
  })

  it.each(KINDS)(
    'is there on a machine of %s with GPUs only, and tells what they do now',
    async (enclosure) => {
      const world = createWorld()
      const gpus: SimulatedGpu[] = [{ name: 'NVIDIA L4', memoryMiB: 23_034 }]
      const [with_, without] = [world.create({ enclosure, gpus }), world.create({ enclosure })]
      await Promise.all([with_.boot(), without.boot()])
      const query = 'nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader'
      expect((await sh(with_, query)).stdout).toBe('0 %\n')
      gpus[0]!.utilizationPercent = 71
      expect((await sh(with_, query)).stdout).toBe('71 %\n')
      expect((await sh(without, 'command -v nvidia-smi')).exitCode).not.toBe(0)
    },
  )
})
