/** Describes and terminates instances. */
import { z } from 'zod'
import { dryRun, filter, flag, list, paging, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { Xml } from '../wire/xml'
import type { Ec2 } from './ec2'
import { checkForm, page, select, type Readers } from './filters'
import { instanceWords, lifecycleOf } from './instance-words'
import { STATE_CODES, stateAt, stateOf, type Instance } from './model'

const ids = { InstanceId: list(text).default([]) }
const filters = { Filter: list(filter).default([]) }
/** Maximum number of ids per call. */
const IDS_MAX = 1000

export function instanceActions(ec2: Ec2): Record<string, Action> {
  return { ...listActions(ec2), ...singleActions(ec2), ...endActions(ec2) }
}

function listActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeInstances: action({
      input: z.strictObject({ ...dryRun, ...paging, ...ids, ...filters }),
      run({ InstanceId, Filter, ...wish }, { region }) {
        if (InstanceId.length > 0 && wish.MaxResults !== undefined)
          throw new ApiError(
            'InvalidParameterCombination',
            'The parameter instancesSet cannot be used with the parameter maxResults',
          )
        const wanted = InstanceId.length === 0 ? shown(ec2, region) : named(ec2, region, InstanceId)
        const atMs = ec2.nowMs - ec2.drawMs('staleList')
        const found = select(wanted, Filter, readers(atMs))
        const { items, nextToken } = page(found, wish, { most: 1000 })
        const groupNames = new Map(ec2.region(region).groups.map(({ id, name }) => [id, name]))
        const reservations = new Map<string, Instance[]>()
        for (const each of items)
          reservations.set(each.reservationId, [...(reservations.get(each.reservationId) ?? []), each])
        const reservationSet = [...reservations].map(([reservationId, instances]) => ({
          reservationId,
          ownerId: ec2.account,
          groupSet: [],
          instancesSet: instances.map((each) => instanceWords(each, { atMs, groupNames })),
        }))
        return { reservationSet, nextToken }
      },
    }),
    DescribeInstanceStatus: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        ...ids,
        ...filters,
        IncludeAllInstances: flag.default(false),
      }),
      run({ InstanceId, Filter, IncludeAllInstances: all, ...wish }, { region }) {
        const wanted = InstanceId.length === 0 ? shown(ec2, region) : named(ec2, region, InstanceId)
        const atMs = ec2.nowMs - ec2.drawMs('staleList')
        const alive = wanted.filter((each) => all || stateAt(each, atMs).state === 'running')
        const status = (each: Instance): string => checksOf(ec2, each, atMs)
        const found = select(alive, Filter, {
          ...readers(atMs),
          'instance-status.status': status,
          'system-status.status': status,
        })
        const { items, nextToken } = page(found, wish, { most: 1000 })
        return { instanceStatusSet: items.map((each) => statusWords(each, atMs, status(each))), nextToken }
      },
    }),
  }
}

function singleActions(ec2: Ec2): Record<string, Action> {
  return {
    GetConsoleOutput: action({
      input: z.strictObject({ ...dryRun, InstanceId: text, Latest: flag.optional() }),
      async run({ InstanceId }, { region }) {
        const [instance] = named(ec2, region, [InstanceId])
        const isEarly = ec2.nowMs < instance!.launchedAtMs + ec2.drawMs('consoleLag')
        const output = isEarly ? '' : (instance!.lastConsole ?? (await instance!.machine?.console()) ?? '')
        return {
          instanceId: InstanceId,
          timestamp: new Date(ec2.nowMs),
          output: output === '' ? undefined : Buffer.from(output.slice(-64 * 1024)).toString('base64'),
        }
      },
    }),
    DescribeInstanceAttribute: action({
      input: z.strictObject({
        ...dryRun,
        InstanceId: text,
        Attribute: z.enum([
          'instanceType',
          'userData',
          'disableApiTermination',
          'instanceInitiatedShutdownBehavior',
          'rootDeviceName',
          'groupSet',
          'ebsOptimized',
          'sourceDestCheck',
          'enaSupport',
        ]),
      }),
      run({ InstanceId, Attribute }, { region }) {
        const instance = named(ec2, region, [InstanceId])[0]!
        const values = {
          instanceType: { value: instance.type.name },
          userData: instance.userData === '' ? {} : { value: instance.userData },
          disableApiTermination: { value: instance.isProtected },
          instanceInitiatedShutdownBehavior: { value: instance.shutdownBehavior },
          rootDeviceName: { value: instance.image.rootDevice },
          groupSet: instance.groupIds.map((groupId) => ({ groupId })),
          ebsOptimized: { value: false },
          sourceDestCheck: { value: true },
          enaSupport: { value: true },
        }
        return { instanceId: InstanceId, [Attribute]: values[Attribute] }
      },
    }),
  }
}

