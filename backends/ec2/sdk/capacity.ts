import {
  DescribeAvailabilityZonesCommand,
  DescribeCapacityReservationTopologyCommand,
  DescribeRegionsCommand,
  GetCapacityManagerSupportabilityScoresCommand,
  paginateDescribeCapacityBlockOfferings,
  paginateDescribeInstances,
  paginateDescribeInstanceTypes,
  paginateDescribeSpotPriceHistory,
  paginateDescribeSubnets,
  paginateGetSpotPlacementScores,
  type EC2Client,
  type CapacityBlockOffering,
  type Instance,
  type _InstanceType,
} from '@aws-sdk/client-ec2'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import type { BlockOffering, CapacityApi, CountedMachine, NetworkPlace } from './api-capacity'
import { call } from './errors'
import { subnetOf } from './network'

export function createCapacityApi(ec2: EC2Client): CapacityApi {
  return {
    regions: (signal) =>
      call(signal, async () => {
        const command = new DescribeRegionsCommand({ AllRegions: true })
        const { Regions } = await ec2.send(command, { abortSignal: signal })
        return (Regions ?? []).map(({ RegionName = '', OptInStatus }) => ({
          name: RegionName,
          isEnabled: OptInStatus !== 'not-opted-in',
        }))
      }),
    blockTypes: (signal) => call(signal, () => blockTypes(ec2, signal)),
    offerings: ({ type, count, durationHours, startsAfterMs, endsBeforeMs }, signal) =>
      call(signal, async () => {
        const wish = {
          InstanceType: type,
          InstanceCount: count,
          CapacityDurationHours: durationHours,
          StartDateRange: startsAfterMs !== undefined ? new Date(startsAfterMs) : undefined,
          EndDateRange: endsBeforeMs !== undefined ? new Date(endsBeforeMs) : undefined,
        }
        const pages = paginateDescribeCapacityBlockOfferings({ client: ec2 }, wish, at(signal))
        const found: BlockOffering[] = []
        for await (const { CapacityBlockOfferings } of pages)
          found.push(...(CapacityBlockOfferings ?? []).map(offeringOf))
        return found
      }),
    topology: (signal) => call(signal, () => topology(ec2, signal)),
    placementScores: ({ types, count, regions, byZone }, signal) =>
      call(signal, async () => {
        const wish = {
          TargetCapacity: count,
          InstanceTypes: types,
          RegionNames: regions,
          SingleAvailabilityZone: byZone,
        }
        const found = []
        for await (const page of paginateGetSpotPlacementScores({ client: ec2 }, wish, at(signal)))
          found.push(...(page.SpotPlacementScores ?? []))
        return found.map(({ Region = '', AvailabilityZoneId, Score = 0 }) => ({
          region: Region,
          score: Score,
          zoneId: AvailabilityZoneId,
        }))
      }),
    capacityScores: ({ market, types, zoneIds, count }, signal) =>
      call(signal, async () => {
        const command = new GetCapacityManagerSupportabilityScoresCommand({
          MarketType: market,
          CapacityAmount: count,
          CapacityUnit: 'instances',
          CapacityAvailabilityZoneIds: zoneIds,
          InstanceTypes: types,
        })
        const { CapacityManagerSupportabilityScores = [] } = await ec2.send(command, at(signal))
        return CapacityManagerSupportabilityScores.map(
          ({ InstanceType = '', AvailabilityZoneId = '', Score = '' }) => ({
            type: InstanceType,
            zoneId: AvailabilityZoneId,
            score: Score,
          }),
        )
      }),
    spotChanges: (wish, signal) => call(signal, () => spotChanges(ec2, wish, signal)),
    zoneIds: (signal) =>
      call(signal, async () => {
        const { AvailabilityZones } = await ec2.send(new DescribeAvailabilityZonesCommand({}), at(signal))
        return new Map(
          (AvailabilityZones ?? []).map(({ ZoneName = '', ZoneId = '' }) => [ZoneName, ZoneId] as const),
        )
      }),
    subnetsOfAll: (signal) =>
      call(signal, async () => {
        const found = []
        for await (const { Subnets } of paginateDescribeSubnets({ client: ec2 }, {}, at(signal)))
          found.push(...(Subnets ?? []))
        return found.map(subnetOf)
      }),
    countedMachines: (signal) => call(signal, () => countedMachines(ec2, signal)),
  }
}

