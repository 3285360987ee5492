import { describe, expect, it } from '@jest/globals'
import { speedOf, type RelativeSpeed } from '../../../core/speed'
import { HOUR_MS } from '../../../core/time/time'
import { jobsInWords, speedInWords, unknownSpeedInWords, workOn, type Work } from '../../../planner/plan/work'
import { SPEC } from '../wishes'

const SPEED: RelativeSpeed = { factor: 0.264, low: 0.188, high: 0.371, basis: 'measured' }
const work = (speed: Partial<RelativeSpeed> = {}, changes: Partial<Work> = {}): Work => ({
  ms: 1,
  fastMs: 1,
  slowMs: 1,
  reference: 'A100',
  speed: { ...SPEED, ...speed },
  ...changes,
})

const UNKNOWN: Work = { ms: 1, fastMs: 1, slowMs: 1, reference: 'A100' }

describe('a speed in words', () => {
  it.each<[string, Work]>([
    ['about 0.26 times the speed of the A100 for work of any kind (0.19 to 0.37, measured)', work()],
    [
      'about 0.26 times the speed of the A100 for a transformer (0.19 to 0.37, from its data sheet)',
      work({ basis: 'derived' }, { family: 'transformer' }),
    ],
    [
      'about 2 times the speed of the A100 for memory-bound work (1 to 4, measured and measured on 3 of your jobs)',
      work({ factor: 2, low: 1, high: 4, jobs: 3 }, { family: 'memory-bound' }),
    ],
    [
      'about 0.5 times the speed of the A100 for training in fp32 (0.25 to 1, from its data sheet and measured on 1 of your jobs)',
      work({ factor: 0.5, low: 0.25, high: 1, basis: 'derived', jobs: 1 }, { family: 'fp32' }),
    ],
  ])('is %j', (words, given) => {
    expect(speedInWords(given)).toBe(words)
  })

  it('is nothing for the type that the duration refers to, and for a type of unknown speed', () => {
    expect(speedInWords(work({ factor: 1, low: 1, high: 1 }))).toBeUndefined()
    expect(speedInWords(UNKNOWN)).toBeUndefined()
  })

  it('counts jobs', () => {
    expect(jobsInWords(3)).toBe('3 of your jobs')
  })
})

describe('an unknown speed', () => {
  const shape = { cpus: 8, memoryGiB: 32, gpus: 1 }

  it('is a risk of a type, if a GPU trains', () => {
    const words = (accelerator: string | undefined, given: Work) =>
      unknownSpeedInWords({ shape: { ...shape, accelerator: accelerator ? accelerator : undefined } }, given)
    expect(words('X900', UNKNOWN)).toBe(
      'the training speed of X900 is unknown; the speed of the A100 is assumed',
    )
    expect(words(undefined, UNKNOWN)).toMatch(/^the training speed of its GPU is unknown/)
    expect(words('T4', work())).toBeUndefined()
    expect(words('T4', { ms: 1, fastMs: 1, slowMs: 1 })).toBeUndefined()
  })
})

describe('the work of a job', () => {
  const spec = { ...SPEC, resources: { gpus: { min: 1 } }, durationMs: 10 * HOUR_MS }
  const on = (accelerator: string, speedFactor?: number) =>
    workOn(
      {
        shape: {
          cpus: 8,
          memoryGiB: 32,
          gpus: 1,
          accelerator,
          speedFactor,
        },
      },
      { spec },
    )

  it('takes half the time at twice the speed, with its range', () => {
    const known = speedOf('T4', 'A100')!
    const hours = [known.factor, known.high, known.low].map((factor) => Math.round((10 * HOUR_MS) / factor))
    const { ms, fastMs, slowMs } = on('T4')
    expect([ms, fastMs, slowMs]).toEqual(hours)
    const twice = on('T4', 2)
    expect([twice.ms, twice.fastMs, twice.slowMs]).toEqual(
      [known.factor, known.high, known.low].map((factor) => Math.round((5 * HOUR_MS) / factor)),
    )
    expect(twice.speed!.factor).toBeCloseTo(2 * known.factor, 9)
  })

  it('takes half the stated time at twice an unknown speed', () => {
    expect(on('X900', 2)).toEqual({
      ms: 5 * HOUR_MS,
      fastMs: 5 * HOUR_MS,
      slowMs: 5 * HOUR_MS,
      reference: 'A100',
    })
    expect(on('X900').ms).toBe(10 * HOUR_MS)
  })
})
