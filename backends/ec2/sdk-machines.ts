import {
  CreateFleetCommand,
  CreateLaunchTemplateCommand,
  DeleteVolumeCommand,
  GetConsoleOutputCommand,
  paginateDescribeInstances,
  paginateDescribeVolumes,
  RunInstancesCommand,
  TerminateInstancesCommand,
  type CreateFleetCommandInput,
  type CreateFleetCommandOutput,
  type Filter,
  type Instance,
  type LaunchTemplateAndOverridesResponse,
  type RequestLaunchTemplateData,
  type RunInstancesCommandInput,
  type Tag,
  type _InstanceType,
} from '@aws-sdk/client-ec2'
import { AwsError } from './api'
import type {
  FleetAnswer,
  FleetRequest,
  Machine,
  MachinesApi,
  Pool,
  ReservedRequest,
  TemplateSpec,
} from './api'
import type { Clients } from './sdk'
import { call } from './sdk-errors'

/** More values than this in one filter are refused. */
const FILTER_VALUES_MAX = 200
const PAGE = 1_000

export function createMachinesApi({ reading, changing }: Clients): MachinesApi {
  const find = (filters: Filter[], signal: AbortSignal): Promise<Machine[]> =>
    call(signal, async () => {
      const found: Machine[] = []
      const pages = paginateDescribeInstances(
        { client: reading.ec2, pageSize: PAGE },
        { Filters: filters },
        { abortSignal: signal },
      )
      for await (const { Reservations } of pages)
        found.push(...(Reservations ?? []).flatMap(({ Instances }) => (Instances ?? []).map(machineOf)))
      return found
    })
  return {
    createFleet: (request, signal) =>
      call(signal, async () => {
        const answer = await changing.ec2.send(new CreateFleetCommand(fleetInput(request)), {
          abortSignal: signal,
        })
        return fleetAnswer(answer)
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
    createTemplate: (spec, signal) =>
      call(signal, async () => {
        await changing.ec2.send(
          new CreateLaunchTemplateCommand({
            LaunchTemplateName: spec.name,
            // Without a token of ours: with one that was used before, a template that was deleted would not be made again.
            VersionDescription: 'Made by Crucible; never changed',
            LaunchTemplateData: templateData(spec),
            TagSpecifications: [{ ResourceType: 'launch-template', Tags: tagList(spec.tags) }],
          }),
          { abortSignal: signal },
        )
      }),
    byId: async (ids, signal) => {
      const found: Machine[] = []
      // By filter, because one id that is not there fails the whole call where ids are named.
      for (let at = 0; at < ids.length; at += FILTER_VALUES_MAX) {
        const some = ids.slice(at, at + FILTER_VALUES_MAX)
        found.push(...(await find([{ Name: 'instance-id', Values: some }], signal)))
      }
      return found
    },
    byTag: ({ name, value }, signal) => find([{ Name: `tag:${name}`, Values: [value] }], signal),
    terminate: (id, signal) =>
      call(signal, async () => {
        await changing.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }), { abortSignal: signal })
      }),
    ...volumesApi({ reading, changing }),
    console: (id, signal) =>
      call(signal, async () => {
        const { Output } = await reading.ec2.send(new GetConsoleOutputCommand({ InstanceId: id }), {
          abortSignal: signal,
        })
        return Output === undefined || Output === '' ? undefined : Buffer.from(Output, 'base64').toString()
      }),
  }
}

function fleetAnswer(answer: CreateFleetCommandOutput): FleetAnswer {
  return {
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

function volumesApi({ reading, changing }: Clients): Pick<MachinesApi, 'looseVolumes' | 'deleteVolume'> {
  return {
    looseVolumes: ({ name, value }, signal) =>
      call(signal, async () => {
        const Filters = [
          { Name: `tag:${name}`, Values: [value] },
          { Name: 'status', Values: ['available'] },
        ]
        const volumes = []
        const pages = paginateDescribeVolumes({ client: reading.ec2 }, { Filters }, { abortSignal: signal })
        for await (const { Volumes } of pages) volumes.push(...(Volumes ?? []))
        return volumes.map(({ VolumeId, State, AvailabilityZone, Size, CreateTime, Tags }) => ({
          id: VolumeId!,
          state: State ?? 'available',
          zone: AvailabilityZone ?? '',
          sizeGiB: Size ?? 0,
          createdAtMs: CreateTime?.getTime() ?? 0,
          tags: tagsOf(Tags),
        }))
      }),
    deleteVolume: (id, signal) =>
      call(signal, async () => {
        await changing.ec2.send(new DeleteVolumeCommand({ VolumeId: id }), { abortSignal: signal })
      }),
  }
}

/** One machine from any of the pools, at once or not at all: such a fleet starts no second one later. */
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
        Overrides: pools.map(({ type, subnet }, at) => ({
          // The SDK's list of types is older than the newest type.
          InstanceType: type as _InstanceType,
          SubnetId: subnet,
          ...(capacityType === 'on-demand' && { Priority: at }),
        })),
      },
    ],
    TagSpecifications: [{ ResourceType: 'fleet', Tags }, ...machineTags(tags)],
  }
}

