import { describe, expect, it } from '@jest/globals'
import type { Capabilities } from '../../../core/capabilities'
import type { JobSpec } from '../../../core/job/job'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { partsOf, type Parts } from '../../../planner/forecast/parts'
import { fillFrom, isSame } from '../../../planner/forecast/range'
import type { PlanRequest } from '../../../planner/plan/request'
import { CAPABILITIES, NOW_MS, offer, request, SPEC } from '../wishes'

interface Given extends Omit<Partial<PlanRequest>, 'spec'> {
  spec?: Partial<JobSpec>
  offer?: Partial<Offer>
  capabilities?: Partial<Capabilities>
  isShaky?: boolean
}

function partsFor({
  spec = {},
  offer: changes = {},
  capabilities = {},
  isShaky = false,
  ...asked
}: Given): Parts {
  const one = offer(changes)
  const all = request([one], { ...asked, spec: { ...SPEC, ...spec } })
  return partsOf(one, { ...CAPABILITIES, ...capabilities }, { request: all, isShaky })
}

const GPU = { resources: { gpus: { min: 1 } }, durationMs: 10 * HOUR_MS, durationOn: 'A100' }
const on = (accelerator: string): Partial<Offer> => ({
  shape: { cpus: 8, memoryGiB: 60, gpus: 1, accelerator, gpuMemoryGiB: 16 },
})
const SHAPE = { cpus: 8, memoryGiB: 60, gpus: 0 }
const MEBIBYTES_100 = 100 * 2 ** 20
const inputs = (...sources: string[]) => sources.map((source) => ({ source, path: 'data' }))
const spot = { capacityType: 'spot' as const }
const day = 24 * HOUR_MS
const aged = (kind: 'static' | 'live', ms: number): Partial<Offer> => ({
  priceSource: { kind, observedAtMs: NOW_MS - ms },
})
const way = { storeRegion: 'x', upMicroUsdPerGb: 0, downMicroUsdPerGb: 0, bytesPerSecond: 1e6 }
const saved = { checkpoint: { directory: 'c', sizeBytes: 1e9 } }

const BOOT = { lowMs: 1_000, middleMs: 2_000, highMs: 3_000, source: 'x' }

