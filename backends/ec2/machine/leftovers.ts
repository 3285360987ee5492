import type { OwnedResource } from '../../../core/handle'
import { formatDuration, formatInstant } from '../../../core/time/time'
import type { CallContext } from '../../backend'
import type { Machine } from '../sdk/api'
import type { SpotRequest, Template } from '../sdk/api-leftovers'
import type { Host } from '../host'
import { ownerOf, TAGS } from '../tags'

/** EC2 puts it on each machine that was launched from a template. */
const TEMPLATE_TAG = 'aws:ec2launchtemplate:id'

/**
 * Launch templates, which cost nothing but are limited to 5,000 per Region, and spot requests without a machine. There are no other
 * leftovers: network interfaces end with their machines, and addresses belong to the subnets.
 */
export async function leftovers(
  host: Host,
  deployment: string,
  { signal }: CallContext,
): Promise<OwnedResource[]> {
  const tag = { name: TAGS.deployment, value: deployment }
  // Machines are read after their templates and requests, so that one launched in between is seen.
  const [templates, requests] = await Promise.all([
    host.api.leftovers.templates({ tag }, signal),
    host.api.leftovers.spotRequests(undefined, signal),
  ])
  const machines = await host.api.machines.byTag({ name: tag.name, values: [tag.value] }, signal)
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
 * Returns the use of a template. Only use and age count: whether a job's order names it is irrelevant, because a launch creates a missing
 * template again with the same name and content.
 */
function useOf(
  { config, ages }: Host,
  { id, createdAtMs }: Template,
  machines: Machine[],
): NonNullable<OwnedResource['use']> {
  const users = machines.filter(({ tags, state }) => tags[TEMPLATE_TAG] === id && state !== 'terminated')
  if (users.length > 0) return { isNeeded: true, reason: `${users[0]!.id} was launched from it` }
  const keptFor = formatDuration(config.templatesKeptMs)
  return ages.of(id, createdAtMs) < config.templatesKeptMs
    ? { isNeeded: true, reason: `no machine uses it, and it is younger than ${keptFor}` }
    : { isNeeded: false, reason: `no machine uses it, and it is older than ${keptFor}` }
}

/** Whether a request is ours, by its own tag or that of its machine, and has no running machine. */
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
