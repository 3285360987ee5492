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
      const ranges = MEASURED.map((name) => speedOf(name, 'A100-PCIe', { family })!)
      return ranges.reduce((sum, { low, high }) => sum + Math.log(high / low), 0) / ranges.length
    }
    for (const family of WORK_FAMILIES) {
      // Speech and recurrent models differ as widely as all models.
      if (family !== 'recurrent') expect([family, widthOf(family) < widthOf()]).toEqual([family, true])
    }
    // Of an fp32 training, a V100 without TF32 is far behind an A100; of a convolution in fp16 it is not.
    expect(speedOf('V100', 'A100', { family: 'fp32' })!.high).toBeLessThan(
      speedOf('V100', 'A100', { family: 'convolution' })!.factor,
    )
  })

  // Lambda's published throughput, one GPU, mixed precision: samples a second on each, for one model of a family.
  it.each([
    ['convolution', 'V100', 833, 1396],
    ['transformer', 'H100', 812, 368],
    ['transformer', 'RTX4090', 93, 117],
    ['recommendation', 'A10', 15_343_208, 37_012_517],
  ] as const)('of a %s holds what was measured on %s', (family, name, own, reference) => {
    const { low, high } = speedOf(name, 'A100-PCIe', { family })!
    expect(own / reference).toBeGreaterThan(low)
    expect(own / reference).toBeLessThan(high)
  })

  it('is derived where one of the types was not measured, with a wider range', () => {
    const [t4, v100] = ['T4', 'V100'].map((name) => speedOf(name, 'A100', { family: 'transformer' })!)
    expect([t4!.basis, v100!.basis]).toEqual(['derived', 'measured'])
    expect(t4!.high / t4!.low).toBeGreaterThan(v100!.high / v100!.low)
    expect(speedOf('V100', 'T4')!.basis).toBe('derived')
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

describe('the speed that jobs of a deployment measured', () => {
  const V100_OF_A100 = speedOf('V100', 'A100')!
  const measured = (factor: number, jobs: number) => [{ accelerator: 'V100', than: 'A100', factor, jobs }]
  const width = ({ low, high }: { low: number; high: number }): number => Math.log(high / low)

  it('moves the factor towards it and narrows the range, the more jobs there are', () => {
    const after = [1, 3, 10].map((jobs) => speedOf('V100', 'A100', { own: measured(0.3, jobs) })!)
    const all = [V100_OF_A100, ...after]
    expect(all.map(({ factor }) => factor)).toEqual(all.map(({ factor }) => factor).sort((a, b) => b - a))
    expect(all.map(width)).toEqual(all.map(width).sort((a, b) => b - a))
    expect(after.at(-1)!.factor).toBeCloseTo(0.3, 1)
    expect(after.map(({ jobs }) => jobs)).toEqual([1, 3, 10])
  })

  it('counts as much as the table for one job, and three times as much for three', () => {
    const table = V100_OF_A100.factor
    const after = (jobs: number): number => speedOf('V100', 'A100', { own: measured(0.4, jobs) })!.factor
    expect(after(1)).toBeCloseTo(Math.sqrt(table * 0.4), 9)
    expect(after(3)).toBeCloseTo(table ** 0.25 * 0.4 ** 0.75, 9)
  })

  it('never claims that the next job is like the measured ones', () => {
    const many = speedOf('V100', 'A100', { own: measured(0.3, 1_000_000) })!
    expect(width(many)).toBeCloseTo(width(V100_OF_A100) * Math.SQRT1_2, 2)
  })

  it('is the same in whichever direction it is written', () => {
    const own = [{ accelerator: 'A100', than: 'V100', factor: 1 / 0.3, jobs: 2 }]
    const [there, back] = [
      speedOf('V100', 'A100', { own })!,
      speedOf('V100', 'A100', { own: measured(0.3, 2) })!,
    ]
    expect(there.factor).toBeCloseTo(back.factor, 9)
    expect(width(there)).toBeCloseTo(width(back), 9)
    expect([there.jobs, back.jobs]).toEqual([2, 2])
  })

  it('says something of other types, which were compared with one of these', () => {
    const own = measured(0.3, 5)
    expect(speedOf('T4', 'V100', { own })!.factor).toBeGreaterThan(speedOf('T4', 'V100')!.factor)
    const other = speedOf('V100', 'T4', { own })!
    expect(width(other)).toBeLessThan(width(speedOf('V100', 'T4')!))
    expect(other.jobs).toBe(5)
    expect(speedOf('L4', 'H100', { own })).toEqual(speedOf('L4', 'H100'))
  })

  it('moves it only so far where it is beyond all measure, as a program may report any steps', () => {
    const [high, low] = [1e9, 1e-9].map(
      (factor) => speedOf('V100', 'A100', { own: measured(factor, 1) })!.factor,
    )
    expect(high).toBeLessThan(2)
    expect(high! * low!).toBeCloseTo(V100_OF_A100.factor ** 2, 9)
    expect(speedOf('V100', 'A100', { own: [{ ...measured(0.3, 1)[0]!, than: 'X900' }] })!.factor).toBe(
      V100_OF_A100.factor,
    )
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
