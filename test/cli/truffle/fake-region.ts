import { AwsError, type MachineType, type Reservation } from '../../../backends/ec2/sdk/api'
import type { BlockOffering, RegionApi } from '../../../backends/ec2/sdk/api-capacity'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import { TYPES } from '../../backends/ec2/fake-market'

/** How one Region behaves. */
export interface RegionScript {
  name: string
  /** Thrown by every question, or by some of them. */
  error?: { code: string; message?: string; httpStatus?: number; only?: RegExp }
  /** Never answers. */
  isSilent?: boolean
  reservations?: Reservation[]
  offerings?: BlockOffering[]
  zones?: string[]
  types?: MachineType[]
  spotUsd?: string
  quota?: number
  /** Waits before each answer. */
  before?: () => Promise<void>
}

/** The questions of one Region, answered by a script and without any network. */
export function fakeRegion(script: RegionScript, regions: readonly string[], nowMs: number): RegionApi {
  const { name, error, types = TYPES, zones = [`${name}a`, `${name}b`] } = script
  const verb =
    <T>(what: string, value: () => T) =>
    async (...args: unknown[]): Promise<T> => {
      await script.before?.()
      const signal = args.at(-1) as AbortSignal
      if (script.isSilent === true)
        await new Promise<void>((_, reject) =>
          signal.addEventListener('abort', () =>
            reject(new AwsError('aborted', { code: 'Aborted', reach: 'unanswered' })),
          ),
        )
      if (error !== undefined && (error.only?.test(what) ?? true)) {
        const { code, message = `${code} of ${what}`, httpStatus = 400 } = error
        throw new AwsError(message, { code, httpStatus, reach: 'answered' })
      }
      return value()
    }
  const pools = types.flatMap((type) => zones.map((zone) => ({ type: type.name, zone })))
  const { spotUsd = '0.3', quota = 768, reservations = [], offerings = [] } = script
  return {
    market: {
      types: verb('types', () => types),
      typeZones: verb('typeZones', () => pools),
      onDemandPrices: verb('onDemandPrices', () => new Map(types.map((type) => [type.name, '1.5']))),
      onDemandPrice: verb('onDemandPrice', () => '1.5'),
      diskRates: verb('disks', () => ({
        usdPerGiBMonth: 0.08,
        usdPerMibpsMonth: 0.04,
        usdPerIopsMonth: 0.005,
      })),
      transferUsdPerGb: verb('transfer', () => '0.02'),
      spotPrices: verb('spotPrices', () => pools.map((pool) => ({ ...pool, usdPerHour: spotUsd }))),
      spotPriceHistory: verb('spotPriceHistory', () => []),
      image: verb('image', () => undefined),
      reservations: verb('reservations', () => reservations),
    },
    network: {
      subnets: verb('subnets', () => []),
      securityGroups: verb('securityGroups', () => []),
      defaultRoute: verb('defaultRoute', () => undefined),
      endpoints: verb('endpoints', () => []),
    },
    capacity: {
      regions: verb('regions', () => regions.map((region) => ({ name: region, isEnabled: true }))),
      blockTypes: verb('blockTypes', () => ['p5.48xlarge']),
      offerings: verb('offerings', () => offerings),
      topology: verb('topology', () =>
        reservations.map(({ id, type, zone, state }) => ({
          reservation: id,
          type,
          zone,
          state,
          nodes: [`nn-${zone}`],
        })),
      ),
      placementScores: verb('placementScores', () => regions.map((region) => ({ region, score: 7 }))),
      capacityScores: verb('capacityScores', () => []),
      spotChanges: verb('spotChanges', () =>
        pools.map((pool) => ({ ...pool, atMs: nowMs - HOUR_MS, usdPerHour: spotUsd })),
      ),
      zoneIds: verb('zoneIds', () => new Map(zones.map((zone, at) => [zone, `z${at}`]))),
      subnetsOfAll: verb('subnetsOfAll', () =>
        zones.map((zone) => ({
          id: `subnet-${zone}`,
          zone,
          vpc: 'vpc-1',
          freeAddresses: 250,
          givesPublicAddress: true,
        })),
      ),
      countedMachines: verb('countedMachines', () => [
        { type: 'p5.48xlarge', vcpus: 192, isSpot: false, isInBlock: false },
      ]),
    },
    account: { quota: verb('quota', () => quota), quotaRequests: verb('quotaRequests', () => []) },
  }
}

export function fakeReservation(region: string, changes: Partial<Reservation> = {}): Reservation {
  return {
    id: `cr-${region}`,
    type: 'g5.xlarge',
    zone: `${region}a`,
    total: 10,
    free: 4,
    state: 'active',
    platform: 'Linux/UNIX',
    tenancy: 'default',
    isBlock: false,
    isUltraServer: false,
    isInterruptible: false,
    ...changes,
  }
}

export function fakeOffering(region: string, nowMs: number): BlockOffering {
  return {
    id: `cb-${region}`,
    type: 'p5.48xlarge',
    count: 4,
    zone: `${region}a`,
    currency: 'USD',
    tenancy: 'default',
    startsAtMs: nowMs + HOUR_MS,
    endsAtMs: nowMs + HOUR_MS + 7 * DAY_MS,
    upfrontFee: '1000.00',
  }
}
