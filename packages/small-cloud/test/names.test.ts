/** The names on the wire, held against the SDK's own description of EC2. */
import * as sdk from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import { XMLParser } from 'fast-xml-parser'
import { z } from 'zod'
import { ec2Service } from '../src/ec2/service'
import type { Ec2 } from '../src/ec2/ec2'
import { IMAGE, stopClouds, testCloud, UP_MS } from './support'

afterEach(stopClouds)

/** A shape of the SDK as names: a structure by its members, a list by its item, every other one by nothing. */
interface Shape {
  members?: Map<string, () => Shape>
  item?: () => Shape
  itemName?: string
}

type Side = 'request' | 'answer'
const SCHEMAS = sdk as unknown as Record<string, unknown>

function shapeOf(schema: unknown, side: Side): Shape {
  const known = typeof schema === 'function' ? (schema as () => unknown)() : schema
  if (typeof known === 'number') return known & 64 ? { item: () => ({}), itemName: 'item' } : {}
  if (!Array.isArray(known)) return {}
  const [kind, , , , names, types] = known as [number, string, string, unknown, unknown, unknown[]]
  if (kind === 1) {
    const [item, traits] = unpacked(names)
    return { item: () => shapeOf(item, side), itemName: (traits.xmlName as string | undefined) ?? 'item' }
  }
  if (kind !== 3) return {}
  const members = (names as string[]).map((name, i) => {
    const [type, traits] = unpacked(types[i])
    return [wireName(name, traits, side), () => shapeOf(type, side)] as const
  })
  return { members: new Map(members) }
}

function unpacked(type: unknown): [unknown, Record<string, unknown>] {
  const isPair =
    Array.isArray(type) &&
    type.length === 2 &&
    typeof type[0] !== 'string' &&
    typeof type[1] !== 'string' &&
    (typeof type[1] === 'object' || type[1] === 0)
  if (!isPair) return [type, {}]
  const [inner, traits] = type as [unknown, unknown]
  return [inner, typeof traits === 'object' ? (traits as Record<string, unknown>) : {}]
}

function wireName(name: string, traits: Record<string, unknown>, side: Side): string {
  const xmlName = traits.xmlName as string | undefined
  if (side === 'answer') return xmlName ?? name
  if (traits.ec2QueryName !== undefined) return traits.ec2QueryName as string
  return xmlName === undefined ? name : xmlName[0]!.toUpperCase() + xmlName.slice(1)
}

function operation(name: string, side: Side): Shape {
  const schema = SCHEMAS[`${name}$`] as unknown[]
  return shapeOf(schema[side === 'request' ? 4 : 5], side)
}

/** Names in an answer that the SDK does not know; it would drop them without a word. */
function strangers(value: unknown, shape: Shape, path: string): string[] {
  if (shape.item !== undefined) {
    if (value === '') return []
    const inside = value as Record<string, unknown>
    const others = Object.keys(inside).filter((name) => name !== shape.itemName)
    const items = [inside[shape.itemName!]].flat()
    return [
      ...others.map((name) => `${path}.${name}`),
      ...items.flatMap((item) => strangers(item, shape.item!(), `${path}[]`)),
    ]
  }
  if (shape.members === undefined)
    return typeof value === 'object' && Object.keys(value as object).length > 0
      ? [`${path} is no structure`]
      : []
  if (value === '') return []
  if (typeof value !== 'object') return [`${path} is a structure`]
  return Object.entries(value as object).flatMap(([name, each]) => {
    const member = shape.members!.get(name)
    return member === undefined ? [`${path}.${name}`] : strangers(each, member(), `${path}.${name}`)
  })
}

type Json = { properties?: Record<string, Json>; additionalProperties?: Json | boolean; anyOf?: Json[] }

/** Fields of an action of the cloud that the SDK cannot send. */
function unsendable(schema: Json, shape: Shape, path: string): string[] {
  const branch = schema.anyOf?.[0] ?? schema
  if (shape.item !== undefined) {
    const item = branch.additionalProperties
    return typeof item === 'object' ? unsendable(item, shape.item(), `${path}[]`) : [`${path} is a list`]
  }
  return Object.entries(branch.properties ?? {}).flatMap(([name, inner]) => {
    const member = shape.members?.get(name)
    return member === undefined ? [`${path}.${name}`] : unsendable(inner, member(), `${path}.${name}`)
  })
}

const ACTIONS = ec2Service({ parts: { world: {}, market: {} } } as unknown as Ec2).actions

