import { describe, expect, it } from '@jest/globals'
import type { JobSpec } from '../../core/job/job'
import { HOUR_MS } from '../../core/time/time'
import { REQUIREMENTS } from '../../planner/plan/requirements'
import { offer, request, SPEC } from './wishes'

describe('a wish', () => {
  it('for a deadline has steps that grow with it, up to a year', () => {
    const hours = REQUIREMENTS.deadline!.limit!.values.map((ms) => ms / HOUR_MS)
    const upTo = (from: number, to: number, step: number) =>
      Array.from({ length: (to - from) / step }, (_, index) => from + step * (index + 1))
    expect(hours).toEqual([
      ...upTo(0, 4, 0.25),
      ...upTo(4, 12, 0.5),
      ...upTo(12, 48, 1),
      ...upTo(48, 168, 6),
      ...upTo(168, 366 * 24, 24),
    ])
  })

  it('for a resource leaves the others as they are', () => {
    const without = (code: 'memory' | 'accelerator', resources: JobSpec['resources']) =>
      REQUIREMENTS[code]!.without(request([], { spec: { ...SPEC, resources } })).spec
    const memoryGiB = { min: 32 }
    expect(without('memory', { gpus: { min: 2 }, memoryGiB }).resources).toEqual({ gpus: { min: 2 } })
    const plain = without('memory', { cpus: { min: 2 }, memoryGiB })
    expect(plain.resources).toEqual({ cpus: { min: 2 } })
    expect(plain).not.toHaveProperty('durationOn')
    expect(without('accelerator', { accelerators: ['V100'], memoryGiB })).toMatchObject({
      resources: { gpus: { min: 1 }, memoryGiB },
      durationOn: 'V100',
    })
  })

  it.each([
    ['cpus', 7, { cpus: { min: 8 } }, true],
    ['cpus', 8, { cpus: { min: 8 } }, false],
    ['cpus', 1, {}, false],
    ['gpus', 1, { gpus: { min: 2 } }, true],
    ['gpus', 2, { gpus: { min: 2 } }, false],
    ['gpus', 0, { accelerators: ['A100'] }, true],
    ['gpus', 1, { accelerators: ['A100'] }, false],
  ] as const)('for %s: %d make a job slower that asks for %j: %s', (code, count, resources, isSlower) => {
    const spec = { ...SPEC, resources: { ...resources } } as JobSpec
    const machine = offer({ shape: { ...offer().shape, [code]: count } })
    expect(REQUIREMENTS[code]!.isSlower!(machine, request([], { spec }))).toBe(isSlower)
  })
})
