import { setMaxListeners } from 'node:events'
import { DescribeAvailabilityZonesCommand, DescribeVpcsCommand } from '@aws-sdk/client-ec2'
import { GetRoleCommand } from '@aws-sdk/client-iam'
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts'
import { defined } from '../../../core/defined'
import type { AccountWish } from '../../account'
import { ec2Error, hasCode, invalid } from '../errors'
import { repeat, type Clients } from './clients'
import { roleName } from './description'
import type { Site } from './driver'
import { listVpcs } from './network'
import { BUYERS, SETUP_TAGS } from './pieces'

export interface Place {
  /** Region of the store and of services without Regions. */
  site: Site
  /** The other Regions of machines. */
  others: Site[]
  identity: string
  /** The account has a default network. */
  hasDefault: boolean
}

/** More subnets than this are useless, and the first sixteen fit into the network. */
const ZONES_MAX = 6

/** The account and the choices for it: from now, or from an earlier set-up. */
export async function findPlace(
  wish: AccountWish & { region: string; moreRegions?: readonly string[] },
  clientsOf: (region: string) => Clients,
  signal: AbortSignal,
): Promise<Place> {
  // Dozens of SDK calls listen to it.
  setMaxListeners(0, signal)
  const { prefix } = wish
  const asked = [wish.region, ...(wish.moreRegions ?? [])]
  const clients = clientsOf(wish.region)
  const { Account: account = '', Arn: identity = '' } = await ask(
    () => clients.sts.send(new GetCallerIdentityCommand({}), { abortSignal: signal }),
    signal,
  )
  const before = await chosenBefore(clients, prefix, signal)
  checkAgainst(before, { ...wish, asked })
  // The store keeps its place, and earlier choices remain.
  const [region = wish.region, ...earlier] = before.regions ?? []
  const moreRegions = [...new Set([...earlier, ...asked])].filter((each) => each !== region)
  const bucket = wish.bucket ?? before.bucket ?? `${prefix}-${account}-${region}`
  const siteAt = (at: string): Site => ({
    ...{ clients: at === wish.region ? clients : clientsOf(at), signal, ids: new Map() },
    choices: {
      ...{ account, region: at, prefix, bucket, makesSpotRole: true, network: { zones: [] } },
      letsWorkersBuy: wish.letsWorkersBuy ?? before.letsWorkersBuy ?? false,
      ...(at === region && moreRegions.length > 0 && { moreRegions }),
    },
  })
  const others = moreRegions.map(siteAt)
  const site: Site = { ...siteAt(region), others }
  const { hasDefault } = await chooseNetwork(site, wish)
  for (const other of others) await chooseNetwork(other, wish)
  return { site, others, identity, hasDefault }
}

async function chooseNetwork(
  site: Site,
  { hasOwnNetwork }: Pick<AccountWish, 'hasOwnNetwork'>,
): Promise<{ hasDefault: boolean }> {
  const vpc = await defaultVpc(site)
  const hasOwn = hasOwnNetwork || vpc === undefined || (await listVpcs(site)).length > 0
  site.choices.network = hasOwn ? { zones: await zonesOf(site) } : { vpcId: vpc }
  return { hasDefault: vpc !== undefined }
}

interface Before {
  /** The Region of the store first. */
  regions?: string[]
  bucket?: string
  letsWorkersBuy?: boolean
}

/** The choices of an earlier run, from the role of the machines. */
async function chosenBefore(clients: Clients, prefix: string, signal: AbortSignal): Promise<Before> {
  const RoleName = roleName(prefix, 'machine')
  try {
    const command = new GetRoleCommand({ RoleName })
    const { Role } = await repeat(() => clients.iam.send(command, { abortSignal: signal }), signal)
    const tags = new Map(Role?.Tags?.map(({ Key, Value }) => [Key, Value]))
    if (tags.get(SETUP_TAGS.setup) !== prefix) return {}
    const [region, bucket] = [tags.get(SETUP_TAGS.region), tags.get(SETUP_TAGS.bucket)]
    return {
      ...(region === undefined ? {} : { regions: region.split(' ') }),
      ...defined({ bucket }),
      letsWorkersBuy: tags.get(SETUP_TAGS.buyer) === BUYERS.workers,
    }
  } catch (error) {
    // A missing permission is reported for the role itself.
    if (hasCode(error, 'NoSuchEntity', 'NoSuchEntityException') || isDenied(error)) return {}
    throw ec2Error(error)
  }
}

const isDenied = (error: unknown): boolean => ec2Error(error).failure.class === 'auth'

function checkAgainst(
  before: Before,
  { asked, bucket, prefix }: AccountWish & { asked: readonly string[] },
): void {
  const [home] = before.regions ?? []
  const region = asked.join(',')
  if (home !== undefined && !asked.includes(home))
    throw invalid(
      `what is named ${prefix} in this account was set up for ${home}, and roles know no Regions`,
      `Choose another --prefix for ${region}, give --region ${home}, or have machines in both: --region ${home},${region}.`,
    )
  if (before.bucket !== undefined && bucket !== undefined && before.bucket !== bucket)
    throw invalid(
      `${prefix} was set up with the bucket ${before.bucket}, not with ${bucket}`,
      'Choose another --prefix, or leave out --bucket.',
    )
}

async function defaultVpc({ clients, signal }: Site): Promise<string | undefined> {
  const Filters = [{ Name: 'is-default', Values: ['true'] }]
  const { Vpcs = [] } = await ask(
    () => clients.ec2.send(new DescribeVpcsCommand({ Filters }), { abortSignal: signal }),
    signal,
  )
  return Vpcs[0]?.VpcId
}

async function zonesOf({ clients, signal }: Site): Promise<string[]> {
  const Filters = [
    { Name: 'zone-type', Values: ['availability-zone'] },
    { Name: 'opt-in-status', Values: ['opt-in-not-required'] },
  ]
  const { AvailabilityZones = [] } = await ask(
    () => clients.ec2.send(new DescribeAvailabilityZonesCommand({ Filters }), { abortSignal: signal }),
    signal,
  )
  return AvailabilityZones.map(({ ZoneName = '' }) => ZoneName)
    .sort()
    .slice(0, ZONES_MAX)
}

/** A value without which set-up cannot continue. */
async function ask<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await repeat(send, signal)
  } catch (error) {
    throw ec2Error(error)
  }
}
