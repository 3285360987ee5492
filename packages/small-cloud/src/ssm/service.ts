/** SSM: commands on machines, and public parameters. */
import type { Ec2 } from '../ec2/ec2'
import { wishesOf } from '../ec2/wishes'
import type { Service } from '../wire/service'
import type { Agents } from './agents'
import { commandActions } from './command-actions'
import { Commands } from './commands'
import { informationActions } from './information'
import { parameterActions } from './parameters'

export function ssmService(ec2: Ec2, agents: Agents): Service {
  const commands = new Commands(ec2, agents)
  return {
    name: 'ssm',
    style: 'json',
    namespace: 'AmazonSSM',
    wishes: (input, call) => wishesOf(ec2, input, call),
    actions: {
      ...commandActions({ ec2, agents, commands }),
      ...informationActions(ec2, agents),
      ...parameterActions(ec2),
    },
  }
}
