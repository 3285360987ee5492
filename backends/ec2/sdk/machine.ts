import type { Instance, Tag } from '@aws-sdk/client-ec2'
import type { Machine } from './api'

export function machineOf(instance: Instance): Machine {
  const { StateReason } = instance
  const reservation = reservationOf(instance)
  return {
    id: instance.InstanceId!,
    state: instance.State?.Name ?? 'pending',
    type: instance.InstanceType ?? '',
    zone: instance.Placement?.AvailabilityZone ?? '',
    subnet: instance.SubnetId || undefined,
    capacityType: capacityTypeOf(instance.InstanceLifecycle, reservation),
    reservation: reservation ? reservation : undefined,
    launchedAtMs: instance.LaunchTime?.getTime() ?? 0,
    tags: tagsOf(instance.Tags),
    ...(StateReason?.Code && { reason: { code: StateReason.Code, message: StateReason.Message ?? '' } }),
    ...(instance.StateTransitionReason && { transition: instance.StateTransitionReason }),
  }
}

/** Returns a machine's current reservation, or the one into which it was launched, because a reservation may end while its machine runs. */
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

export function tagList(tags: Record<string, string>): Tag[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }))
}

export function tagsOf(tags: Tag[] | undefined): Record<string, string> {
  return Object.fromEntries((tags ?? []).map(({ Key, Value }) => [Key ?? '', Value ?? '']))
}
