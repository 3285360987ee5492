/** Which machine types are offered, as what, or why not. */
import { describe, expect, it } from '@jest/globals'
import type { MachineType } from '../../../../backends/ec2/sdk/api'
import { TYPES_DEFAULT } from '../../../../backends/ec2/config'
import { quotaOf, shapeOf } from '../../../../backends/ec2/market/shapes'
import { typeOf } from '../../../../backends/ec2/sdk/market'
import { isNeuron, whyUnusable } from '../../../../backends/ec2/market/usable'
import { findAccelerator } from '../../../../core/accelerators'
import { MINUTE_MS } from '../../../../core/time/time'
import { awsClients, describedTypes } from '../../../support/aws-clients'
import { DEFAULT_IMAGE } from '../harness'

const SETTINGS = { types: TYPES_DEFAULT, image: DEFAULT_IMAGE, registerWithinMs: 10 * MINUTE_MS }
const OWN_IMAGE = { ...SETTINGS, image: 'ami-0123456789abcdef0' }

const nvidia = (name: string, facts: object = {}): object => ({
  GpuInfo: {
    Gpus: [{ Name: name, Manufacturer: 'NVIDIA', Count: 1, MemoryInfo: { SizeInMiB: 16384 }, ...facts }],
  },
})

/** As `DescribeInstanceTypes` describes it. */
const described = (InstanceType: string, facts: object = {}): MachineType =>
  typeOf({
    InstanceType: InstanceType as 'g5.xlarge',
    VCpuInfo: { DefaultVCpus: 4 },
    MemoryInfo: { SizeInMiB: 16384 },
    ProcessorInfo: { SupportedArchitectures: ['x86_64'] },
    ...facts,
  })

const neuron = (Name: string): object => ({
  NeuronInfo: { NeuronDevices: [{ Name, Count: 1, MemoryInfo: { SizeInMiB: 32768 } }] },
})

const EIGHTH = nvidia('L4', {
  Count: 0,
  LogicalGpuCount: 1,
  GpuPartitionSize: 0.125,
  MemoryInfo: { SizeInMiB: 2861 },
})
const ARM = { ProcessorInfo: { SupportedArchitectures: ['arm64'] } }

describe('a machine type', () => {
  it.each<[string, MachineType, RegExp]>([
    [
      'with a part of a GPU',
      described('g6f.large', EIGHTH),
      /^its GPU is 1\/8 of an L4, which takes the GRID driver/,
    ],
    ['older than Turing', described('p3.2xlarge', nvidia('V100')), /V100 is older than Turing/],
    ['of AMD', described('g4ad.xlarge', nvidia('Radeon Pro V520', { Manufacturer: 'AMD' })), /from AMD/],
    [
      'of Habana',
      described('dl1.24xlarge', nvidia('Gaudi HL-205', { Manufacturer: 'Habana' })),
      /not NVIDIA GPUs/,
    ],
    ['that only its name tells to be Trainium', described('trn2u.48xlarge'), /not NVIDIA GPUs/],
    ['with the first Inferentia', described('inf1.xlarge', neuron('Inferentia')), /not NVIDIA GPUs/],
    ['of an UltraServer', described('trn2u.48xlarge', neuron('Trainium2')), /not NVIDIA GPUs/],
    ['of bare metal', described('g4dn.metal', { ...nvidia('T4'), BareMetal: true }), /bare metal/],
    ['with an ARM processor', described('g5g.xlarge', { ...nvidia('T4g'), ...ARM }), /ARM processor/],
  ])('%s is left out, with the reason', (_, type, reason) => {
    expect(whyUnusable(type, SETTINGS)).toMatch(reason)
  })

  it.each(['K520', 'K80', 'M60', 'P100', 'V100'])(
    'with the old GPU %s is left out, with the reason',
    (name) => {
      const words = new RegExp(`^its ${name} is older than Turing.*proprietary driver`)
      expect(whyUnusable(described('g1.large', nvidia(name)), SETTINGS)).toMatch(words)
    },
  )

  it.each(['T4', 'T4g', 'A10G', 'L4', 'L40S', 'A100', 'H100', 'H200', 'B200', 'B300'])(
    'with the GPU %s is offered',
    (name) => expect(whyUnusable(described('g1.large', nvidia(name)), SETTINGS)).toBeUndefined(),
  )

  it.each([
    ['trn1.32xlarge', 'Trainium'],
    ['trn1n.32xlarge', 'Trainium'],
    ['trn2.48xlarge', 'Trainium2'],
    ['inf2.8xlarge', 'Inferentia2'],
  ])('%s is offered', (name, chip) => {
    expect(whyUnusable(described(name, neuron(chip)), SETTINGS)).toBeUndefined()
    expect(shapeOf(described(name, neuron(chip)), 100).accelerator).toBe(chip)
  })

  it.each(['trn1.2xlarge', 'trn2u.48xlarge', 'inf1.xlarge', 'dl1.24xlarge', 'vt1.3xlarge', 'f2.6xlarge'])(
    '%s is known by its name if its description says nothing',
    (name) => expect(whyUnusable(described(name), SETTINGS)).toMatch(/not NVIDIA GPUs/),
  )

  it.each<[string, object]>([
    ['neurons', { NeuronInfo: { NeuronDevices: [] } }],
    ['inference', { InferenceAcceleratorInfo: { Accelerators: [{ Name: 'Qualcomm AI100', Count: 8 }] } }],
    ['gates', { FpgaInfo: { Fpgas: [{ Name: 'VU47P', Count: 1 }] } }],
    ['video', { MediaAcceleratorInfo: { Accelerators: [{ Name: 'U30', Count: 2 }] } }],
  ])('with chips for %s is known by them, whatever its name', (_, chips) => {
    expect(whyUnusable(described('m9.large', chips), SETTINGS)).toMatch(/not NVIDIA GPUs/)
  })

  it('of bare metal is not offered for its price alone, however long it may take to start', () => {
    const metal = described('m7i.metal-24xl', { BareMetal: true })
    expect(whyUnusable(metal, { ...SETTINGS, registerWithinMs: 60 * MINUTE_MS })).toMatch(
      /name it in CRUCIBLE_EC2_TYPES$/,
    )
  })

  it('is offered where the settings name it, or bring the image that it takes', () => {
    const metal = described('g4dn.metal', { ...nvidia('T4'), BareMetal: true })
    const named = { ...SETTINGS, types: ['g4dn.metal'] }
    expect(whyUnusable(metal, named)).toMatch(/CRUCIBLE_EC2_REGISTER_WITHIN to 30m/)
    expect(whyUnusable(metal, { ...named, registerWithinMs: 30 * MINUTE_MS })).toBeUndefined()
    const arm = described('g5g.xlarge', { ...nvidia('T4g'), ...ARM })
    expect(whyUnusable(arm, { ...SETTINGS, types: ['g5g.*'] })).toBeUndefined()
    expect(whyUnusable(described('p3.2xlarge', nvidia('V100')), OWN_IMAGE)).toBeUndefined()
    expect(whyUnusable(described('g6f.large', EIGHTH), OWN_IMAGE)).toBeUndefined()
  })

  it('with a part of a GPU has one GPU of its memory, and is no whole one', () => {
    expect(shapeOf(described('g6f.large', EIGHTH), 100)).toMatchObject({
      gpus: 1,
      accelerator: 'L4 (1/8)',
      gpuMemoryGiB: 2.79,
    })
    // As much memory as a whole one of the smaller kind has.
    const half = nvidia('A100', {
      LogicalGpuCount: 2,
      GpuPartitionSize: 0.5,
      MemoryInfo: { SizeInMiB: 40960 },
    })
    expect(shapeOf(described('p4f.large', half), 100)).toMatchObject({
      gpus: 2,
      accelerator: 'A100-80GB (1/2)',
    })
  })
})