function endActions(ec2: Ec2): Record<string, Action> {
  return {
    TerminateInstances: action({
      input: z.strictObject({
        ...dryRun,
        InstanceId: list(text),
        SkipOsShutdown: flag.optional(),
        Force: flag.optional(),
      }),
      isMutating: true,
      check: ({ InstanceId }, { region }) => void endable(ec2, region, InstanceId),
      run({ InstanceId, SkipOsShutdown = false }, { region }) {
        // One invalid id fails the whole call before anything ends.
        const instances = endable(ec2, region, InstanceId)
        return {
          instancesSet: changesOf(instances, (each) => ec2.parts.lifecycle.terminate(each, SkipOsShutdown)),
        }
      },
    }),
  }
}

/** Returns the state changes that a call has caused. */
export function changesOf(instances: readonly Instance[], effect: (instance: Instance) => void): Xml[] {
  return instances.map((instance) => {
    const previous = stateOf(instance)
    effect(instance)
    const current = stateOf(instance)
    return {
      instanceId: instance.id,
      currentState: { code: STATE_CODES[current], name: current },
      previousState: { code: STATE_CODES[previous], name: previous },
    }
  })
}

/** Returns the instances that a call names; at least one is required. */
export function chosen(ec2: Ec2, region: string, wanted: readonly string[]): Instance[] {
  if (wanted.length === 0)
    throw new ApiError('MissingParameter', 'The request must contain the parameter InstanceId')
  return named(ec2, region, [...new Set(wanted)])
}

function endable(ec2: Ec2, region: string, wanted: readonly string[]): Instance[] {
  const instances = chosen(ec2, region, wanted)
  const kept = instances.find(({ isProtected }) => isProtected)
  if (kept !== undefined)
    throw new ApiError(
      'OperationNotPermitted',
      `The instance '${kept.id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.`,
    )
  return instances
}

/** Returns the instances in lists, without those launched a moment ago. */
function shown(ec2: Ec2, region: string): Instance[] {
  return [...ec2.region(region).instances.values()].filter(({ visibleAtMs }) => visibleAtMs <= ec2.nowMs)
}

function named(ec2: Ec2, region: string, wanted: readonly string[]): Instance[] {
  if (wanted.length > IDS_MAX)
    throw new ApiError('InvalidParameterValue', `At most ${IDS_MAX} instances may be named`)
  checkForm(wanted, 'i', 'InvalidInstanceID.Malformed')
  const visible = new Map(shown(ec2, region).map((each) => [each.id, each]))
  const missing = wanted.filter((id) => !visible.has(id))
  if (missing.length > 0) {
    const words =
      missing.length === 1 ? `instance ID '${missing[0]}' does` : `instance IDs '${missing.join(', ')}' do`
    throw new ApiError('InvalidInstanceID.NotFound', `The ${words} not exist`)
  }
  return wanted.map((id) => visible.get(id)!)
}

function readers(atMs: number): Readers<Instance> {
  return {
    'instance-id': ({ id }) => id,
    'instance-type': ({ type }) => type.name,
    'instance-state-name': (each) => stateAt(each, atMs).state,
    'instance-state-code': (each) => String(STATE_CODES[stateAt(each, atMs).state]),
    'instance-lifecycle': (each) => lifecycleOf(each) ?? 'on-demand',
    'capacity-reservation-id': ({ place }) => place?.id,
    'availability-zone': ({ subnet }) => subnet.zone.name,
    'availability-zone-id': ({ subnet }) => subnet.zone.id,
    'subnet-id': ({ subnet }) => subnet.id,
    'vpc-id': ({ subnet }) => subnet.vpcId,
    'image-id': ({ image }) => image.id,
    'client-token': ({ clientToken }) => clientToken,
    'reservation-id': ({ reservationId }) => reservationId,
    'launch-time': ({ launchedAtMs }) => new Date(launchedAtMs).toISOString(),
    'private-ip-address': ({ privateIp }) => privateIp,
    'ip-address': ({ publicIp }) => publicIp,
    'spot-instance-request-id': ({ spotRequest }) => spotRequest?.id,
    'state-reason-code': (each) => stateAt(each, atMs).reason?.code,
    'instance.group-id': ({ groupIds }) => groupIds,
    'iam-instance-profile.arn': ({ role }) =>
      role && `arn:aws:iam::${role.arn.split(':')[4]}:instance-profile/${role.name}`,
  }
}

function checksOf(ec2: Ec2, instance: Instance, atMs: number): string {
  const { state, atMs: sinceMs } = stateAt(instance, atMs)
  if (state !== 'running') return 'not-applicable'
  if (instance.isImpaired) return 'impaired'
  return atMs - sinceMs < ec2.drawMs('statusChecks') ? 'initializing' : 'ok'
}

function statusWords(instance: Instance, atMs: number, status: string) {
  const { state } = stateAt(instance, atMs)
  const details = { ok: 'passed', impaired: 'failed', initializing: 'initializing' }[status]
  const checks = { status, details: details === undefined ? [] : [{ name: 'reachability', status: details }] }
  return {
    instanceId: instance.id,
    availabilityZone: instance.subnet.zone.name,
    availabilityZoneId: instance.subnet.zone.id,
    instanceState: { code: STATE_CODES[state], name: state },
    instanceStatus: checks,
    systemStatus: checks,
    eventsSet: [],
  }
}