describe('a part of a forecast', () => {
  it.each<[string, keyof Parts, Given, number[]]>([
    ['waits for the answer to a launch', 'wait', {}, [2_000, 5_000, 60_000]],
    [
      'waits in the queue of a provider',
      'wait',
      { capabilities: { queues: true } },
      [1_000, 20_000, 900_000],
    ],
    ['pulls an image', 'image', { spec: { image: 'pytorch' } }, [20_000, 120_000, 480_000]],
    ['pulls none that the job does not name', 'image', {}, [0, 0, 0]],
    [
      'pulls none that its provider runs',
      'image',
      { spec: { image: 'pytorch' }, capabilities: { imageRunner: 'provider' } },
      [0, 0, 0],
    ],
    [
      'boots a machine with much memory for longer',
      'boot',
      {
        capabilities: { boot: { ...BOOT, perGiB: { aboveGiB: 256, lowMs: 1, middleMs: 2, highMs: 3 } } },
        offer: { shape: { ...SHAPE, memoryGiB: 1_256 } },
      },
      [2_000, 4_000, 6_000],
    ],
    [
      'boots a machine with little memory as fast as any',
      'boot',
      { capabilities: { boot: { ...BOOT, perGiB: { aboveGiB: 256, lowMs: 1, middleMs: 2, highMs: 3 } } } },
      [1_000, 2_000, 3_000],
    ],
    ['sets up', 'setup', { spec: { setup: 'pip install x' } }, [5_000, 60_000, 480_000]],
    ['does not set up without a command', 'setup', {}, [0, 0, 0]],
    ['fetches nothing for a job without code, data or a checkpoint', 'fetch', {}, [0, 0, 0]],
    // 100 MiB a second are assumed; the rate may be 2.5 times as high or as low.
    ['fetches its code', 'fetch', { bundleBytes: MEBIBYTES_100 }, [400, 1_000, 2_500]],
    [
      'fetches its code as fast as its disk',
      'fetch',
      { bundleBytes: 2.5 * MEBIBYTES_100, offer: { shape: { ...SHAPE, diskMibPerSecond: 125 } } },
      [800, 2_000, 5_000],
    ],
    [
      'fetches its code as fast as a store, onto a disk that is faster',
      'fetch',
      { bundleBytes: 16 * MEBIBYTES_100, offer: { shape: { ...SHAPE, diskMibPerSecond: 1_000 } } },
      [800, 2_000, 5_000],
    ],
    [
      'restores a checkpoint as fast as its disk',
      'restore',
      {
        spec: {
          ...saved,
          isInterruptible: true,
          checkpoint: { directory: 'c', sizeBytes: 5 * MEBIBYTES_100 },
        },
        offer: { shape: { ...SHAPE, diskMibPerSecond: 250 } },
      },
      [800, 2_000, 5_000],
    ],
    [
      'fetches its code from another Region',
      'fetch',
      { bundleBytes: 1e6, offer: { transfer: way } },
      [400, 1_000, 2_500],
    ],
    [
      'fetches inputs of unknown size',
      'fetch',
      { spec: { inputs: inputs('s3://a/b') } },
      [5_000, 60_000, 1_200_000],
    ],
    [
      'fetches inputs of unknown size in addition to known ones',
      'fetch',
      {
        spec: { inputs: inputs('s3://a/b', 's3://a/c') },
        inputSizes: [{ source: 's3://a/b', sizeBytes: 1 }],
      },
      [5_000, 60_000, 1_200_000],
    ],
    [
      'fetches code and inputs one after the other',
      'fetch',
      {
        spec: { inputs: inputs('s3://a/b', 's3://a/c') },
        bundleBytes: MEBIBYTES_100,
        inputSizes: [
          { source: 's3://a/x', sizeBytes: 1e12 },
          { source: 's3://a/c', sizeBytes: 2 * MEBIBYTES_100 },
          { source: 's3://a/b', sizeBytes: 4 * MEBIBYTES_100 },
        ],
      },
      [2_800, 7_000, 17_500],
    ],
    [
      'fetches inputs from another Region at the speed of its route',
      'fetch',
      {
        spec: { inputs: inputs('s3://a/b', 's3://a/c') },
        offer: { region: 'y', transfer: way },
        inputSizes: [
          { source: 's3://a/b', sizeBytes: 3e6, region: 'x' },
          { source: 's3://a/c', sizeBytes: MEBIBYTES_100, region: 'y' },
        ],
      },
      [1_600, 4_000, 10_000],
    ],
    [
      'does not fetch files of its own machine',
      'fetch',
      { spec: { inputs: inputs('file:///data') } },
      [0, 0, 0],
    ],
    ['restores checkpoints of unknown size', 'restore', {}, [1_000, 10_000, 180_000]],
    [
      'restores checkpoints of known size',
      'restore',
      { spec: { checkpoint: { directory: 'c', sizeBytes: MEBIBYTES_100 } } },
      [400, 1_000, 2_500],
    ],
    [
      'restores the older ones that the program still kept, too',
      'restore',
      {
        spec: { checkpoint: { directory: 'c' } },
        savedBefore: { totalBytes: MEBIBYTES_100, olderBytes: 9 * MEBIBYTES_100 },
      },
      [4_000, 10_000, 25_000],
    ],
    [
      'restores them from another Region',
      'restore',
      { spec: saved, offer: { transfer: { ...way, bytesPerSecond: 1e8 } } },
      [4_000, 10_000, 25_000],
    ],
    ['restores none of a job that saves none', 'restore', { spec: { isInterruptible: false } }, [0, 0, 0]],
    [
      'restores those of a job that is not interruptible, but saves',
      'restore',
      { spec: { isInterruptible: false, checkpoint: { directory: 'c' } } },
      [1_000, 10_000, 180_000],
    ],
    // At 4, 1 and 0.2 GB a second.
    ['writes checkpoints to a disk', 'saving', { spec: saved }, [250, 1_000, 5_000]],
    [
      'writes them as fast as was measured',
      'saving',
      { spec: saved, savedBefore: { totalBytes: 1, saveMs: 3_000 } },
      [2_000, 3_000, 4_500],
    ],
    [
      'writes them as fast as assumed where no time was measured',
      'saving',
      { spec: saved, savedBefore: { totalBytes: 1, saveMs: 0 } },
      [250, 1_000, 5_000],
    ],
    ['writes none of unknown size', 'saving', {}, [0, 0, 0]],
    [
      'writes none of a job that saves none',
      'saving',
      { spec: { isInterruptible: false, checkpoint: { sizeBytes: 1e9 } } },
      [0, 0, 0],
    ],
    ['stops', 'stop', {}, [2_000, 10_000, 90_000]],
    [
      'stops after the last upload',
      'stop',
      { spec: { checkpoint: { directory: 'c', sizeBytes: MEBIBYTES_100 } } },
      [2_400, 11_000, 92_500],
    ],
    [
      'stops after the last upload, which is as fast as its disk',
      'stop',
      {
        spec: { checkpoint: { directory: 'c', sizeBytes: 5 * MEBIBYTES_100 } },
        offer: { shape: { ...SHAPE, diskMibPerSecond: 500 } },
      },
      [2_400, 11_000, 92_500],
    ],
    [
      'stops after the last upload to another Region',
      'stop',
      { spec: saved, offer: { transfer: { ...way, bytesPerSecond: 1e8 } } },
      [6_000, 20_000, 115_000],
    ],
    ['is not interrupted on demand', 'rate', { offer: { interruptionsPerHour: 3 } }, [0, 0, 0]],
    ['is interrupted on spot capacity', 'rate', { offer: spot }, [0.05, 0.2, 1.4]],
    [
      'is interrupted as its backend says',
      'rate',
      { offer: { ...spot, interruptionsPerHour: 3 } },
      [1.5, 3, 6],
    ],
    [
      'is interrupted more often where it lost a machine',
      'shakyRate',
      { offer: spot, isShaky: true },
      [0.5, 1, 1.6],
    ],
    ['is interrupted as usual elsewhere', 'shakyRate', { offer: spot }, [0.05, 0.2, 1.4]],
    [
      'is interrupted no less often where it lost a machine',
      'shakyRate',
      { offer: { ...spot, interruptionsPerHour: 3 }, isShaky: true },
      [1.5, 3, 6],
    ],
    [
      'keeps the range of its backend at the same rate',
      'shakyRate',
      { offer: { ...spot, interruptionsPerHour: 1 }, isShaky: true },
      [0.5, 1, 2],
    ],
    [
      'has the stated duration within a quarter',
      'duration',
      { spec: { durationMs: HOUR_MS } },
      [0.8, 1, 1.25],
    ],
    ['has an assumed duration within a factor of three', 'duration', {}, [1 / Math.sqrt(3), 1, Math.sqrt(3)]],
    ['has no speed without a GPU that trains', 'speed', {}, [1, 1, 1]],
    ['has a wide speed where none is known', 'speed', { spec: GPU, offer: on('X900') }, [0.4, 1, 2.5]],
    ['has no speed when no work is left', 'speed', { spec: GPU, offer: on('T4'), leftShare: 0 }, [1, 1, 1]],
    ['has a constant price', 'price', {}, [1, 1, 1]],
    [
      'has a constant price on demand, whatever it may become',
      'price',
      { offer: { priceMaxMicroUsdPerHour: microUsd(2) } },
      [1, 1, 1],
    ],
    [
      'has a spot price that moves',
      'price',
      { offer: { ...spot, priceMaxMicroUsdPerHour: microUsd(2) } },
      [0.98, 1, 1.02],
    ],
    ['has a spot price that stays if it has no other maximum', 'price', { offer: spot }, [1, 1, 1]],
    ['has a price of a month ago', 'price', { offer: aged('static', 30 * day) }, [1, 1, 1]],
    ['has an older price', 'price', { offer: aged('static', 30 * day + 1) }, [0.75, 1, 1.3]],
    ['has a live price, of any age', 'price', { offer: aged('live', 60 * day) }, [1, 1, 1]],
    ['has charges of the store', 'store', {}, [0.6, 1, 2]],
  ])('%s: %s', (_, part, given, figures) => {
    const range = partsFor(given)[part]
    expect(range).toMatchObject({
      low: expect.closeTo(figures[0]!, 6),
      middle: expect.closeTo(figures[1]!, 6),
      high: expect.closeTo(figures[2]!, 6),
    })
  })

  it('is 1 in its middle for a known speed, with the fast and slow end of its type', () => {
    const { speed, work, workMs } = partsFor({ spec: GPU, offer: on('T4') })
    expect(speed).toMatchObject({ low: work.fastMs / work.ms, middle: 1, high: work.slowMs / work.ms })
    expect(workMs).toBe(work.ms)
    expect(speed.source).toBe('data sheets')
    expect(partsFor({ spec: GPU, offer: on('V100') }).speed.source).toBe('published measurements')
    const ownRatios = [{ accelerator: 'V100', than: 'A100', factor: 0.4, jobs: 3 }]
    expect(partsFor({ spec: GPU, offer: on('V100'), ownRatios }).speed.source).toBe(
      'published measurements and 3 of your jobs',
    )
  })

  it('that a job does not have says so', () => {
    const { image, setup, fetch } = partsFor({})
    expect([image, setup, fetch].map(({ source }) => source)).toEqual([
      'not needed',
      'not needed',
      'not needed',
    ])
  })

  it('restores first only if a checkpoint is there, and the attempt is not the first', () => {
    const savedBefore = { totalBytes: 1e9 }
    expect(
      [{ savedBefore }, { savedBefore, isFirst: true }, { isFirst: false }].map(
        (given) => partsFor(given).isResumed,
      ),
    ).toEqual([true, false, false])
  })

  it('saves as often as stated, or as assumed, or never', () => {
    const every = (spec: Partial<JobSpec>): number => partsFor({ spec }).everyMs
    expect(every({})).toBe(20 * MINUTE_MS)
    expect(every({ checkpoint: { everyMs: MINUTE_MS } })).toBe(MINUTE_MS)
    expect(every({ isInterruptible: false, checkpoint: { everyMs: MINUTE_MS } })).toBe(Infinity)
  })

  it('has the boot of its backend, as one range for all offers', () => {
    const boot = { lowMs: 1 * SECOND_MS, middleMs: 2 * SECOND_MS, highMs: 3 * SECOND_MS, source: 'a test' }
    const [one, other] = [{}, { offer: on('T4') }].map(
      (given) => partsFor({ ...given, capabilities: { boot } }).boot,
    )
    expect(one).toEqual({ low: 1_000, middle: 2_000, high: 3_000, source: 'a test' })
    expect(other).toBe(one)
  })
})

describe('a range', () => {
  const range = { low: 1, middle: 4, high: 8, source: 'a test' }

  it('has its ends at the 5 % and 95 % quantiles, and the same form on both sides of the middle', () => {
    const into = new Float64Array(5)
    fillFrom(range, new Float64Array([-1.6448536, 0, 1.6448536, -1.6448536 / 2, 1.6448536 / 2]), into)
    expect([...into]).toEqual([1, 4, 8, 2, Math.sqrt(32)].map((each) => expect.closeTo(each, 6)))
  })

  it('is the same as another with the same three figures, whatever their sources', () => {
    expect(isSame(range, { ...range, source: 'another' })).toBe(true)
    for (const other of [{ low: 2 }, { middle: 5 }, { high: 9 }])
      expect(isSame(range, { ...range, ...other })).toBe(false)
  })
})
