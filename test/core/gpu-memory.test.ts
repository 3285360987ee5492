import { describe, expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ACCELERATORS } from '../../core/accelerators'
import { fieldsOf } from '../../client/job/file'
import { fitsGpuMemory, formatGpuMemory, gpuMemoryInWords, reachesGpuMemory } from '../../core/gpu-memory'
import { parseLabelledRange } from '../../intake/units'
import { shapeOf } from '../../backends/ec2/market/shapes'
import { SPEC } from '../support/spec'

const request = (text: string) => {
  const { gb, gib } = parseLabelledRange(text)
  return { gpuMemoryGb: gb ? gb : undefined, gpuMemoryGiB: gib ? gib : undefined }
}

/**
 * GpuInfo of EC2's DescribeInstanceTypes, one type of each GPU family, as the tables of moto 5.2.5 carry it (p3.2xlarge, no longer
 * in them: EC2's page of types).
 */
const EC2_GPUS: readonly [type: string, name: string, memoryMiB: number, label: string][] = [
  ['g4dn.xlarge', 'T4', 16384, 'T4'],
  ['p3.2xlarge', 'V100', 16384, 'V100'],
  ['g5.xlarge', 'A10G', 22888, 'A10G'],
  ['g6.xlarge', 'L4', 22888, 'L4'],
  ['gr6.4xlarge', 'L4', 22888, 'L4'],
  ['p3dn.24xlarge', 'V100', 32768, 'V100-32GB'],
  ['g6e.xlarge', 'L40S', 45776, 'L40S'],
  ['p4d.24xlarge', 'A100', 40960, 'A100'],
  ['p4de.24xlarge', 'A100', 81920, 'A100-80GB'],
  ['p5.48xlarge', 'H100', 81920, 'H100'],
  ['g7e.2xlarge', 'RTX PRO Server 6000', 98304, 'RTXPRO6000'],
  ['p5en.48xlarge', 'H200', 144384, 'H200'],
  ['p6-b200.48xlarge', 'B200', 183359, 'B200'],
  ['p6-b300.48xlarge', 'B300', 275040, 'B300'],
  ['p6e-gb200.36xlarge', 'GB200', 189440, 'GB200'],
  ['p6e-gb300.36xlarge', 'GB300', 284672, 'GB300'],
]

const cards = EC2_GPUS.map(([type, name, memoryMiB]) =>
  shapeOf(
    {
      name: type,
      cpus: 4,
      memoryMiB: 16384,
      architectures: ['x86_64'],
      gpus: [{ name, manufacturer: 'NVIDIA', count: 1, memoryMiB, part: 1 }],
    } as unknown as Parameters<typeof shapeOf>[0],
    0,
  ),
)
const typesFor = (text: string): string[] =>
  EC2_GPUS.filter((_, at) => fitsGpuMemory(cards[at]!, request(text))).map(([type]) => type)