const { python } = awsClients()
const types = python === undefined ? undefined : describedTypes(python)
const judged = types === undefined ? it.skip : it

describe('the types of EC2, as moto has recorded them', () => {
  const all = (types ?? []).map(typeOf)
  const offered = all.filter((type) => whyUnusable(type, SETTINGS) === undefined)

  judged('are all there', () => expect(all.length).toBeGreaterThan(1_000))

  judged('are offered with whole GPUs of NVIDIA since Turing, with chips of Neuron, or none', () => {
    const chips = offered.flatMap((type) => type.gpus.map(({ name }) => name))
    expect([...new Set(chips)].sort()).toEqual(
      [...new Set(chips)].filter((name) => !['V100', 'M60', 'K80'].includes(name)).sort(),
    )
    const neuron = offered.filter(isNeuron)
    expect([...new Set(neuron.map(({ name }) => name.split('.')[0]))].sort()).toEqual([
      'inf2',
      'trn1',
      'trn1n',
      'trn2',
    ])
    const others = offered.filter((type) => !isNeuron(type))
    const wrong = others.filter(({ gpus, architectures, isBareMetal, name }) => {
      const isWhole = gpus.every(
        ({ part, manufacturer, count }) => part === 1 && manufacturer === 'NVIDIA' && count > 0,
      )
      return (
        !isWhole || !architectures.includes('x86_64') || isBareMetal || /^(?:trn|inf|dl|vt|f)\d/.test(name)
      )
    })
    expect(wrong.map(({ name }) => name)).toEqual([])
  })

  judged('have GPUs that Crucible knows by name and memory', () => {
    const unknown = offered.flatMap((type) => {
      const { accelerator, gpuMemoryGiB = 0 } = shapeOf(type, 100)
      if (accelerator === undefined) return []
      const memoryGiB = ((findAccelerator(accelerator)?.memoryGb ?? 0) * 1e9) / 1024 ** 3
      // What a GPU is sold as, and what its driver reports, differ by a tenth at most.
      return Math.abs(memoryGiB / gpuMemoryGiB - 1) < 0.12
        ? []
        : [`${type.name}: ${accelerator} ${gpuMemoryGiB}`]
    })
    expect(unknown).toEqual([])
  })

  judged('with a GPU fall under a quota', () => {
    const without = offered.filter(({ name, gpus }) => gpus.length > 0 && quotaOf(name) === undefined)
    expect(without.map(({ name }) => name)).toEqual([])
  })
})
