import type { MachineHandle } from '../../../core/handle'
import { formatDuration } from '../../../core/time/time'
import { BackendError } from '../../errors'
import type { Host } from '../host'
import { wayOut } from './egress'

/** Why a running machine is unreachable, as far as its network and profile show. */
export async function diagnose(
  host: Host,
  { handle: { id, realised }, withinMs }: { handle: MachineHandle; withinMs: number },
  signal: AbortSignal,
): Promise<BackendError> {
  const findings = await Promise.all([
    findNetwork(host, id, signal).catch(() => undefined),
    findProfile(host, signal).catch(() => undefined),
  ])
  const found = findings.filter((one) => one !== undefined)
  const waited = formatDuration(withinMs)
  return new BackendError({
    class: 'unreachable',
    code: 'agent-never-registered',
    message: `The machine ${id} in ${realised.place} runs, but its agent (SSM) has not registered within ${waited}.`,
    hint: found.length > 0 ? found.join(' ') : unknown(id),
  })
}

async function findNetwork(host: Host, machineId: string, signal: AbortSignal): Promise<string | undefined> {
  const [machine] = await host.api.machines.byId([machineId], signal)
  const subnet = (await host.places.subnets(signal)).find(({ id }) => id === machine?.subnet)
  if (subnet === undefined) return undefined
  const problem = await wayOut(host, subnet, signal)
  return problem && `${sentence(problem.message)} ${problem.remedy}`
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

async function findProfile(host: Host, signal: AbortSignal): Promise<string | undefined> {
  const { profile } = host.config
  const found = await host.api.account.profile(profile, signal)
  if (found === undefined) return `There is no instance profile ${profile}: set CRUCIBLE_EC2_PROFILE.`
  if (found.roleName === undefined) return `The instance profile ${profile} has no role: add one.`
  return undefined
}

function unknown(id: string): string {
  return `Network and profile look right: check that the image has a running SSM agent (CRUCIBLE_EC2_IMAGE), and read its output: aws ec2 get-console-output --instance-id ${id} --latest --output text`
}
