import {
  DescribeImagesCommand,
  paginateDescribeCapacityReservations,
  paginateDescribeInstanceTypeOfferings,
  paginateDescribeInstanceTypes,
  paginateDescribeSpotPriceHistory,
  type CapacityReservation,
  type EC2Client,
  type GpuDeviceInfo,
  type InstanceTypeInfo,
  type NeuronDeviceInfo,
  type _InstanceType,
} from '@aws-sdk/client-ec2'
import type { PricingClient } from '@aws-sdk/client-pricing'
import type { Gpu, MachineType, MarketApi, Reservation, SpotPrice } from './api'
import { call } from './errors'
import { createPricesApi } from './prices'

export function createMarketApi(ec2: EC2Client, pricing: PricingClient): MarketApi {
  return {
    types: (patterns, signal) =>
      call(signal, async () => {
        const pages = paginateDescribeInstanceTypes(
          { client: ec2, pageSize: 100 },
          { Filters: [{ Name: 'instance-type', Values: patterns }] },
          { abortSignal: signal },
        )
        const types: MachineType[] = []
        for await (const { InstanceTypes } of pages) types.push(...(InstanceTypes ?? []).map(typeOf))
        return types
      }),
    typeZones: (patterns, signal) =>
      call(signal, async () => {
        const pages = paginateDescribeInstanceTypeOfferings(
          { client: ec2, pageSize: 1_000 },
          { LocationType: 'availability-zone', Filters: [{ Name: 'instance-type', Values: patterns }] },
          { abortSignal: signal },
        )
        const places = []
        for await (const { InstanceTypeOfferings } of pages) places.push(...(InstanceTypeOfferings ?? []))
        return places.map(({ InstanceType, Location }) => ({
          type: String(InstanceType),
          zone: Location ?? '',
        }))
      }),
    ...createPricesApi(pricing),
    spotPrices: (types, signal) => call(signal, () => spotPrices(ec2, types, signal)),
    reservations: (signal) => call(signal, () => reservations(ec2, signal)),
    spotPriceHistory: (pool, signal) => call(signal, () => spotPriceHistory(ec2, pool, signal)),
    image: (id, signal) =>
      call(signal, async () => {
        const { Images } = await ec2.send(
          // Deprecated images are included: a job keeps its image for weeks, and AWS may deprecate it meanwhile, but it still launches.
          new DescribeImagesCommand({
            Filters: [{ Name: 'image-id', Values: [id] }],
            IncludeDeprecated: true,
          }),
          { abortSignal: signal },
        )
        const image = Images?.[0]
        if (image === undefined) return undefined
        const rootDevice = image.RootDeviceName ?? '/dev/sda1'
        const root = (image.BlockDeviceMappings ?? []).find(({ DeviceName }) => DeviceName === rootDevice)
        return {
          id,
          name: image.Name,
          deprecatedAtMs: image.DeprecationTime === undefined ? undefined : Date.parse(image.DeprecationTime),
          architecture: image.Architecture ?? 'x86_64',
          rootDevice,
          diskGiB: root?.Ebs?.VolumeSize ?? 0,
        }
      }),
  }
}

async function reservations(client: EC2Client, signal: AbortSignal): Promise<Reservation[]> {
  // Reservations are collected by id, because one that appears or ends between two pages may move another onto both.
  const found = new Map<string, Reservation>()
  const pages = paginateDescribeCapacityReservations({ client, pageSize: 1_000 }, {}, { abortSignal: signal })
  for await (const { CapacityReservations } of pages)
    for (const told of CapacityReservations ?? []) {
      const one = reservationOf(told)
      found.set(one.id, one)
    }
  return [...found.values()]
}

export function reservationOf(told: CapacityReservation): Reservation {
  const { StartDate, EndDate } = told
  return {
    id: told.CapacityReservationId ?? '',
    isBlock: told.ReservationType === 'capacity-block',
    // Only UltraServers have this status.
    isUltraServer: told.LaunchStatus !== undefined,
    isInterruptible: told.Interruptible === true,
    state: told.State ?? '',
    type: told.InstanceType ?? '',
    zone: told.AvailabilityZone ?? '',
    platform: told.InstancePlatform ?? '',
    tenancy: told.Tenancy ?? 'default',
    total: told.TotalInstanceCount ?? 0,
    free: told.AvailableInstanceCount ?? 0,
    startsAtMs: StartDate ? StartDate.getTime() : undefined,
    endsAtMs: EndDate ? EndDate.getTime() : undefined,
    blockId: told.CapacityBlockId,
    owner: told.OwnerId,
    matching: told.InstanceMatchCriteria,
    isEbsOptimized: told.EbsOptimized,
    createdAtMs: told.CreateDate?.getTime(),
    committedUntilMs: told.CommitmentInfo?.CommitmentEndDate?.getTime(),
    tags: Object.fromEntries((told.Tags ?? []).map(({ Key = '', Value = '' }) => [Key, Value])),
  }
}

