/** Stops and starts instances. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, flag, list, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import { roomToStart, takeLaunchTokens } from './capacity'
import type { Ec2 } from './ec2'
import { changesOf, chosen } from './instances'
import { stateOf, type Instance } from './model'
import { enter } from './reservation-model'

export function stopStartActions(ec2: Ec2): Record<string, Action> {
  const { lifecycle } = ec2.parts
  return {
    StopInstances: action({
      input: z.strictObject({
        ...dryRun,
        InstanceId: list(text).default([]),
        Force: flag.default(false),
        Hibernate: flag.default(false),
        SkipOsShutdown: flag.default(false),
      }),
      isMutating: true,
      check: ({ InstanceId, Hibernate }, { region }) =>
        void stoppable(chosen(ec2, region, InstanceId), Hibernate),
      run({ InstanceId, Hibernate, Force, SkipOsShutdown }, { region }) {
        const instances = stoppable(chosen(ec2, region, InstanceId), Hibernate)
        const isSudden = Force || SkipOsShutdown
        return { instancesSet: changesOf(instances, (each) => lifecycle.halt(each, isSudden)) }
      },
    }),
    StartInstances: action({
      input: z.strictObject({
        ...dryRun,
        InstanceId: list(text).default([]),
        AdditionalInfo: text.optional(),
      }),
      isMutating: true,
      check: ({ InstanceId }, { region }) => void startable(chosen(ec2, region, InstanceId)),
      run({ InstanceId }, { region }) {
        const instances = startable(chosen(ec2, region, InstanceId))
        const stopped = instances.filter((each) => stateOf(each) === 'stopped')
        const rooms = stopped.map((each) => [each, roomToStart(ec2, each)] as const)
        for (const [, room] of rooms) if ('problem' in room) throw room.problem
        takeLaunchTokens(ec2, region, stopped.length)
        for (const [each, room] of rooms) if ('place' in room) enter(each, room.place, ec2.nowMs)
        return { instancesSet: changesOf(instances, (each) => lifecycle.resume(each)) }
      },
    }),
  }
}

/** Returns the instances; one unsuitable instance fails the whole call. */
function stoppable(instances: Instance[], isHibernation: boolean): Instance[] {
  for (const instance of instances) {
    const { id, spotRequest } = instance
    if (!['running', 'stopping', 'stopped'].includes(stateOf(instance)))
      throw new ApiError(
        'IncorrectInstanceState',
        `This instance '${id}' is not in a state from which it can be stopped.`,
      )
    if (spotRequest !== undefined)
      throw new ApiError(
        'UnsupportedOperation',
        `You can't stop the Spot Instance '${id}' because it is associated with a one-time Spot Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.`,
      )
    if (isHibernation)
      throw new ApiError(
        'UnsupportedHibernationConfiguration',
        `The instance '${id}' was not launched with hibernation enabled.`,
      )
  }
  return instances
}

function startable(instances: Instance[]): Instance[] {
  for (const instance of instances)
    if (!['pending', 'running', 'stopped'].includes(stateOf(instance)))
      throw new ApiError(
        'IncorrectInstanceState',
        `The instance '${instance.id}' is not in a state from which it can be started.`,
      )
  return instances
}