const at = (signal: AbortSignal): { abortSignal: AbortSignal } => ({ abortSignal: signal })

async function blockTypes(ec2: EC2Client, signal: AbortSignal): Promise<string[]> {
  const Filters = [{ Name: 'supported-usage-class', Values: ['capacity-block'] }]
  const pages = paginateDescribeInstanceTypes({ client: ec2, pageSize: 100 }, { Filters }, at(signal))
  const found: string[] = []
  for await (const { InstanceTypes } of pages)
    found.push(...(InstanceTypes ?? []).map(({ InstanceType }) => String(InstanceType)))
  return found
}

async function countedMachines(ec2: EC2Client, signal: AbortSignal): Promise<CountedMachine[]> {
  const Filters = [{ Name: 'instance-state-name', Values: ['pending', 'running'] }]
  const found: CountedMachine[] = []
  const pages = paginateDescribeInstances({ client: ec2, pageSize: 1_000 }, { Filters }, at(signal))
  for await (const { Reservations } of pages)
    for (const { Instances } of Reservations ?? []) found.push(...(Instances ?? []).map(countedOf))
  return found
}

function offeringOf(told: CapacityBlockOffering): BlockOffering {
  const { CapacityBlockDurationHours: hours = 0, CapacityBlockDurationMinutes: minutes = 0 } = told
  const startsAtMs = told.StartDate?.getTime() ?? 0
  const lengthMs = hours * HOUR_MS + minutes * MINUTE_MS
  return {
    id: told.CapacityBlockOfferingId ?? '',
    type: told.InstanceType ?? '',
    count: told.InstanceCount ?? 0,
    zone: told.AvailabilityZone ?? '',
    startsAtMs,
    endsAtMs: told.EndDate?.getTime() ?? startsAtMs + lengthMs,
    lengthMs,
    upfrontFee: told.UpfrontFee ?? '',
    currency: told.CurrencyCode ?? '',
    tenancy: told.Tenancy ?? 'default',
    ultraServerType: told.UltraserverType,
  }
}

/** The SDK has no paginator for this call. */
async function topology(ec2: EC2Client, signal: AbortSignal): Promise<NetworkPlace[]> {
  const found: NetworkPlace[] = []
  let token: string | undefined
  do {
    const command = new DescribeCapacityReservationTopologyCommand({
      NextToken: token,
    })
    const { CapacityReservations, NextToken } = await ec2.send(command, at(signal))
    for (const told of CapacityReservations ?? [])
      found.push({
        reservation: told.CapacityReservationId ?? '',
        type: told.InstanceType ?? '',
        zone: told.AvailabilityZone ?? '',
        state: told.State ?? '',
        nodes: told.NetworkNodes ?? [],
      })
    token = NextToken || undefined
  } while (token !== undefined)
  return found
}

async function spotChanges(
  ec2: EC2Client,
  { types, fromAtMs }: { types: string[]; fromAtMs: number },
  signal: AbortSignal,
): ReturnType<CapacityApi['spotChanges']> {
  const pages = paginateDescribeSpotPriceHistory(
    { client: ec2, pageSize: 1_000 },
    {
      StartTime: new Date(fromAtMs),
      ProductDescriptions: ['Linux/UNIX'],
      InstanceTypes: types as _InstanceType[],
    },
    at(signal),
  )
  const changes = []
  for await (const { SpotPriceHistory } of pages) {
    for (const { InstanceType, AvailabilityZone, SpotPrice, Timestamp } of SpotPriceHistory ?? []) {
      if (AvailabilityZone === undefined || SpotPrice === undefined || Timestamp === undefined) continue
      const pool = { type: String(InstanceType), zone: AvailabilityZone }
      changes.push({ ...pool, atMs: Timestamp.getTime(), usdPerHour: SpotPrice })
    }
  }
  return changes.sort((a, b) => a.atMs - b.atMs)
}

function countedOf({ InstanceType, CpuOptions, InstanceLifecycle }: Instance): CountedMachine {
  return {
    type: String(InstanceType),
    vcpus: (CpuOptions?.CoreCount ?? 0) * (CpuOptions?.ThreadsPerCore ?? 1),
    isSpot: InstanceLifecycle === 'spot',
    isInBlock: InstanceLifecycle === 'capacity-block',
  }
}
