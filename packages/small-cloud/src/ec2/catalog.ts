/** Machine types, where they are offered, and images. */
import { z } from 'zod'
import { dryRun, filter, flag, list, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import { isFreeTierEligible, type MachineType } from '../world/types'
import type { Ec2 } from './ec2'
import { byId, checkForm, page, select } from './filters'
import type { Image } from './model'

const filters = { Filter: list(filter).default([]) }
const MIB_PER_GIB = 1024

export function catalogActions(ec2: Ec2): Record<string, Action> {
  return { ...typeActions(ec2), ...imageActions(ec2) }
}

const TYPE_FILTERS: Parameters<typeof select<MachineType>>[2] = {
  'instance-type': ({ name }) => name,
  'processor-info.supported-architecture': ({ architecture }) => architecture,
  'supported-usage-class': usageClasses,
  'vcpu-info.default-vcpus': ({ vcpus }) => String(vcpus),
  'memory-info.size-in-mib': ({ memoryGiB }) => String(memoryGiB * MIB_PER_GIB),
  'current-generation': () => 'true',
  'free-tier-eligible': (type) => String(isFreeTierEligible(type)),
  'bare-metal': ({ name }) => String(name.endsWith('.metal')),
}

function typeActions(ec2: Ec2): Record<string, Action> {
  const { world, market } = ec2.parts
  const offeredIn = (region: string, type: string): string[] =>
    ec2
      .region(region)
      .plan.zones.map(({ name }) => name)
      .filter((zone) => market.isOffered(type, zone))
  return {
    DescribeInstanceTypes: action({
      input: z.strictObject({ ...dryRun, ...paging, ...filters, InstanceType: list(text).default([]) }),
      run({ InstanceType: names, Filter, ...wish }, { region }) {
        const here = [...world.types.values()].filter(({ name }) => offeredIn(region, name).length > 0)
        const unknown = names.filter((name) => !here.some((type) => type.name === name))
        if (unknown.length > 0)
          throw new ApiError(
            'InvalidInstanceType',
            `The following supplied instance types do not exist: [${unknown.join(', ')}]`,
          )
        if (names.length > 0 && wish.MaxResults !== undefined)
          throw new ApiError(
            'InvalidParameterCombination',
            'The parameter MaxResults cannot be used with the parameter InstanceTypes',
          )
        const wanted = names.length === 0 ? here : here.filter(({ name }) => names.includes(name))
        const found = select(wanted, Filter, TYPE_FILTERS)
        const { items, nextToken } = page(found, wish, { most: 100 })
        return { instanceTypeSet: items.map(typeWords), nextToken }
      },
    }),
    DescribeInstanceTypeOfferings: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        ...filters,
        LocationType: z.enum(['region', 'availability-zone', 'availability-zone-id']).default('region'),
      }),
      run({ LocationType, Filter, ...wish }, { region }) {
        const { zones } = ec2.region(region).plan
        const idOf = (zone: string): string => zones.find(({ name }) => name === zone)!.id
        const rows = [...world.types.keys()].flatMap((type) => {
          const offered = offeredIn(region, type)
          if (LocationType === 'region') return offered.length === 0 ? [] : [{ type, location: region }]
          return offered.map((zone) => ({
            type,
            location: LocationType === 'availability-zone' ? zone : idOf(zone),
          }))
        })
        const found = select(rows, Filter, {
          'instance-type': ({ type }) => type,
          location: ({ location }) => location,
        })
        const { items, nextToken } = page(found, wish, { most: 1000 })
        const instanceTypeOfferingSet = items.map(({ type, location }) => ({
          instanceType: type,
          locationType: LocationType,
          location,
        }))
        return { instanceTypeOfferingSet, nextToken }
      },
    }),
  }
}

/** Types sold as Capacity Blocks, November 2026; a world may have blocks of other types. */
const IN_BLOCKS = /^(?:p4d|p4de|p5|p5e|p5en|p6-b200|p6-b300|trn1|trn2)\./

function usageClasses({ name }: MachineType): string[] {
  return ['on-demand', 'spot', ...(IN_BLOCKS.test(name) ? ['capacity-block'] : [])]
}

function typeWords(type: MachineType) {
  const { name, vcpus, memoryGiB, architecture, accelerator, networkCards, hasEfa, ebs, localDisks } = type
  const performance = networkWords(type)
  const isNeuron = accelerator?.manufacturer === 'AWS'
  return {
    instanceType: name,
    currentGeneration: true,
    freeTierEligible: isFreeTierEligible(type),
    supportedUsageClasses: usageClasses(type),
    supportedRootDeviceTypes: ['ebs'],
    supportedVirtualizationTypes: ['hvm'],
    bareMetal: name.endsWith('.metal'),
    hypervisor: name.endsWith('.metal') ? undefined : 'nitro',
    processorInfo: { supportedArchitectures: [architecture] },
    vCpuInfo: {
      defaultVCpus: vcpus,
      defaultCores: Math.max(1, vcpus / 2),
      defaultThreadsPerCore: Math.min(2, vcpus),
    },
    memoryInfo: { sizeInMiB: memoryGiB * MIB_PER_GIB },
    instanceStorageSupported: localDisks !== undefined,
    instanceStorageInfo: localDisks && localDiskWords(localDisks),
    ebsInfo: {
      ebsOptimizedSupport: 'default',
      encryptionSupport: 'supported',
      ebsOptimizedInfo: ebs && ebsWords(ebs),
      nvmeSupport: 'required',
    },
    networkInfo: {
      networkPerformance: performance?.words,
      maximumNetworkCards: networkCards,
      networkCards: performance?.cards,
      defaultNetworkCardIndex: 0,
      enaSupport: 'required',
      efaSupported: hasEfa,
      efaInfo: hasEfa ? { maximumEfaInterfaces: networkCards } : undefined,
      ipv6Supported: true,
    },
    gpuInfo: accelerator !== undefined && !isNeuron ? gpuWords(accelerator) : undefined,
    neuronInfo: accelerator !== undefined && isNeuron ? neuronWords(accelerator) : undefined,
    placementGroupInfo: { supportedStrategies: ['cluster', 'partition', 'spread'] },
    hibernationSupported: false,
    burstablePerformanceSupported: name.startsWith('t'),
    dedicatedHostsSupported: true,
    autoRecoverySupported: false,
    supportedBootModes: ['legacy-bios', 'uefi'],
  }
}

