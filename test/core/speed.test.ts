import { describe, expect, it } from '@jest/globals'
import { ACCELERATOR_SPEEDS } from '../../core/accelerator-speeds'
import { ACCELERATORS, isAccelerator } from '../../core/accelerators'
import { SPEED_REFERENCE, speedOf, WORK_FAMILIES, type WorkFamily } from '../../core/speed'

const MEASURED = ['V100', 'A10', 'RTX4090', 'RTXA6000', 'A100-80GB', 'H100']

describe('the speed of an accelerator', () => {
  it('is known in each family for every type that Crucible names, and for no other', () => {
    for (const speeds of Object.values(ACCELERATOR_SPEEDS))
      expect(Object.keys(speeds).sort()).toEqual(ACCELERATORS.map(({ name }) => name).sort())
    expect(speedOf('X900', SPEED_REFERENCE)).toBeUndefined()
    expect(speedOf(SPEED_REFERENCE, 'X900')).toBeUndefined()
  })

  it('differs by family, each with a narrower range than that of all together', () => {
    const widthOf = (family?: WorkFamily): number => {
      const ranges = MEASURED.map((name) => speedOf(name, 'A100-PCIe', family)!)
      return ranges.reduce((sum, { low, high }) => sum + Math.log(high / low), 0) / ranges.length
    }
    for (const family of WORK_FAMILIES) {
      // Speech and recurrent models differ as widely as all models.
      if (family !== 'recurrent') expect([family, widthOf(family) < widthOf()]).toEqual([family, true])
    }
    // Of an fp32 training, a V100 without TF32 is far behind an A100; of a convolution in fp16 it is not.
    expect(speedOf('V100', 'A100', 'fp32')!.high).toBeLessThan(speedOf('V100', 'A100', 'convolution')!.factor)
  })

  // Lambda's published throughput, one GPU, mixed precision: samples a second on each, for one model of a family.
  it.each([
    ['convolution', 'V100', 833, 1396],
    ['transformer', 'H100', 812, 368],
    ['transformer', 'RTX4090', 93, 117],
    ['recommendation', 'A10', 15_343_208, 37_012_517],
  ] as const)('of a %s holds what was measured on %s', (family, name, own, reference) => {
    const { low, high } = speedOf(name, 'A100-PCIe', family)!
    expect(own / reference).toBeGreaterThan(low)
    expect(own / reference).toBeLessThan(high)
  })

  it('is derived where one of the types was not measured, with a wider range', () => {
    const [t4, v100] = ['T4', 'V100'].map((name) => speedOf(name, 'A100', 'transformer')!)
    expect([t4!.basis, v100!.basis]).toEqual(['derived', 'measured'])
    expect(t4!.high / t4!.low).toBeGreaterThan(v100!.high / v100!.low)
  })

  it('relative to itself is exactly one, under any of its names', () => {
    expect(speedOf('Tesla V100', 'v100')).toMatchObject({ factor: 1, low: 1, high: 1 })
  })

  it('relative to a slower one is the inverse of the other way round, range included', () => {
    const [there, back] = [speedOf('H100', 'V100')!, speedOf('V100', 'H100')!]
    expect(there.factor * back.factor).toBeCloseTo(1, 9)
    expect(there.low * back.high).toBeCloseTo(1, 9)
    expect(there.low).toBeLessThan(there.factor)
  })

  it('on SXM is higher than that of the same chip on PCIe', () => {
    for (const name of ['A100-80GB', 'H100']) expect(speedOf(name, `${name}-PCIe`)!.factor).toBeGreaterThan(1)
  })
})

describe('a variant of a type', () => {
  it('is what a job asks for by the name of the type, and not the other way round', () => {
    expect(isAccelerator('H100-PCIe', 'H100')).toBe(true)
    expect(isAccelerator('NVIDIA H100 PCIe', 'h100')).toBe(true)
    expect(isAccelerator('H100', 'H100-PCIe')).toBe(false)
    expect(isAccelerator('A100-80GB-PCIe', 'A100')).toBe(false)
    expect(isAccelerator('X900', 'X900')).toBe(true)
  })
})
