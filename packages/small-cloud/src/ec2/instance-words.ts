/** The XML description of an instance. */
import type { Xml } from '../wire/xml'
import type { Instance, ReservationChoice } from './model'
import { isBlock } from './reservation-model'
import { STATE_CODES, stateAt } from './model'
import { tagWords } from './tags'

export interface Look {
  /** The instant to describe; in the past when lists are stale. */
  atMs: number
  groupNames?: ReadonlyMap<string, string>
}

/** Returns when the end of an instance was ordered or began, which moto also reports. */
function endBegunAtMs({ history }: Instance, atMs: number): number {
  const last = history.findLastIndex((change) => change.atMs <= atMs)
  const [before, change] = [history[last - 1], history[last]!]
  const isItsEnd = before?.state === 'shutting-down' || before?.state === 'stopping'
  return isItsEnd ? before.atMs : change.atMs
}

export function instanceWords(instance: Instance, { atMs, groupNames }: Look): Xml {
  const { state, reason } = stateAt(instance, atMs)
  const { subnet, type, image, role, spotRequest } = instance
  const isGone = state === 'terminated'
  const account = role?.arn.split(':')[4]
  return {
    instanceId: instance.id,
    imageId: image.id,
    instanceState: { code: STATE_CODES[state], name: state },
    privateDnsName: isGone ? '' : hostOf(instance),
    dnsName:
      isGone || instance.publicIp === undefined
        ? ''
        : `ec2-${instance.publicIp.replaceAll('.', '-')}.compute-1.amazonaws.com`,
    reason:
      reason === undefined
        ? ''
        : `${isOrdered(reason.code) ? 'User initiated' : reason.message} (${new Date(endBegunAtMs(instance, atMs)).toISOString().slice(0, 19).replace('T', ' ')} GMT)`,
    amiLaunchIndex: instance.launchIndex,
    productCodes: [],
    instanceType: type.name,
    launchTime: new Date(instance.launchedAtMs),
    placement: {
      availabilityZone: subnet.zone.name,
      availabilityZoneId: subnet.zone.id,
      groupName: '',
      tenancy: 'default',
    },
    monitoring: { state: 'disabled' },
    subnetId: isGone ? undefined : subnet.id,
    vpcId: isGone ? undefined : subnet.vpcId,
    privateIpAddress: isGone ? undefined : instance.privateIp,
    ipAddress: isGone ? undefined : instance.publicIp,
    sourceDestCheck: true,
    groupSet: isGone ? [] : groupsOf(instance, groupNames),
    stateReason: reason && { code: reason.code, message: reason.message },
    architecture: image.architecture,
    rootDeviceType: 'ebs',
    rootDeviceName: image.rootDevice,
    blockDeviceMapping: isGone ? [] : instance.volumes.map((volume) => deviceWords(instance, volume)),
    virtualizationType: 'hvm',
    clientToken: instance.clientToken,
    tagSet: tagWords(instance.tags),
    hypervisor: 'xen',
    networkInterfaceSet: isGone ? [] : [interfaceWords(instance, groupNames)],
    iamInstanceProfile: role && {
      arn: `arn:aws:iam::${account}:instance-profile/${role.name}`,
      id: role.id.replace('AROA', 'AIPA'),
    },
    instanceLifecycle: lifecycleOf(instance),
    capacityReservationId: instance.place?.id,
    capacityBlockId: instance.place?.blockId,
    spotInstanceRequestId: spotRequest?.id,
    ebsOptimized: false,
    enaSupport: true,
    ...optionWords(instance, state),
  }
}

/** Returns the purchase option; `undefined` for on-demand. */
export function lifecycleOf({ capacity, place }: Instance): string | undefined {
  if (place !== undefined && isBlock(place)) return place.kind
  return capacity === 'spot' ? 'spot' : undefined
}

function choiceWords({ preference, target }: ReservationChoice): Xml {
  return target === undefined
    ? { capacityReservationPreference: preference }
    : { capacityReservationTarget: { capacityReservationId: target } }
}

/** Options chosen at the launch, or their defaults. */
function optionWords(instance: Instance, state: string): Record<string, Xml> {
  const { type, metadataOptions: metadata } = instance
  return {
    cpuOptions: { coreCount: Math.max(1, type.vcpus / 2), threadsPerCore: Math.min(2, type.vcpus) },
    capacityReservationSpecification: choiceWords(instance.reservationWish),
    hibernationOptions: { configured: false },
    enclaveOptions: { enabled: false },
    metadataOptions: {
      state: state === 'pending' ? 'pending' : 'applied',
      httpTokens: metadata.httpTokens,
      httpPutResponseHopLimit: metadata.hopLimit,
      httpEndpoint: metadata.httpEndpoint,
      httpProtocolIpv6: 'disabled',
      instanceMetadataTags: metadata.instanceMetadataTags,
    },
    platformDetails: 'Linux/UNIX',
    usageOperation: 'RunInstances',
    usageOperationUpdateTime: new Date(instance.launchedAtMs),
    maintenanceOptions: { autoRecovery: 'default' },
    currentInstanceBootMode: 'legacy-bios',
  }
}

/** `User initiated` means a request from outside or from inside the machine. */
function isOrdered(code: string): boolean {
  return code === 'Client.UserInitiatedShutdown'
}

function hostOf({ privateIp, region }: Instance): string {
  return `ip-${privateIp.replaceAll('.', '-')}.${region === 'us-east-1' ? 'ec2' : `${region}.compute`}.internal`
}

function groupsOf({ groupIds }: Instance, names: ReadonlyMap<string, string> | undefined) {
  return groupIds.map((groupId) => ({ groupId, groupName: names?.get(groupId) ?? groupId }))
}

function deviceWords({ launchedAtMs }: Instance, volume: Instance['volumes'][number]) {
  return {
    deviceName: volume.device,
    ebs: {
      volumeId: volume.id,
      status: 'attached',
      attachTime: new Date(launchedAtMs),
      deleteOnTermination: volume.isDeletedWithInstance,
    },
  }
}

function interfaceWords(instance: Instance, names: ReadonlyMap<string, string> | undefined) {
  const { interfaceId, subnet, privateIp, publicIp, launchedAtMs, macAddress } = instance
  const association =
    publicIp === undefined ? undefined : { publicIp, publicDnsName: '', ipOwnerId: 'amazon' }
  return {
    networkInterfaceId: interfaceId,
    subnetId: subnet.id,
    vpcId: subnet.vpcId,
    description: '',
    status: 'in-use',
    macAddress,
    privateIpAddress: privateIp,
    privateDnsName: hostOf(instance),
    sourceDestCheck: true,
    groupSet: groupsOf(instance, names),
    attachment: {
      attachmentId: interfaceId.replace('eni', 'eni-attach'),
      deviceIndex: 0,
      networkCardIndex: 0,
      status: 'attached',
      attachTime: new Date(launchedAtMs),
      deleteOnTermination: true,
    },
    association,
    privateIpAddressesSet: [
      { privateIpAddress: privateIp, privateDnsName: hostOf(instance), primary: true, association },
    ],
    ipv6AddressesSet: [],
    interfaceType: 'interface',
  }
}
