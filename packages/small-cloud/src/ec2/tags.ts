/** Tags of all taggable resources. */
import { z } from 'zod'
import { dryRun, filter, list, paging, tag, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { Ec2 } from './ec2'
import { page, select } from './filters'
import { checkTagList } from './launch-plan'
import type { Region, Tags } from './model'
import { KINDS, visible } from './network-parts'
import { showTags } from './power'

const TAGS_MAX = 50

export function tagWords(tags: Tags): { key: string; value: string }[] {
  return [...tags].map(([key, value]) => ({ key, value }))
}

interface Tagged {
  id: string
  kind: string
  tags: Tags
}

export function tagActions(ec2: Ec2): Record<string, Action> {
  const find = (region: string, ids: readonly string[]): Tagged[] => {
    const all = new Map(tagged(ec2, ec2.region(region)).map((each) => [each.id, each]))
    return ids.map((id) => all.get(id) ?? notFound(id))
  }
  const showChanges = (ids: readonly string[]): void => {
    for (const instance of ids.map((id) => ec2.findInstance(id)))
      if (instance !== undefined) showTags(instance)
  }
  return {
    CreateTags: action({
      input: z.strictObject({ ...dryRun, ResourceId: list(text), Tag: list(tag) }),
      isMutating: true,
      run({ ResourceId: ids, Tag }, { region }) {
        checkTagList(Tag)
        const found = find(region, ids)
        for (const { tags } of found) {
          const own = new Set([...tags.keys(), ...Tag.map(({ Key }) => Key)])
          if (own.size > TAGS_MAX)
            throw new ApiError(
              'TagLimitExceeded',
              'The maximum number of Tags for a resource has been reached.',
            )
        }
        for (const { tags } of found) for (const { Key, Value } of Tag) tags.set(Key, Value)
        showChanges(ids)
        return { return: true }
      },
    }),
    DeleteTags: action({
      input: z.strictObject({
        ...dryRun,
        ResourceId: list(text),
        Tag: list(z.strictObject({ Key: text, Value: text.optional() })).default([]),
      }),
      isMutating: true,
      run({ ResourceId: ids, Tag }, { region }) {
        for (const { tags } of find(region, ids)) {
          if (Tag.length === 0) tags.clear()
          for (const { Key, Value } of Tag)
            if (Value === undefined || tags.get(Key) === Value) tags.delete(Key)
        }
        showChanges(ids)
        return { return: true }
      },
    }),
    DescribeTags: describeTags(ec2),
  }
}

function describeTags(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...paging, Filter: list(filter).default([]) }),
    run({ Filter, ...wish }, { region }) {
      const rows = tagged(ec2, ec2.region(region)).flatMap(({ id, kind, tags }) =>
        [...tags].map(([key, value]) => ({ id, kind, key, value, tags: new Map([[key, value]]) })),
      )
      const found = select(rows, Filter, {
        'resource-id': ({ id }) => id,
        'resource-type': ({ kind }) => kind,
        key: ({ key }) => key,
        value: ({ value }) => value,
      })
      const { items, nextToken } = page(found, wish, { most: 1000 })
      return {
        tagSet: items.map(({ id, kind, key, value }) => ({
          resourceId: id,
          resourceType: kind,
          key,
          value,
        })),
        nextToken,
      }
    },
  })
}

function tagged(ec2: Ec2, region: Region): Tagged[] {
  const of = (kind: string, things: Iterable<{ id: string; tags: Tags }>): Tagged[] =>
    [...things].map(({ id, tags }) => ({ id, kind, tags }))
  return [
    ...of(
      'instance',
      [...region.instances.values()].filter(({ visibleAtMs }) => visibleAtMs <= ec2.nowMs),
    ),
    ...of('volume', region.volumes.values()),
    ...of('spot-instances-request', region.spotRequests.values()),
    ...of('capacity-reservation', region.reservations.values()),
    ...of('launch-template', region.templates.values()),
    ...of('fleet', region.fleets.values()),
    ...of('vpc', visible(ec2, region.vpcs)),
    ...of('subnet', visible(ec2, region.subnets)),
    ...of('internet-gateway', visible(ec2, region.gateways)),
    ...of('route-table', visible(ec2, region.routeTables)),
    ...of('vpc-endpoint', visible(ec2, region.endpoints)),
    ...of('security-group', visible(ec2, region.groups)),
  ]
}

const NOT_FOUND: Readonly<Record<string, string>> = {
  i: 'InvalidInstanceID.NotFound',
  vol: 'InvalidVolume.NotFound',
  sir: 'InvalidSpotInstanceRequestID.NotFound',
  cr: 'InvalidCapacityReservationId.NotFound',
  lt: 'InvalidLaunchTemplateId.NotFound',
  fleet: 'InvalidFleetId.NotFound',
  ...Object.fromEntries(Object.values(KINDS).map(({ prefix, code }) => [prefix, code])),
}

function notFound(id: string): never {
  const code = NOT_FOUND[id.split('-')[0]!]
  if (code === undefined) throw new ApiError('InvalidID', `The ID '${id}' is not valid`)
  throw new ApiError(code, `The ID '${id}' does not exist`)
}
