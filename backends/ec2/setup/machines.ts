import * as ec2 from '@aws-sdk/client-ec2'
import { TAGS } from '../tags'
import { repeat } from './clients'
import { roleName } from './description'
import type { Site } from './driver'

const ALIVE = ['pending', 'running', 'stopping', 'stopped']

/** Machines that have not ended. Throws `AwsError`. */
export async function machinesWith({ clients, signal }: Site, filter: ec2.Filter): Promise<ec2.Instance[]> {
  const Filters = [{ Name: 'instance-state-name', Values: ALIVE }, filter]
  return repeat(async () => {
    const found: ec2.Instance[] = []
    const options = { abortSignal: signal }
    for await (const { Reservations } of ec2.paginateDescribeInstances(
      { client: clients.ec2 },
      { Filters },
      options,
    ))
      found.push(...(Reservations ?? []).flatMap(({ Instances = [] }) => Instances))
    return found
  }, signal)
}

export function machinesWithProfile(site: Site): Promise<ec2.Instance[]> {
  const { account, prefix } = site.choices
  const profile = `arn:aws:iam::${account}:instance-profile/${roleName(prefix, 'machine')}`
  return machinesWith(site, { Name: 'iam-instance-profile.arn', Values: [profile] })
}

/** Ids of the machines that were started without a grant: they use the store with the role of their profile. */
export async function machinesWithoutGrant(site: Site): Promise<string[]> {
  const sites = [site, ...(site.others ?? [])]
  const machines = await Promise.all(sites.map(machinesWithProfile))
  return machines
    .flat()
    .filter(({ Tags }) => Tags?.every(({ Key }) => Key !== TAGS.grant) ?? true)
    .map(({ InstanceId = '' }) => InstanceId)
}