describe('the memory of a GPU', () => {
  it.each([
    ['16GB', ['g4dn.xlarge', 'p3.2xlarge']],
    ['24GB', ['g5.xlarge', 'g6.xlarge', 'gr6.4xlarge']],
    ['32GB', ['p3dn.24xlarge']],
    ['40GB', ['p4d.24xlarge']],
    ['48GB', ['g6e.xlarge']],
    ['80GB', ['p4de.24xlarge', 'p5.48xlarge']],
    ['96GB', ['g7e.2xlarge']],
    ['141GB', ['p5en.48xlarge']],
    ['180GB', ['p6-b200.48xlarge']],
    ['192GB', []],
    ['268GB', ['p6-b300.48xlarge']],
  ])('of exactly %s on the label is found on EC2 as %j', (label, types) => {
    expect(typesFor(`${label}..${label}`)).toEqual(types)
  })

  it.each([16, 24, 32, 40, 48, 80, 96, 141, 180, 192])(
    'of %d GB or more is found on every larger card of EC2',
    (gb) => {
      const labels = EC2_GPUS.map(([, , , name]) => ACCELERATORS.find((one) => one.name === name)!.memoryGb)
      expect(typesFor(`${gb}GB`)).toEqual(EC2_GPUS.filter((_, at) => labels[at]! >= gb).map(([type]) => type))
    },
  )

  it('is matched by the label for every card that is known, whatever the driver takes of it', () => {
    for (const { name, memoryGb } of ACCELERATORS) {
      for (const share of [0.92, 0.931, 1]) {
        const card = { accelerator: name, gpuMemoryGiB: memoryGb * share }
        expect([name, share, fitsGpuMemory(card, request(`${memoryGb}GB..${memoryGb}GB`))]).toEqual([
          name,
          share,
          true,
        ])
        expect(fitsGpuMemory(card, request(`${memoryGb + 1}GB`))).toBe(false)
        expect(fitsGpuMemory(card, request(`..${memoryGb - 1}GB`))).toBe(false)
      }
    }
  })

  it.each([
    [23028, '24GB', true],
    [22528, '24GB', false],
    [196592, '192GB..192GB', true],
    [97871, '96GB..96GB', true],
    [46068, '48GB', true],
    [46068, '..47GB', true],
    [46068, '..44GB', false],
  ])('of a card that is not known and reports %d MiB, asked for %s: %s', (mib, text, isFit) => {
    expect(fitsGpuMemory({ accelerator: 'Some New Card', gpuMemoryGiB: mib / 1024 }, request(text))).toBe(
      isFit,
    )
  })

  it('of a part of a card is what the part reports', () => {
    const share = { accelerator: 'L4', gpuMemoryGiB: 11444 / 1024 }
    expect(fitsGpuMemory(share, request('24GB'))).toBe(false)
    expect(fitsGpuMemory(share, request('12GB'))).toBe(true)
  })

  it('in GiB is compared with what is reported, on known cards too', () => {
    const card = { accelerator: 'A10G', gpuMemoryGiB: 22888 / 1024 }
    expect(fitsGpuMemory(card, request('24GiB'))).toBe(false)
    expect(fitsGpuMemory(card, request('22GiB'))).toBe(true)
    expect(fitsGpuMemory(card, request('24GB..23GiB'))).toBe(true)
  })

  it('may be more where only enough is wanted', () => {
    const card = { accelerator: 'L40S', gpuMemoryGiB: 44.7 }
    expect(fitsGpuMemory(card, request('16GB..24GB'))).toBe(false)
    expect(reachesGpuMemory(card, request('16GB..24GB'))).toBe(true)
    expect(reachesGpuMemory(card, request('80GB'))).toBe(false)
    expect(reachesGpuMemory({}, request('1GB'))).toBe(false)
  })

  it('is explained in the unit in which it was asked for', () => {
    const card = { accelerator: 'A10G', gpuMemoryGiB: 22888 / 1024 }
    expect(gpuMemoryInWords(card, request('40GB'))).toBe('has 24 GB, wanted 40 GB+')
    expect(gpuMemoryInWords(card, request('40GiB'))).toBe('has 22.4 GiB, wanted 40 GiB+')
    expect(gpuMemoryInWords({ ...card, accelerator: 'New' }, request('40GB'))).toBe(
      'has 22.4 GiB, wanted 40 GB+',
    )
  })
})

describe('a job that is submitted again', () => {
  it.each(['24GB..', '24GB..80GB', '..48GB', '16GiB..', '24GB..80GiB', '16GiB..24GB'])(
    'asks for the same GPU memory: %s',
    (text) => {
      const fields = fieldsOf({ ...SPEC, resources: request(text) }, 0)
      expect(fields.resources).toEqual({ gpu_memory: text })
    },
  )
})

describe('the GPUs of the small cloud', () => {
  const { types } = JSON.parse(
    readFileSync(join(__dirname, '../../packages/small-cloud/src/world/instance-types.json'), 'utf8'),
  ) as { types: Record<string, { accelerator?: { name: string; memoryMiB: number; manufacturer: string } }> }

  it('report the MiB that EC2 reports', () => {
    const known = new Map(EC2_GPUS.map(([type, name, mib]) => [type.split('.')[0]!, `${name} ${mib}`]))
    const wrong = Object.entries(types).filter(([type, { accelerator }]) => {
      const expected = known.get(type.split('.')[0]!)
      return (
        accelerator !== undefined &&
        expected !== undefined &&
        `${accelerator.name} ${accelerator.memoryMiB}` !== expected
      )
    })
    expect(wrong).toEqual([])
    expect(types['g6e.xlarge']!.accelerator!.memoryMiB).toBe(45776)
  })
})

it.each([
  [{}, undefined],
  [{ gpuMemoryGb: { min: 24 } }, '24 GB+'],
  [{ gpuMemoryGiB: { min: 16, max: 40 } }, '16 GiB..40 GiB'],
  [{ gpuMemoryGb: { min: 24 }, gpuMemoryGiB: { max: 40 } }, '24 GB+ and ..40 GiB'],
])('the GPU memory that %j asks for is shown as %s', (request, words) => {
  expect(formatGpuMemory(request)).toBe(words)
})
