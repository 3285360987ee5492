import type { OwnedResource } from '../../../core/handle'
import { formatDuration, formatInstant } from '../../../core/time'
import type { CallContext } from '../../backend'
import type { Machine } from '../sdk/api'
import type { SpotRequest, Template } from '../sdk/api-leftovers'
import type { Host } from '../host'
import { ownerOf, TAGS } from '../tags'

/** On each machine that came of a launch template, put there by EC2. */
const TEMPLATE_TAG = 'aws:ec2launchtemplate:id'

/**
 * Launch templates, which cost nothing and of which a Region allows 5,000, and spot requests without a machine. There is nothing
 * else: network cards go with their machines, and addresses are those of the subnets.
 */
export async function leftovers(
  host: Host,
  deployment: string,
  { signal }: CallContext,
): Promise<OwnedResource[]> {
  const tag = { name: TAGS.deployment, value: deployment }
  // Machines after what they may have come of: one that is launched between the two is seen.
  const [templates, requests] = await Promise.all([
    host.api.leftovers.templates({ tag }, signal),
    host.api.leftovers.spotRequests(undefined, signal),
  ])
  const machines = await host.api.machines.byTag(tag, signal)
  return [
    ...templates.map((template) => ofTemplate(host, template, machines)),
    ...requests
      .filter((request) => isDangling(request, { deployment, machines }))
      .map(ofRequest(host, machines)),
  ]
}

function ofTemplate(host: Host, template: Template, machines: Machine[]): OwnedResource {
  const { id, name, createdAtMs, tags } = template
  return {
    handle: { backend: 'ec2', kind: 'template', id },
    owner: ownerOf(tags),
    createdAtMs,
    description: `launch template ${name}, created ${formatInstant(createdAtMs)}`,
    place: host.config.region,
    costMicroUsdPerDay: 0,
    use: useOf(host, template, machines),
  }
}

/**
 * By use and age alone: which jobs have it in an order is not asked, since a launch makes a missing template again, under the same
 * name and with the same content.
 */
function useOf(
  { config, deps }: Host,
  { id, createdAtMs }: Template,
  machines: Machine[],
): NonNullable<OwnedResource['use']> {
  const users = machines.filter(({ tags, state }) => tags[TEMPLATE_TAG] === id && state !== 'terminated')
  if (users.length > 0) return { isNeeded: true, reason: `${users[0]!.id} came of it` }
  const keptFor = formatDuration(config.templatesKeptMs)
  return deps.clock() - createdAtMs < config.templatesKeptMs
    ? { isNeeded: true, reason: `no machine uses it, and it is younger than ${keptFor}` }
    : { isNeeded: false, reason: `no machine uses it, and it is older than ${keptFor}` }
}

/** Ours by its own tag or by that of its machine, and nothing lives that came of it. */
function isDangling(
  { machineId, tags }: SpotRequest,
  { deployment, machines }: { deployment: string; machines: Machine[] },
): boolean {
  const machine = machines.find(({ id }) => id === machineId)
  if (machine === undefined) return ownerOf(tags).deployment === deployment
  return machine.state === 'terminated'
}

function ofRequest(host: Host, machines: Machine[]): (request: SpotRequest) => OwnedResource {
  return ({ id, state, machineId, createdAtMs, tags }) => {
    const machine = machines.find((one) => one.id === machineId)
    const without = machineId === undefined ? 'without a machine' : `whose machine ${machineId} has ended`
    return {
      handle: { backend: 'ec2', kind: 'spot-request', id },
      owner: ownerOf(machine?.tags ?? tags),
      createdAtMs,
      description: `spot request ${without}, ${state} since ${formatInstant(createdAtMs)}`,
      place: machine?.zone ?? host.config.region,
      costMicroUsdPerDay: 0,
    }
  }
}