describe('requests', () => {
  it.each(Object.keys(ACTIONS))('%s knows nothing that the SDK does not send', (name) => {
    const schema = z.toJSONSchema(ACTIONS[name]!.input, { io: 'input', unrepresentable: 'any' }) as Json
    expect(Object.keys(schema.properties ?? {}).length).toBeGreaterThan(0)
    expect(unsendable(schema, operation(name, 'request'), name)).toEqual([])
  })
})

describe('answers', () => {
  it('hold nothing that the SDK would drop', async () => {
    const bodies: [string, string][] = []
    const test = await testCloud({
      regions: {
        'us-east-1': {
          zones: ['us-east-1a', 'us-east-1b'],
          subnets: [
            { zone: 'us-east-1a', egress: 'public', isDefault: true },
            { zone: 'us-east-1b', egress: 'nat' },
            { zone: 'us-east-1b', egress: 'endpoints' },
          ],
        },
      },
      stock: [{ type: 'p3.2xlarge', count: 0 }],
      capacityScores: { 'g5.xlarge': 'high' },
      reservations: [
        { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 1, ends: '24h' },
      ],
      blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 8, usdPerInstanceHour: 30 }],
    })
    const { ec2 } = test.clients
    ec2.middlewareStack.add(
      (next, context) => async (args) => {
        const result = await next(args)
        const response = result.response as { body: AsyncIterable<Buffer> }
        const chunks: Buffer[] = []
        for await (const chunk of response.body) chunks.push(chunk)
        const body = Buffer.concat(chunks)
        bodies.push([String(context.commandName).replace(/Command$/, ''), body.toString()])
        response.body = body as never
        return result
      },
      { step: 'deserialize', priority: 'low' },
    )
    await everything(test)
    const parser = new XMLParser({ ignoreAttributes: true, parseTagValue: false, trimValues: false })
    const answered = new Set(bodies.map(([name]) => name))
    const found = bodies.flatMap(([name, body]) => {
      const { requestId, ...fields } = (parser.parse(body) as Record<string, Record<string, unknown>>)[
        `${name}Response`
      ]!
      expect(requestId).toEqual(expect.any(String))
      // What a call that only does something says; no SDK reads it.
      delete fields.return
      return strangers(fields, operation(name, 'answer'), name)
    })
    expect([...new Set(found)]).toEqual([])
    expect(Object.keys(ACTIONS).filter((name) => !answered.has(name))).toEqual([])
  })
})

