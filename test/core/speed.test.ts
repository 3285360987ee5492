import { describe, expect, it } from '@jest/globals'
import { ACCELERATOR_SPEEDS } from '../../core/accelerator-speeds'
import { ACCELERATORS, isAccelerator } from '../../core/accelerators'
import { SPEED_REFERENCE, speedOf } from '../../core/speed'

describe('the speed of an accelerator', () => {
  it('is known for every type that Crucible names, and for no other', () => {
    expect(Object.keys(ACCELERATOR_SPEEDS).sort()).toEqual(ACCELERATORS.map(({ name }) => name).sort())
    expect(speedOf('X900', SPEED_REFERENCE)).toBeUndefined()
    expect(speedOf(SPEED_REFERENCE, 'X900')).toBeUndefined()
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
