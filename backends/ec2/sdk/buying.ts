import {
  CreateFleetCommand,
  DescribeFleetsCommand,
  RunInstancesCommand,
  type CreateFleetCommandInput,
  type CreateFleetCommandOutput,
  type EbsBlockDevice,
  type FleetEbsBlockDeviceRequest,
  type LaunchTemplateAndOverridesResponse,
  type RunInstancesCommandInput,
  type _InstanceType,
} from '@aws-sdk/client-ec2'
import {
  AwsError,
  type FleetAnswer,
  type FleetRequest,
  type MachinesApi,
  type Pool,
  type ReservedRequest,
  type RootDisk,
} from './api'
import type { Clients } from './index'
import { call } from './errors'
import { machineOf, tagList } from './machine'

/** Calls that buy machines, and the provider's record of them. */
export function createBuyingApi({
  reading,
  changing,
}: Clients): Pick<MachinesApi, 'createFleet' | 'fleet' | 'runReserved'> {
  return {
    createFleet: (request, signal) =>
      call(signal, async () => {
        const answer = await changing.ec2.send(new CreateFleetCommand(fleetInput(request)), {
          abortSignal: signal,
        })
        return fleetAnswer(answer)
      }),
    fleet: (id, signal) =>
      call(signal, async () => {
        const { Fleets } = await reading.ec2.send(new DescribeFleetsCommand({ FleetIds: [id] }), {
          abortSignal: signal,
        })
        const [fleet] = Fleets ?? []
        return fleet === undefined ? undefined : fleetAnswer(fleet)
      }),
    runReserved: (request, signal) =>
      call(signal, async () => {
        const input = new RunInstancesCommand(reservedInput(request))
        const { Instances } = await changing.ec2.send(input, { abortSignal: signal })
        const [instance] = Instances ?? []
        if (instance === undefined)
          throw new AwsError('an answer without a machine', { code: 'Unknown', reach: 'unanswered' })
        return machineOf(instance)
      }),
  }
}

function fleetAnswer(
  answer: Pick<CreateFleetCommandOutput, 'FleetId' | 'Instances' | 'Errors'>,
): FleetAnswer {
  return {
    fleetId: answer.FleetId || undefined,
    machines: (answer.Instances ?? []).flatMap(({ InstanceIds = [], LaunchTemplateAndOverrides }) =>
      InstanceIds.map((id) => ({ id, pool: poolOf(LaunchTemplateAndOverrides) })),
    ),
    errors: (answer.Errors ?? []).map(({ ErrorCode, ErrorMessage, LaunchTemplateAndOverrides }) => ({
      code: ErrorCode ?? 'Unknown',
      message: ErrorMessage ?? '',
      pool: poolOf(LaunchTemplateAndOverrides),
    })),
  }
}

/**
 * Returns the input of a fleet: one machine from any of the pools, immediately or not at all, because an instant fleet never launches
 * later.
 */
function fleetInput({
  token,
  capacityType,
  templateName,
  pools,
  tags,
}: FleetRequest): CreateFleetCommandInput {
  const Tags = tagList(tags)
  return {
    ClientToken: token,
    Type: 'instant',
    TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: capacityType },
    ...(capacityType === 'spot'
      ? {
          SpotOptions: {
            AllocationStrategy: 'price-capacity-optimized',
            InstanceInterruptionBehavior: 'terminate',
          },
        }
      : { OnDemandOptions: { AllocationStrategy: 'prioritized' } }),
    LaunchTemplateConfigs: [
      {
        LaunchTemplateSpecification: { LaunchTemplateName: templateName, Version: '1' },
        Overrides: pools.map(({ type, subnet, disk }, at) => ({
          // The SDK's list of types is older than the newest type.
          InstanceType: type as _InstanceType,
          SubnetId: subnet,
          // Each type has its own speed, so that one template serves them all.
          BlockDeviceMappings: disk && [rootDisk(disk)],
          Priority: capacityType === 'on-demand' ? at : undefined,
        })),
      },
    ],
    TagSpecifications: [{ ResourceType: 'fleet', Tags }, ...machineTags(tags)],
  }
}

/** A machine's root disk, whole: what a launch says about a device replaces what its template says. */
export function rootDisk({ device, sizeGiB, speed }: RootDisk): {
  DeviceName: string
  Ebs: EbsBlockDevice & FleetEbsBlockDeviceRequest
} {
  return {
    DeviceName: device,
    Ebs: {
      VolumeSize: sizeGiB,
      VolumeType: 'gp3',
      Throughput: speed?.mibPerSecond,
      Iops: speed?.iops,
      // With the account's default key for disks: AWS's own, unless the account has set another one.
      Encrypted: true,
      DeleteOnTermination: true,
    },
  }
}

const TAGGED = ['instance', 'volume', 'network-interface'] as const

function machineTags(
  tags: Record<string, string>,
): NonNullable<CreateFleetCommandInput['TagSpecifications']> {
  const Tags = tagList(tags)
  return TAGGED.map((ResourceType) => ({ ResourceType, Tags }))
}

/**
 * Returns the input of a launch into a reservation. If the reservation is full the launch fails, because a launch that names one never goes
 * elsewhere.
 */
function reservedInput(request: ReservedRequest): RunInstancesCommandInput {
  const { token, templateName, pool, reservation, isBlock, tags } = request
  return {
    ClientToken: token,
    MinCount: 1,
    MaxCount: 1,
    LaunchTemplate: { LaunchTemplateName: templateName, Version: '1' },
    InstanceType: pool.type as _InstanceType,
    // The subnet also names the zone, because the token alone identifies the request.
    SubnetId: pool.subnet,
    BlockDeviceMappings: pool.disk && [rootDisk(pool.disk)],
    CapacityReservationSpecification: {
      CapacityReservationPreference: 'capacity-reservations-only',
      CapacityReservationTarget: { CapacityReservationId: reservation },
    },
    InstanceMarketOptions: isBlock ? { MarketType: 'capacity-block' } : undefined,
    TagSpecifications: machineTags(tags),
  }
}

function poolOf({ Overrides }: LaunchTemplateAndOverridesResponse = {}): Partial<Pool> {
  return {
    type: Overrides?.InstanceType ? Overrides.InstanceType : undefined,
    subnet: Overrides?.SubnetId ? Overrides.SubnetId : undefined,
  }
}
