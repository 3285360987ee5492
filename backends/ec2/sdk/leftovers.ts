import {
  CancelSpotInstanceRequestsCommand,
  DeleteLaunchTemplateCommand,
  paginateDescribeLaunchTemplates,
  paginateDescribeSpotInstanceRequests,
  type LaunchTemplate,
} from '@aws-sdk/client-ec2'
import type { LeftoversApi, SpotRequest, Template } from './api-leftovers'
import type { Clients } from './index'
import { call } from './errors'
import { tagsOf } from './machine'

function templateOf({ LaunchTemplateId, LaunchTemplateName, CreateTime, Tags }: LaunchTemplate): Template {
  return {
    id: LaunchTemplateId!,
    name: LaunchTemplateName ?? '',
    createdAtMs: CreateTime?.getTime() ?? 0,
    tags: tagsOf(Tags),
  }
}

export function createLeftoversApi({ reading, changing }: Clients): LeftoversApi {
  return {
    templates: (wanted, signal) =>
      call(signal, async () => {
        const wish =
          'id' in wanted
            ? { LaunchTemplateIds: [wanted.id] }
            : { Filters: [{ Name: `tag:${wanted.tag.name}`, Values: [wanted.tag.value] }] }
        const found: Template[] = []
        try {
          const pages = paginateDescribeLaunchTemplates({ client: reading.ec2 }, wish, {
            abortSignal: signal,
          })
          for await (const { LaunchTemplates = [] } of pages) found.push(...LaunchTemplates.map(templateOf))
        } catch (error) {
          if ((error as Error).name !== 'InvalidLaunchTemplateId.NotFound') throw error
        }
        return found
      }),
    deleteTemplate: (id, signal) =>
      call(signal, async () => {
        await changing.ec2.send(new DeleteLaunchTemplateCommand({ LaunchTemplateId: id }), {
          abortSignal: signal,
        })
      }),
    spotRequests: (id, signal) =>
      call(signal, async () => {
        const found: SpotRequest[] = []
        const pages = paginateDescribeSpotInstanceRequests(
          { client: reading.ec2 },
          {
            Filters: [
              { Name: 'state', Values: ['open', 'active'] },
              ...(id === undefined ? [] : [{ Name: 'spot-instance-request-id', Values: [id] }]),
            ],
          },
          { abortSignal: signal },
        )
        for await (const { SpotInstanceRequests = [] } of pages)
          for (const { SpotInstanceRequestId, State, InstanceId, CreateTime, Tags } of SpotInstanceRequests)
            found.push({
              id: SpotInstanceRequestId!,
              state: State ?? '',
              machineId: InstanceId || undefined,
              createdAtMs: CreateTime?.getTime() ?? 0,
              tags: tagsOf(Tags),
            })
        return found
      }),
    cancelSpotRequest: (id, signal) =>
      call(signal, async () => {
        await changing.ec2.send(new CancelSpotInstanceRequestsCommand({ SpotInstanceRequestIds: [id] }), {
          abortSignal: signal,
        })
      }),
  }
}