/** @internal Tests read recorded answers of AWS. */
export function typeOf(info: InstanceTypeInfo): MachineType {
  return {
    name: String(info.InstanceType),
    cpus: info.VCpuInfo?.DefaultVCpus ?? 0,
    memoryMiB: info.MemoryInfo?.SizeInMiB ?? 0,
    architectures: info.ProcessorInfo?.SupportedArchitectures ?? [],
    gpus: [...(info.GpuInfo?.Gpus ?? []).map(gpuOf), ...(info.NeuronInfo?.NeuronDevices ?? []).map(neuronOf)],
    hasOtherChips: [
      info.NeuronInfo,
      info.InferenceAcceleratorInfo,
      info.FpgaInfo,
      info.MediaAcceleratorInfo,
    ].some((chips) => chips !== undefined),
    usageClasses: info.SupportedUsageClasses ?? [],
    isFreeTier: info.FreeTierEligible ?? false,
    isBareMetal: info.BareMetal ?? false,
    networkPerformance: info.NetworkInfo?.NetworkPerformance,
    efaInterfaces: info.NetworkInfo?.EfaInfo?.MaximumEfaInterfaces ?? 0,
    localDiskGb:
      info.InstanceStorageInfo?.NvmeSupport === 'unsupported'
        ? undefined
        : info.InstanceStorageInfo?.TotalSizeInGB,
    diskMbPerSecond: info.EbsInfo?.EbsOptimizedInfo?.MaximumThroughputInMBps,
  }
}

function gpuOf(gpu: GpuDeviceInfo): Gpu {
  return {
    name: gpu.Name ?? 'GPU',
    manufacturer: gpu.Manufacturer ?? '',
    // `Count` is 0 for parts of a GPU.
    count: gpu.LogicalGpuCount ?? gpu.Count ?? 0,
    memoryMiB: gpu.MemoryInfo?.SizeInMiB ?? 0,
    part: gpu.GpuPartitionSize ?? 1,
  }
}

/** Returns Trainium and Inferentia chips, so that a job that asks for them gets a reason. */
function neuronOf({ Name, Count, MemoryInfo }: NeuronDeviceInfo): Gpu {
  return {
    name: Name ?? 'Neuron',
    manufacturer: 'AWS',
    count: Count ?? 0,
    part: 1,
    memoryMiB: MemoryInfo?.SizeInMiB ?? 0,
  }
}

/** A history that begins and ends now has the current price of each type and zone. */
async function spotPrices(ec2: EC2Client, types: string[], signal: AbortSignal): Promise<SpotPrice[]> {
  const now = new Date()
  const pages = paginateDescribeSpotPriceHistory(
    { client: ec2, pageSize: 1_000 },
    {
      StartTime: now,
      EndTime: now,
      ProductDescriptions: ['Linux/UNIX'],
      InstanceTypes: types as _InstanceType[],
    },
    { abortSignal: signal },
  )
  const newest = new Map<string, { price: SpotPrice; atMs: number }>()
  for await (const { SpotPriceHistory } of pages) {
    for (const { InstanceType, AvailabilityZone, SpotPrice: usd, Timestamp } of SpotPriceHistory ?? []) {
      if (AvailabilityZone === undefined || usd === undefined) continue
      const price = { type: String(InstanceType), zone: AvailabilityZone, usdPerHour: usd }
      const key = `${price.type} ${price.zone}`
      const atMs = Timestamp?.getTime() ?? 0
      if (atMs >= (newest.get(key)?.atMs ?? 0)) newest.set(key, { price, atMs })
    }
  }
  return [...newest.values()].map(({ price }) => price)
}

/** The initial price is included: a history begins with the last change before its start. */
async function spotPriceHistory(
  ec2: EC2Client,
  { type, zone, fromAtMs }: { type: string; zone: string; fromAtMs: number },
  signal: AbortSignal,
): Promise<{ atMs: number; usdPerHour: string }[]> {
  const pages = paginateDescribeSpotPriceHistory(
    { client: ec2, pageSize: 1_000 },
    {
      StartTime: new Date(fromAtMs),
      ProductDescriptions: ['Linux/UNIX'],
      InstanceTypes: [type as _InstanceType],
      AvailabilityZone: zone,
    },
    { abortSignal: signal },
  )
  const changes: { atMs: number; usdPerHour: string }[] = []
  for await (const { SpotPriceHistory } of pages)
    for (const { SpotPrice: usdPerHour, Timestamp } of SpotPriceHistory ?? [])
      if (usdPerHour !== undefined && Timestamp !== undefined)
        changes.push({ atMs: Timestamp.getTime(), usdPerHour })
  return changes.sort((a, b) => a.atMs - b.atMs)
}