const TAGGED = ['instance', 'volume', 'network-interface'] as const

function machineTags(
  tags: Record<string, string>,
): NonNullable<CreateFleetCommandInput['TagSpecifications']> {
  const Tags = tagList(tags)
  return TAGGED.map((ResourceType) => ({ ResourceType, Tags }))
}

/** Where the reservation has no place the launch fails: what names one goes nowhere else. */
function reservedInput(request: ReservedRequest): RunInstancesCommandInput {
  const { token, templateName, pool, reservation, isBlock, tags } = request
  return {
    ClientToken: token,
    MinCount: 1,
    MaxCount: 1,
    LaunchTemplate: { LaunchTemplateName: templateName, Version: '1' },
    InstanceType: pool.type as _InstanceType,
    // Names the zone as well: the token counts for one.
    SubnetId: pool.subnet,
    CapacityReservationSpecification: {
      CapacityReservationPreference: 'capacity-reservations-only',
      CapacityReservationTarget: { CapacityReservationId: reservation },
    },
    ...(isBlock && { InstanceMarketOptions: { MarketType: 'capacity-block' } }),
    TagSpecifications: machineTags(tags),
  }
}

function poolOf({ Overrides }: LaunchTemplateAndOverridesResponse = {}): Partial<Pool> {
  return {
    ...(Overrides?.InstanceType && { type: Overrides.InstanceType }),
    ...(Overrides?.SubnetId && { subnet: Overrides.SubnetId }),
  }
}

function templateData(spec: TemplateSpec): RequestLaunchTemplateData {
  return {
    ImageId: spec.image,
    IamInstanceProfile: { Name: spec.profile },
    SecurityGroupIds: spec.securityGroups,
    // Else a machine on demand would take a place of whichever open reservation fits it, whoever holds it for what.
    ...(spec.avoidsReservations && {
      CapacityReservationSpecification: { CapacityReservationPreference: 'none' },
    }),
    BlockDeviceMappings: [
      {
        DeviceName: spec.rootDevice,
        Ebs: { VolumeSize: spec.diskGiB, VolumeType: 'gp3', DeleteOnTermination: true },
      },
    ],
    UserData: Buffer.from(spec.userData).toString('base64'),
    InstanceInitiatedShutdownBehavior: 'terminate',
    MetadataOptions: {
      HttpEndpoint: 'enabled',
      HttpTokens: 'required',
      // A container with a network of its own is one hop away, and gets none of the machine's credentials.
      HttpPutResponseHopLimit: 1,
      InstanceMetadataTags: 'enabled',
    },
  }
}

function machineOf(instance: Instance): Machine {
  const { StateReason } = instance
  const reservation = reservationOf(instance)
  return {
    id: instance.InstanceId!,
    state: instance.State?.Name ?? 'pending',
    type: instance.InstanceType ?? '',
    zone: instance.Placement?.AvailabilityZone ?? '',
    ...(instance.SubnetId && { subnet: instance.SubnetId }),
    capacityType: capacityTypeOf(instance.InstanceLifecycle, reservation),
    ...(reservation && { reservation }),
    launchedAtMs: instance.LaunchTime?.getTime() ?? 0,
    tags: tagsOf(instance.Tags),
    ...(StateReason?.Code && { reason: { code: StateReason.Code, message: StateReason.Message ?? '' } }),
    ...(instance.StateTransitionReason && { transition: instance.StateTransitionReason }),
  }
}

/** What it is in, or what it was launched into: what it is in changes when a reservation ends under it. */
function reservationOf({
  CapacityReservationId: own,
  CapacityReservationSpecification: wish,
}: Instance): string | undefined {
  return own ?? wish?.CapacityReservationTarget?.CapacityReservationId
}

function capacityTypeOf(
  lifecycle: string | undefined,
  reservation: string | undefined,
): Machine['capacityType'] {
  if (lifecycle === undefined || lifecycle === '') return reservation === undefined ? 'on-demand' : 'reserved'
  return lifecycle === 'spot' ? 'spot' : 'reserved'
}

function tagList(tags: Record<string, string>): Tag[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }))
}

export function tagsOf(tags: Tag[] | undefined): Record<string, string> {
  return Object.fromEntries((tags ?? []).map(({ Key, Value }) => [Key ?? '', Value ?? '']))
}
