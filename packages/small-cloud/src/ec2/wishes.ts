/** The permissions that calls need on single resources, whose tags policies may check. */
import type { AuthorizationRequest } from '../identity/policy'
import type { Call } from '../wire/service'
import type { Ec2 } from './ec2'
import type { Region, Tags } from './model'

/**
 * Returns the permissions of a call. Calls without special rules are authorized by their name and their Region. A missing resource is not
 * checked, because the action reports it.
 */
export function wishesOf(
  ec2: Ec2,
  input: Readonly<Record<string, unknown>>,
  call: Call,
): AuthorizationRequest[] {
  const name = `${call.service}:${call.action}`
  const arnOf = (resource: string): string =>
    `arn:aws:ec2:${call.region}:${ec2.parts.world.account}:${resource}`
  const wish = (resource: string, context: AuthorizationRequest['context'] = {}): AuthorizationRequest => ({
    action: name,
    resource,
    context: { 'aws:RequestedRegion': call.region, ...context },
  })
  const tagged = TAGGED[name]?.(ec2.region(call.region), input) ?? []
  const things = tagged.map(({ kind, id, tags }) => wish(arnOf(`${kind}/${id}`), contextOf(tags)))
  if (name === 'ssm:SendCommand') {
    const document = `arn:aws:ssm:${call.region}::document/${String(input['DocumentName'])}`
    return [wish(document), ...things]
  }
  return [
    ...things,
    ...(MAKES[name] === undefined ? [] : [wish(arnOf(`${MAKES[name]}/*`), requestTagsOf(input))]),
    ...tagsAtMaking(input).map((kind) => ({
      ...wish(arnOf(`${kind}/*`), { 'ec2:CreateAction': call.action, ...requestTagsOf(input) }),
      action: 'ec2:CreateTags',
    })),
  ]
}

interface Tagged {
  kind: string
  id: string
  tags: Tags
}

type Find = (region: Region, input: Readonly<Record<string, unknown>>) => Tagged[]

const named =
  (
    kind: string,
    field: string,
    among: (region: Region) => ReadonlyMap<string, { id: string; tags: Tags }>,
  ): Find =>
  (region, input) =>
    [input[field] ?? []].flat().flatMap((id) => {
      const found = among(region).get(id as string)
      return found === undefined ? [] : [{ kind, id: found.id, tags: found.tags }]
    })

const ownReservation = (field: string): Find =>
  named('capacity-reservation', field, ({ reservations }) => reservations)

const TAGGED: Readonly<Record<string, Find>> = {
  'ec2:GetConsoleOutput': named('instance', 'InstanceId', ({ instances }) => instances),
  'ec2:TerminateInstances': named('instance', 'InstanceId', ({ instances }) => instances),
  'ec2:DeleteVolume': named('volume', 'VolumeId', ({ volumes }) => volumes),
  'ec2:DeleteLaunchTemplate': (region, { LaunchTemplateId: id, LaunchTemplateName: name }) =>
    [...region.templates.values()]
      .filter((each) => each.id === id || each.name === name)
      .map((each) => ({ kind: 'launch-template', id: each.id, tags: each.tags })),
  'ec2:CreateTags': (region, input) => [
    ...named('instance', 'ResourceId', ({ instances }) => instances)(region, input),
    ...named('volume', 'ResourceId', ({ volumes }) => volumes)(region, input),
    ...named('launch-template', 'ResourceId', ({ templates }) => templates)(region, input),
    ...ownReservation('ResourceId')(region, input),
  ],
  'ec2:CancelSpotInstanceRequests': named(
    'spot-instances-request',
    'SpotInstanceRequestId',
    ({ spotRequests }) => spotRequests,
  ),
  'ec2:ModifyCapacityReservation': ownReservation('CapacityReservationId'),
  'ec2:CancelCapacityReservation': ownReservation('CapacityReservationId'),
  'ec2:CreateCapacityReservationCancellationQuote': ownReservation('CapacityReservationId'),
  'ec2:CreateCapacityReservationDateChangeQuote': ownReservation('CapacityReservationId'),
  'ec2:CreateCapacityReservationBySplitting': ownReservation('SourceCapacityReservationId'),
  'ec2:PurchaseCapacityBlockExtension': ownReservation('CapacityReservationId'),
  'ssm:SendCommand': named('instance', 'InstanceIds', ({ instances }) => instances),
}

function contextOf(tags: Tags): Record<string, string> {
  return Object.fromEntries(
    [...tags].flatMap(([key, value]) => [
      [`aws:ResourceTag/${key}`, value],
      [`ec2:ResourceTag/${key}`, value],
      [`ssm:resourceTag/${key}`, value],
    ]),
  )
}

/** The kinds of resources that calls create, by action: policies may demand tags of these resources. */
const MAKES: Readonly<Record<string, string>> = {
  'ec2:CreateCapacityReservation': 'capacity-reservation',
  'ec2:PurchaseCapacityBlock': 'capacity-reservation',
  'ec2:CreateLaunchTemplate': 'launch-template',
}

interface WantedTags {
  ResourceType: string
  Tag: { Key: string; Value: string }[]
}

/** `CreateCapacityReservation` alone uses the plural name on the wire. */
function wantedTags(input: Readonly<Record<string, unknown>>): WantedTags[] {
  return (input['TagSpecification'] ?? input['TagSpecifications'] ?? []) as WantedTags[]
}

function requestTagsOf(input: Readonly<Record<string, unknown>>): Record<string, string> {
  const tags = wantedTags(input).flatMap(({ Tag }) => Tag)
  return Object.fromEntries(tags.map(({ Key, Value }) => [`aws:RequestTag/${Key}`, Value]))
}

/** Returns the kinds of resources that a call creates with tags, which requires a separate permission. */
function tagsAtMaking(input: Readonly<Record<string, unknown>>): string[] {
  return wantedTags(input)
    .filter(({ Tag }) => Tag.length > 0)
    .map(({ ResourceType }) => ResourceType)
}