/** Calls every action once with something to tell. */
async function everything({ clients: { ec2 }, clock }: Awaited<ReturnType<typeof testCloud>>): Promise<void> {
  const send = (name: string, input: object = {}): Promise<object> => {
    const Command = SCHEMAS[`${name}Command`] as new (input: object) => never
    return ec2.send(new Command(input))
  }
  await send('GetEbsDefaultKmsKeyId')
  await send('CreateLaunchTemplate', {
    LaunchTemplateName: 'mine',
    VersionDescription: 'first',
    TagSpecifications: [{ ResourceType: 'launch-template', Tags: [{ Key: 'a', Value: 'b' }] }],
    LaunchTemplateData: {
      ImageId: IMAGE,
      InstanceType: 'g5.xlarge',
      IamInstanceProfile: { Name: 'crucible-machine' },
      UserData: 'aGk=',
      EbsOptimized: true,
      Monitoring: { Enabled: false },
      MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
      NetworkInterfaces: [{ DeviceIndex: 0, AssociatePublicIpAddress: true }],
      BlockDeviceMappings: [
        {
          DeviceName: '/dev/sda1',
          Ebs: { VolumeSize: 70, VolumeType: 'gp3', Iops: 3000, Throughput: 125, Encrypted: false },
        },
      ],
      TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'a', Value: 'b' }] }],
    },
  })
  await send('CreateLaunchTemplateVersion', {
    LaunchTemplateName: 'mine',
    SourceVersion: '1',
    LaunchTemplateData: {
      InstanceMarketOptions: {
        MarketType: 'spot',
        SpotOptions: { MaxPrice: '1', SpotInstanceType: 'one-time' },
      },
      Placement: { Tenancy: 'default' },
      CapacityReservationSpecification: { CapacityReservationPreference: 'none' },
    },
  })
  for (const [name, key] of [
    ['DescribeLaunchTemplates', 'LaunchTemplateNames'],
    ['DescribeLaunchTemplateVersions', 'LaunchTemplateName'],
  ] as const)
    await send(name, { [key]: key.endsWith('s') ? ['mine'] : 'mine' })
  const fleet = (await send('CreateFleet', {
    Type: 'instant',
    LaunchTemplateConfigs: [
      {
        LaunchTemplateSpecification: { LaunchTemplateName: 'mine', Version: '1' },
        Overrides: [
          { InstanceType: 'p3.2xlarge', AvailabilityZone: 'us-east-1a', MaxPrice: '3', Priority: 1 },
          { InstanceType: 'g5.xlarge', AvailabilityZone: 'us-east-1a' },
        ],
      },
    ],
    TargetCapacitySpecification: { TotalTargetCapacity: 2, SpotTargetCapacity: 1, OnDemandTargetCapacity: 1 },
    TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'a', Value: 'b' }] }],
  })) as sdk.CreateFleetResult
  const { Instances } = (await send('RunInstances', {
    LaunchTemplate: { LaunchTemplateName: 'mine', Version: '2' },
    MinCount: 1,
    MaxCount: 1,
  })) as sdk.Reservation
  const InstanceId = Instances![0]!.InstanceId!
  const volume = (await send('RunInstances', {
    ImageId: IMAGE,
    MinCount: 1,
    MaxCount: 1,
    BlockDeviceMappings: [{ DeviceName: '/dev/sdf', Ebs: { DeleteOnTermination: false } }],
  })) as sdk.Reservation
  const { CapacityReservation } = (await send('CreateCapacityReservation', {
    InstanceType: 'g5.xlarge',
    InstancePlatform: 'Linux/UNIX',
    InstanceCount: 1,
    AvailabilityZone: 'us-east-1a',
    TagSpecifications: [{ ResourceType: 'capacity-reservation', Tags: [{ Key: 'a', Value: 'b' }] }],
  })) as sdk.CreateCapacityReservationResult
  const { CapacityReservationId } = CapacityReservation!
  await send('RunInstances', {
    ImageId: IMAGE,
    InstanceType: 'g5.xlarge',
    MinCount: 1,
    MaxCount: 1,
    Placement: { AvailabilityZone: 'us-east-1a' },
    CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId } },
  })
  const { CapacityReservations } = (await send(
    'DescribeCapacityReservations',
  )) as sdk.DescribeCapacityReservationsResult
  const ofBlock = CapacityReservations!.find(({ ReservationType }) => ReservationType === 'capacity-block')!
  await send('RunInstances', {
    ImageId: IMAGE,
    InstanceType: 'p5.48xlarge',
    MinCount: 1,
    MaxCount: 1,
    Placement: { AvailabilityZone: 'us-east-1a' },
    InstanceMarketOptions: { MarketType: 'capacity-block' },
    CapacityReservationSpecification: {
      CapacityReservationTarget: { CapacityReservationId: ofBlock.CapacityReservationId },
    },
  })
  await send('DescribeCapacityBlocks')
  const { CapacityBlockOfferings } = (await send('DescribeCapacityBlockOfferings', {
    InstanceType: 'p5.48xlarge',
    InstanceCount: 2,
    CapacityDurationHours: 24,
  })) as sdk.DescribeCapacityBlockOfferingsResult
  await send('PurchaseCapacityBlock', {
    CapacityBlockOfferingId: CapacityBlockOfferings![0]!.CapacityBlockOfferingId,
    InstancePlatform: 'Linux/UNIX',
    TagSpecifications: [{ ResourceType: 'capacity-reservation', Tags: [{ Key: 'a', Value: 'b' }] }],
  })
  await send('DescribeCapacityBlockStatus')
  const extended = { CapacityReservationId: ofBlock.CapacityReservationId }
  const { CapacityBlockExtensionOfferings } = (await send('DescribeCapacityBlockExtensionOfferings', {
    ...extended,
    CapacityBlockExtensionDurationHours: 24,
  })) as sdk.DescribeCapacityBlockExtensionOfferingsResult
  const [{ CapacityBlockExtensionOfferingId }] = CapacityBlockExtensionOfferings as [
    sdk.CapacityBlockExtensionOffering,
  ]
  await send('PurchaseCapacityBlockExtension', { ...extended, CapacityBlockExtensionOfferingId })
  await send('DescribeCapacityBlockExtensionHistory')
  await send('DescribeCapacityReservationTopology')
  await send('GetSpotPlacementScores', { InstanceTypes: ['g5.xlarge'], TargetCapacity: 1 })
  await send('GetCapacityManagerSupportabilityScores', {
    MarketType: 'spot',
    CapacityAmount: 1,
    CapacityUnit: 'instances',
    CapacityAvailabilityZoneIds: ['use1-az1'],
    InstanceTypes: ['g5.xlarge'],
  })
  await send('ModifyCapacityReservation', { CapacityReservationId, InstanceCount: 2 })
  await send('CreateCapacityReservationBySplitting', {
    SourceCapacityReservationId: CapacityReservationId,
    InstanceCount: 1,
    TagSpecifications: [{ ResourceType: 'capacity-reservation', Tags: [{ Key: 'a', Value: 'b' }] }],
  })
  await send('CancelCapacityReservation', { CapacityReservationId })
  const future = (await send('CreateCapacityReservation', {
    InstanceType: 'g5.xlarge',
    InstancePlatform: 'Linux/UNIX',
    InstanceCount: 8,
    AvailabilityZone: 'us-east-1a',
    InstanceMatchCriteria: 'targeted',
    StartDate: new Date(clock.nowMs() + 10 * 86_400_000),
    CommitmentDuration: 14 * 86_400,
    DeliveryPreference: 'incremental',
  })) as sdk.CreateCapacityReservationResult
  await clock.advance(1_000)
  const ofFuture = { CapacityReservationId: future.CapacityReservation!.CapacityReservationId }
  const NewStartDate = new Date(clock.nowMs() + 12 * 86_400_000)
  const later = (await send('CreateCapacityReservationDateChangeQuote', {
    ...ofFuture,
    NewStartDate,
  })) as sdk.CreateCapacityReservationDateChangeQuoteResult
  await send('ModifyCapacityReservation', {
    ...ofFuture,
    StartDate: NewStartDate,
    QuoteId: later.CapacityReservationModificationQuote!.CapacityReservationModificationQuoteId,
    AcceptModificationTerms: true,
  })
  const quoted = (await send('CreateCapacityReservationCancellationQuote', {
    ...ofFuture,
    TagSpecifications: [
      { ResourceType: 'capacity-reservation-cancellation-quote', Tags: [{ Key: 'a', Value: 'b' }] },
    ],
  })) as sdk.CreateCapacityReservationCancellationQuoteResult
  await send('DescribeCapacityReservationCancellationQuotes')
  await send('CancelCapacityReservation', {
    ...ofFuture,
    ApplyCancellationCharges: 'commitment-wind-down',
    QuoteId: quoted.CapacityReservationCancellationQuote!.CapacityReservationCancellationQuoteId,
  })
  await send('DescribeCapacityReservations')
  await clock.advance(UP_MS)
  for (const name of [
    'DescribeInstances',
    'DescribeVolumes',
    'DescribeTags',
    'DescribeRegions',
    'DescribeAvailabilityZones',
    'DescribeSubnets',
    'DescribeVpcs',
  ])
    await send(name)
  for (const name of [
    'DescribeSecurityGroups',
    'DescribeRouteTables',
    'DescribeNatGateways',
    'DescribeVpcEndpoints',
    'DescribeInternetGateways',
    'DescribeImages',
    'DescribeInstanceTypes',
  ])
    await send(name)
  await send('DescribeInstanceTypeOfferings', { LocationType: 'availability-zone' })
  await send('DescribeInstanceStatus', { IncludeAllInstances: true })
  await send('DescribeSpotPriceHistory', { InstanceTypes: ['g5.xlarge'] })
  await send('GetConsoleOutput', { InstanceId })
  for (const Attribute of ['instanceType', 'userData', 'groupSet', 'disableApiTermination'])
    await send('DescribeInstanceAttribute', { InstanceId, Attribute })
  const { SpotInstanceRequests } = (await send(
    'DescribeSpotInstanceRequests',
  )) as sdk.DescribeSpotInstanceRequestsResult
  await send('CancelSpotInstanceRequests', {
    SpotInstanceRequestIds: SpotInstanceRequests!.map((each) => each.SpotInstanceRequestId!),
  })
  await send('CreateTags', { Resources: [InstanceId], Tags: [{ Key: 'c', Value: '' }] })
  await send('DeleteTags', { Resources: [InstanceId], Tags: [{ Key: 'c' }] })
  await send('DescribeFleets', { FleetIds: [fleet.FleetId] })
  await send('DeleteFleets', { FleetIds: [fleet.FleetId, 'fleet-none'], TerminateInstances: true })
  const InstanceIds = [volume.Instances![0]!.InstanceId]
  await send('StopInstances', { InstanceIds })
  await clock.advance(UP_MS)
  await send('StartInstances', { InstanceIds })
  await send('TerminateInstances', { InstanceIds: [InstanceId, volume.Instances![0]!.InstanceId] })
  await clock.advance(UP_MS)
  const { Volumes } = (await send('DescribeVolumes', {
    Filters: [{ Name: 'status', Values: ['available'] }],
  })) as sdk.DescribeVolumesResult
  await send('DeleteVolume', { VolumeId: Volumes![0]!.VolumeId })
  await send('DescribeInstances')
  await send('DeleteLaunchTemplate', { LaunchTemplateName: 'mine' })
}
