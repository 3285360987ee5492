import {
  CreateLaunchTemplateCommand,
  DeleteVolumeCommand,
  GetConsoleOutputCommand,
  paginateDescribeInstances,
  paginateDescribeVolumes,
  TerminateInstancesCommand,
  type Filter,
  type RequestLaunchTemplateData,
} from '@aws-sdk/client-ec2'
import type { Machine, MachinesApi, TemplateSpec } from './api'
import type { Clients } from './index'
import { createBuyingApi, rootDisk } from './buying'
import { call } from './errors'
import { machineOf, tagList, tagsOf } from './machine'

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
    ...createBuyingApi({ reading, changing }),
    createTemplate: (spec, signal) =>
      call(signal, async () => {
        await changing.ec2.send(
          new CreateLaunchTemplateCommand({
            LaunchTemplateName: spec.name,
            // The request has no token: with a token that was used before, a deleted template would not be created again.
            VersionDescription: 'Made by Crucible; never changed',
            LaunchTemplateData: templateData(spec),
            TagSpecifications: [{ ResourceType: 'launch-template', Tags: tagList(spec.tags) }],
          }),
          { abortSignal: signal },
        )
      }),
    // Machines are read by filter, because a call that names ids fails if one of them is unknown.
    byId: (ids, signal) => find([{ Name: 'instance-id', Values: ids }], signal),
    byTag: ({ name, values }, signal) => find([{ Name: `tag:${name}`, Values: values }], signal),
    terminate: (ids, signal, { isAbrupt } = { isAbrupt: false }) =>
      call(signal, async () => {
        const wish = { InstanceIds: ids, SkipOsShutdown: isAbrupt || undefined }
        await changing.ec2.send(new TerminateInstancesCommand(wish), { abortSignal: signal })
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
        return volumes.map(
          ({ VolumeId, State, AvailabilityZone, Size, Throughput, Iops, CreateTime, Tags }) => ({
            id: VolumeId!,
            state: State ?? 'available',
            zone: AvailabilityZone ?? '',
            sizeGiB: Size ?? 0,
            speed:
              Throughput === undefined || Iops === undefined
                ? undefined
                : { mibPerSecond: Throughput, iops: Iops },
            createdAtMs: CreateTime?.getTime() ?? 0,
            tags: tagsOf(Tags),
          }),
        )
      }),
    deleteVolume: (id, signal) =>
      call(signal, async () => {
        await changing.ec2.send(new DeleteVolumeCommand({ VolumeId: id }), { abortSignal: signal })
      }),
  }
}

function templateData(spec: TemplateSpec): RequestLaunchTemplateData {
  return {
    ImageId: spec.image,
    IamInstanceProfile: { Name: spec.profile },
    SecurityGroupIds: spec.securityGroups,
    // Without this option, an on-demand machine would use any matching open reservation, even one that is meant for something else.
    CapacityReservationSpecification: spec.avoidsReservations
      ? { CapacityReservationPreference: 'none' }
      : undefined,
    BlockDeviceMappings: [rootDisk({ device: spec.rootDevice, sizeGiB: spec.diskGiB })],
    TagSpecifications: spec.tagsSpotRequests
      ? [{ ResourceType: 'spot-instances-request', Tags: tagList(spec.tags) }]
      : undefined,
    UserData: Buffer.from(spec.userData).toString('base64'),
    InstanceInitiatedShutdownBehavior: 'terminate',
    MetadataOptions: {
      HttpEndpoint: 'enabled',
      HttpTokens: 'required',
      // With a hop limit of 1, a container with a separate network gets none of the machine's credentials.
      HttpPutResponseHopLimit: 1,
      InstanceMetadataTags: 'enabled',
    },
  }
}
