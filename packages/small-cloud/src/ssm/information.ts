/** The machines that SSM knows. */
import { z } from 'zod'
import type { Ec2 } from '../ec2/ec2'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { Agent, Agents } from './agents'
import { pageOf, paging } from './paging'

const filter = z.strictObject({ Key: z.string(), Values: z.array(z.string()).min(1) })

export function informationActions(ec2: Ec2, agents: Agents): Record<string, Action> {
  const fits = (agent: Agent, { Key, Values }: z.output<typeof filter>): boolean => {
    const { instance } = agent
    if (Key === 'InstanceIds') return Values.includes(instance.id)
    if (Key === 'PingStatus') return Values.includes(agents.statusOf(agent))
    if (Key === 'PlatformTypes') return Values.includes('Linux')
    if (Key === 'ResourceType') return Values.includes('EC2Instance')
    if (Key === 'tag-key') return Values.some((key) => instance.tags.has(key))
    if (Key.startsWith('tag:')) return Values.includes(instance.tags.get(Key.slice('tag:'.length)) ?? '')
    throw new ApiError('InvalidFilterKey', `The filter key ${Key} is not valid.`)
  }
  return {
    DescribeInstanceInformation: action({
      input: z.strictObject({ Filters: z.array(filter).default([]), ...paging(50) }),
      run({ Filters, ...wish }, { region }) {
        const ids = Filters.filter(({ Key }) => Key === 'InstanceIds').flatMap(({ Values }) => Values)
        // An id that EC2 does not know is an error; an unregistered instance is only missing.
        const unknown = ids.filter((id) => !ec2.region(region).instances.has(id))
        if (unknown.length > 0)
          throw new ApiError(
            'InvalidInstanceId',
            `Instances [[${unknown.join(', ')}]] not in a valid state for account`,
          )
        const found = agents.all(region).filter((agent) => Filters.every((each) => fits(agent, each)))
        const { items, NextToken } = pageOf(found, wish)
        return { InstanceInformationList: items.map((agent) => words(agents, agent)), NextToken }
      },
    }),
  }
}

function words(agents: Agents, agent: Agent) {
  const { instance, registeredAtMs } = agent
  const PingStatus = agents.statusOf(agent)
  return {
    InstanceId: instance.id,
    PingStatus,
    LastPingDateTime: agent.lastPingAtMs / 1000,
    AgentVersion: '3.3.3050.0',
    IsLatestVersion: true,
    PlatformType: 'Linux',
    PlatformName: 'Ubuntu',
    PlatformVersion: '24.04',
    ResourceType: 'EC2Instance',
    IPAddress: instance.privateIp,
    ComputerName: `ip-${instance.privateIp.replaceAll('.', '-')}`,
    RegistrationDate: registeredAtMs / 1000,
    SourceId: instance.id,
    SourceType: 'AWS::EC2::Instance',
  }
}