function localDiskWords({ count, sizeGb }: NonNullable<MachineType['localDisks']>) {
  return {
    totalSizeInGB: count * sizeGb,
    disks: [{ sizeInGB: sizeGb, count, type: 'ssd' }],
    nvmeSupport: 'required',
    encryptionSupport: 'required',
  }
}

function ebsWords({ mbPerSecond: [baseline, most], iops: [baselineIops, maximumIops] }: Ebs) {
  return {
    baselineBandwidthInMbps: Math.round(baseline * BITS_PER_BYTE),
    baselineThroughputInMBps: baseline,
    baselineIops,
    maximumBandwidthInMbps: Math.round(most * BITS_PER_BYTE),
    maximumThroughputInMBps: most,
    maximumIops,
  }
}

function networkWords({ networkCards, networkGbps }: MachineType) {
  if (networkGbps === undefined) return undefined
  const [baselineBandwidthInGbps, peakBandwidthInGbps] = networkGbps
  const isBurst = baselineBandwidthInGbps < peakBandwidthInGbps
  const networkPerformance = `${isBurst ? 'Up to ' : ''}${peakBandwidthInGbps} Gigabit`
  const cards = Array.from({ length: networkCards }, (_, networkCardIndex) => ({
    networkCardIndex,
    networkPerformance,
    baselineBandwidthInGbps,
    peakBandwidthInGbps,
  }))
  const words = networkCards === 1 ? networkPerformance : `${networkCards}x ${networkPerformance}`
  return { words, cards }
}

type Ebs = NonNullable<MachineType['ebs']>
const BITS_PER_BYTE = 8

type Accelerator = NonNullable<MachineType['accelerator']>

function gpuWords({ name, manufacturer, count, memoryMiB: sizeInMiB }: Accelerator) {
  return {
    gpus: [{ name, manufacturer, count, memoryInfo: { sizeInMiB } }],
    totalGpuMemoryInMiB: count * sizeInMiB,
  }
}

function neuronWords({ name, count, memoryMiB: sizeInMiB }: Accelerator) {
  return {
    neuronDevices: [{ name, count, memoryInfo: { sizeInMiB } }],
    totalNeuronDeviceMemoryInMiB: count * sizeInMiB,
  }
}

function imageActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeImages: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        ...filters,
        ImageId: list(text).default([]),
        Owner: list(text).default([]),
        IncludeDeprecated: flag.optional(),
      }),
      run({ ImageId: ids, Owner: owners, Filter, IncludeDeprecated, ...wish }, { region }) {
        checkForm(ids, 'ami', 'InvalidAMIID.Malformed')
        const { images } = ec2.region(region)
        const wanted =
          ids.length === 0
            ? images
            : byId(ids, (id) => images.find((each) => each.id === id), {
                code: 'InvalidAMIID.NotFound',
                what: 'image id',
              })
        const own = wanted.filter(
          ({ ownerAlias, isDeprecated }) =>
            (owners.length === 0 || owners.includes(ownerAlias)) &&
            (!isDeprecated || IncludeDeprecated === true || ownerAlias === 'self'),
        )
        const found = select(own, Filter, {
          'image-id': ({ id }) => id,
          name: ({ name }) => name,
          architecture: ({ architecture }) => architecture,
          'owner-alias': ({ ownerAlias }) => ownerAlias,
          state: () => 'available',
          'root-device-type': () => 'ebs',
          'virtualization-type': () => 'hvm',
          'is-public': () => 'true',
        })
        const { items, nextToken } = page(found, wish, { least: 1, most: 1000 })
        return { imagesSet: items.map((image) => imageWords(ec2, image)), nextToken }
      },
    }),
  }
}

function imageWords(ec2: Ec2, image: Image) {
  return {
    imageId: image.id,
    name: image.name,
    description: image.description,
    imageLocation: `amazon/${image.name}`,
    imageState: 'available',
    imageOwnerId: image.ownerAlias === 'self' ? ec2.account : '898082745236',
    imageOwnerAlias: image.ownerAlias === 'self' ? undefined : image.ownerAlias,
    isPublic: true,
    architecture: image.architecture,
    imageType: 'machine',
    creationDate: '2026-11-01T00:00:00.000Z',
    deprecationTime: image.isDeprecated ? '2026-11-02T00:00:00.000Z' : '2028-11-01T00:00:00.000Z',
    rootDeviceType: 'ebs',
    rootDeviceName: image.rootDevice,
    virtualizationType: 'hvm',
    hypervisor: 'xen',
    enaSupport: true,
    platformDetails: 'Linux/UNIX',
    usageOperation: 'RunInstances',
    blockDeviceMapping: [
      {
        deviceName: image.rootDevice,
        ebs: { volumeSize: image.rootGiB, volumeType: 'gp3', deleteOnTermination: true, encrypted: false },
      },
    ],
    productCodes: [],
    tagSet: [],
  }
}
