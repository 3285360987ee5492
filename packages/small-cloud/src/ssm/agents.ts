/** The agents on the machines: registered or not, reachable or not. */
import type { Ec2 } from '../ec2/ec2'
import { occasionOf } from '../ec2/life'
import { stateOf, type Instance } from '../ec2/model'

export interface Agent {
  instance: Instance
  registeredAtMs: number
  lastPingAtMs: number
  /** Whether the agent is silent, although its machine may still run. */
  isLost: boolean
}

export type PingStatus = 'Online' | 'ConnectionLost'

export class Agents {
  private readonly agents = new Map<string, Agent>()

  constructor(private readonly ec2: Ec2) {}

  register(instance: Instance): void {
    const { clock, faults } = this.ec2.parts
    const agent: Agent = {
      instance,
      registeredAtMs: clock.nowMs(),
      lastPingAtMs: clock.nowMs(),
      isLost: false,
    }
    this.agents.set(instance.id, agent)
    for (const { after } of faults.strike('agent-lost', occasionOf(instance)))
      clock.after(after, () => {
        this.touch(agent)
        agent.isLost = true
      })
  }

  /** Returns the agent of a living instance in a region; agents of ended instances are removed. */
  find(id: string, region: string): Agent | undefined {
    const agent = this.agents.get(id)
    const isGone =
      agent === undefined ||
      agent.instance.region !== region ||
      // The instance has been stopped and started since.
      agent.registeredAtMs < agent.instance.launchedAtMs ||
      ['shutting-down', 'terminated', 'stopped'].includes(stateOf(agent.instance))
    return isGone ? undefined : agent
  }

  all(region: string): Agent[] {
    return [...this.agents.keys()].map((id) => this.find(id, region)).filter((agent) => agent !== undefined)
  }

  /** Whether the agent answers now. */
  isReachable(agent: Agent): boolean {
    return !agent.isLost && !agent.instance.isImpaired && stateOf(agent.instance) === 'running'
  }

  statusOf(agent: Agent): PingStatus {
    this.touch(agent)
    const silentMs = this.ec2.nowMs - agent.lastPingAtMs
    return this.isReachable(agent) || silentMs < this.ec2.drawMs('connectionLost')
      ? 'Online'
      : 'ConnectionLost'
  }

  private touch(agent: Agent): void {
    if (this.isReachable(agent)) agent.lastPingAtMs = this.ec2.nowMs
  }
}
