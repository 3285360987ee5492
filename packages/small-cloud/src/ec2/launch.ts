/** Creates instances. */
import { drawMs } from '../world/world'
import { takeLaunchTokens } from './capacity'
import { speedOf } from './disks'
import type { Ec2 } from './ec2'
import { tagsFor } from './launch-fields'
import type { LaunchPlan } from './launch-plan'
import type { Instance, Region, SpotRequest, Subnet, Tags, Volume } from './model'
import { enter, type CapacityReservation } from './reservation-model'

export interface LaunchOrder {
  subnet: Subnet
  count: number
  reservationId: string
  clientToken: string
  fleetId?: string
  /** The reservations for the first instances. */
  places: CapacityReservation[]
  /** Additional tags. */
  tags?: Tags
}

/** Launches into a subnet after the caller has checked the capacity. Throws `RequestLimitExceeded` when launches come too fast. */
export function launch(ec2: Ec2, plan: LaunchPlan, order: LaunchOrder): Instance[] {
  takeLaunchTokens(ec2, plan.region.plan.name, order.count)
  const instances = Array.from({ length: order.count }, (_, i) =>
    makeInstance(ec2, plan, { ...order, launchIndex: i }),
  )
  for (const instance of instances) {
    plan.region.instances.set(instance.id, instance)
    for (const volume of instance.volumes) plan.region.volumes.set(volume.id, volume)
    if (instance.spotRequest !== undefined)
      plan.region.spotRequests.set(instance.spotRequest.id, instance.spotRequest)
    ec2.parts.lifecycle.begin(instance, { isKeyRefused: plan.isKeyRefused })
  }
  return instances
}

function defaultGroupsOf({ groups }: Region, { vpcId }: Subnet): string[] {
  return groups.filter((group) => group.isDefault && group.vpcId === vpcId).map(({ id }) => id)
}

function makeInstance(ec2: Ec2, plan: LaunchPlan, order: LaunchOrder & { launchIndex: number }): Instance {
  const { ids, world } = ec2.parts
  const { nowMs } = ec2
  const { subnet } = order
  const id = ids.resource('i')
  const number = subnet.used++
  const host = 4 + (number % 4091)
  const hasPublicIp = plan.hasPublicIp ?? subnet.hasPublicAddresses
  const networks = subnet.network.split('.')
  const privateIp = `${networks[0]}.${networks[1]}.${Number(networks[2]) + (host >> 8)}.${host & 255}`
  const instance: Instance = {
    id,
    reservationId: order.reservationId,
    launchIndex: order.launchIndex,
    region: plan.region.plan.name,
    subnet,
    type: plan.type,
    image: plan.image,
    capacity: plan.capacity,
    reservationWish: plan.reservationWish,
    ...(plan.maxUsdPerHour === undefined ? {} : { maxUsdPerHour: plan.maxUsdPerHour }),
    ...(order.fleetId === undefined ? {} : { fleetId: order.fleetId }),
    clientToken: order.clientToken,
    launchedAtMs: nowMs,
    visibleAtMs: nowMs + drawMs(world, 'notFound'),
    privateIp,
    // TEST-NET-3: these addresses are reserved for documentation and lead nowhere.
    ...(hasPublicIp ? { publicIp: `203.0.113.${1 + (host % 254)}` } : {}),
    interfaceId: ids.resource('eni'),
    macAddress: [
      '0a',
      'ff',
      ...privateIp.split('.').map((part) => Number(part).toString(16).padStart(2, '0')),
    ].join(':'),
    groupIds: plan.groupIds.length > 0 ? plan.groupIds : defaultGroupsOf(plan.region, subnet),
    ...(plan.role === undefined ? {} : { role: plan.role }),
    userData: plan.userData,
    shutdownBehavior: plan.shutdownBehavior,
    isProtected: plan.isProtected,
    metadataOptions: plan.metadataOptions,
    volumes: [],
    tags: new Map([...tagsFor('instance', plan.fields), ...(order.tags ?? []), ...ownTags(order, plan)]),
    history: [{ atMs: nowMs, state: 'pending' }],
    isImpaired: false,
    isMarked: false,
  }
  instance.volumes = volumesOf(ec2, plan, instance)
  enter(instance, order.places[order.launchIndex], nowMs)
  if (plan.capacity === 'spot') instance.spotRequest = spotRequestOf(ec2, plan, instance)
  return instance
}

/** Tags that EC2 sets itself. */
function ownTags({ fleetId }: LaunchOrder, plan: LaunchPlan): Tags {
  const tags: Tags = new Map()
  if (fleetId !== undefined) tags.set('aws:ec2:fleet-id', fleetId)
  const { template } = plan
  if (template !== undefined) {
    tags.set('aws:ec2launchtemplate:id', template.id)
    tags.set('aws:ec2launchtemplate:version', String(template.version))
  }
  return tags
}

function volumesOf(ec2: Ec2, plan: LaunchPlan, instance: Instance): Volume[] {
  const given = plan.fields.BlockDeviceMapping ?? []
  const root = plan.image.rootDevice
  const devices = given.some(({ DeviceName }) => DeviceName === root)
    ? given
    : [{ DeviceName: root }, ...given]
  return devices.map(({ DeviceName = root, ...rest }) => {
    const ebs = 'Ebs' in rest ? rest.Ebs : undefined
    const speed = speedOf(ebs ?? {})
    return {
      id: ec2.parts.ids.resource('vol'),
      zone: instance.subnet.zone,
      sizeGiB: ebs?.VolumeSize ?? plan.image.rootGiB,
      type: ebs?.VolumeType ?? 'gp3',
      ...(speed === undefined ? {} : { speed }),
      createdAtMs: instance.launchedAtMs,
      device: DeviceName,
      instanceId: instance.id,
      isDeletedWithInstance: ebs?.DeleteOnTermination ?? DeviceName === root,
      isEncrypted: ebs?.Encrypted ?? false,
      tags: tagsFor('volume', plan.fields),
    }
  })
}

function spotRequestOf(ec2: Ec2, plan: LaunchPlan, instance: Instance): SpotRequest {
  const { nowMs } = ec2
  return {
    id: `sir-${ec2.parts.ids.resource('x').slice(3, 11)}`,
    createdAtMs: nowMs,
    state: 'active',
    status: { code: 'fulfilled', message: 'Your spot request is fulfilled.', atMs: nowMs },
    maxPrice: (plan.maxUsdPerHour ?? plan.type.usdPerHour).toFixed(6),
    instance,
    tags: tagsFor('spot-instances-request', plan.fields),
  }
}
