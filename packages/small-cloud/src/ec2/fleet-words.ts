/** The XML description of a fleet. */
import type { ApiError } from '../wire/errors'
import type { FleetInput, FleetOverride, FleetPool, Target } from './fleet-plan'
import type { Fleet, Instance, Subnet } from './model'
import { tagWords } from './tags'
import { deviceWords } from './template-words'

/** A value in the form of the wire. */
type Words = Readonly<Record<string, unknown>>

export interface Filled {
  pool: FleetPool
  instances: Instance[]
}

export interface Refused {
  /** Pool of the launch; without a subnet if the launch was refused before one was chosen. */
  pool: FleetOverride & { subnet?: Subnet }
  problem: ApiError
}

function poolWords({ override, subnet, typeName, template }: Refused['pool']) {
  return {
    launchTemplateSpecification: {
      launchTemplateId: template.id,
      launchTemplateName: template.name,
      version: String(template.version),
    },
    overrides: {
      instanceType: typeName,
      maxPrice: override.MaxPrice,
      subnetId: override.SubnetId ?? subnet?.id,
      availabilityZone: override.AvailabilityZone ?? subnet?.zone.name,
      priority: override.Priority,
      imageId: override.ImageId,
      blockDeviceMappingSet: override.BlockDeviceMapping?.map(deviceWords),
    },
  }
}

export function errorWords({ capacity }: Target, { pool, problem }: Refused): Words {
  return {
    launchTemplateAndOverrides: poolWords(pool),
    lifecycle: capacity,
    errorCode: problem.code,
    errorMessage: problem.message,
  }
}

export function filledWords({ capacity }: Target, { pool, instances }: Filled): Words {
  return {
    launchTemplateAndOverrides: poolWords(pool),
    lifecycle: capacity,
    instanceIds: instances.map(({ id }) => id),
    instanceType: pool.plan.type.name,
  }
}

export function fleetWords(fleet: Fleet): Words {
  const { id, createdAtMs, state, clientToken, tags, answer, instances, request, silence } = fleet
  const isShown = silence?.isShown ?? true
  const { TargetCapacitySpecification: target } = request as Pick<FleetInput, 'TargetCapacitySpecification'>
  return {
    fleetId: id,
    createTime: new Date(createdAtMs),
    fleetState: state,
    activityStatus: 'fulfilled',
    clientToken,
    type: 'instant',
    fulfilledCapacity: instances.length,
    fulfilledOnDemandCapacity: instances.filter(({ capacity }) => capacity === 'on-demand').length,
    terminateInstancesWithExpiration: false,
    replaceUnhealthyInstances: false,
    targetCapacitySpecification: {
      totalTargetCapacity: target.TotalTargetCapacity,
      onDemandTargetCapacity: target.OnDemandTargetCapacity,
      spotTargetCapacity: target.SpotTargetCapacity,
      defaultTargetCapacityType: target.DefaultTargetCapacityType,
    },
    errorSet: isShown ? answer['errorSet'] : [],
    fleetInstanceSet: isShown ? answer['fleetInstanceSet'] : [],
    tagSet: tagWords(tags),
  }
}
