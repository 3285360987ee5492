/** The account and the choices for it: from now, or from an earlier set-up. */
import { setMaxListeners } from 'node:events'
import { DescribeAvailabilityZonesCommand, DescribeVpcsCommand } from '@aws-sdk/client-ec2'
import { GetRoleCommand, type Role } from '@aws-sdk/client-iam'
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts'
import { arnIn } from '../../../network/partitions'
import { hasCode, invalid } from '../errors'
import { diskKey } from '../sdk/account'
import { call } from '../sdk/errors'
import type { Clients } from './clients'
import { isOurs, roleName, SETUP_TAGS, type Place, type RegionSetup, type SetupRequest } from './site'
import { bucketObstacle } from './store'
import { isEmpty, readStack, resourcesOf, type Stack } from './stack'

/** The template has this many subnets. */
const ZONES_MAX = 6
/** The Regions of a list, whatever separates its items. */
const REGIONS = /[a-z\d-]+/g
/** No policy can name an alias. */
const KMS_KEY = /^arn:[\w-]+:kms:([\w-]+):\d{12}:key\/[\w-]+$/
const SPOT_ROLE = 'AWSServiceRoleForEC2Spot'

export async function findPlace(
  wish: SetupRequest,
  clientsOf: (region: string) => Clients,
  signal: AbortSignal,
): Promise<Place> {
  // Dozens of SDK calls listen to it.
  setMaxListeners(0, signal)
  const { prefix, regions: asked } = wish
  const clients = clientsOf(asked[0]!)
  const { Account: account = '', Arn: identity = '' } = await call(signal, () =>
    clients.sts.send(new GetCallerIdentityCommand({}), { abortSignal: signal }),
  )
  const home = await homeBefore({ clients, signal, prefix })
  if (home !== undefined && !asked.includes(home))
    throw invalid(
      `${prefix} was set up for ${home} in this account, and roles have no Region`,
      `Choose another --prefix for ${asked.join(',')}, give --region ${home}, or have machines in both: --region ${home},${asked.join(',')}.`,
    )
  // The store keeps its place, and earlier choices remain.
  const before = await stackIn({ clients: clientsOf(home ?? asked[0]!), signal, prefix })
  const earlier = before?.parameters.get('Regions')?.match(REGIONS) ?? []
  const regions = [...new Set([...earlier, ...asked])]
  const kept = before?.parameters.get('Bucket')
  if (kept !== undefined && wish.bucket !== undefined && kept !== wish.bucket)
    throw invalid(
      `${prefix} was set up with the bucket ${kept}, not with ${wish.bucket}`,
      'Choose another --prefix, or leave out --bucket.',
    )
  checkKey(wish, regions[0]!, before)
  checkRolePath(wish, before)
  const bucket = wish.bucket ?? kept ?? `${prefix}-${account}-${regions[0]}`
  const letsWorkersBuy = wish.letsWorkersBuy ?? before?.parameters.get('WorkersMayBuy') === 'yes'
  const diskKeys = await diskKeysOf(regions.map(clientsOf), signal)
  const sites = await Promise.all(
    regions.map(async (region): Promise<RegionSetup> => {
      const common = {
        clients: clientsOf(region),
        signal,
        prefix,
        tags: wish.tags ?? {},
        account,
        region,
        bucket,
      }
      const stack = await stackIn(common)
      const resources = stack === undefined ? [] : await resourcesOf(common, stack)
      const site = { ...common, isHome: region === regions[0], stack, resources, parameters: {} }
      return { ...site, parameters: await parametersOf(site, { regions, letsWorkersBuy, diskKeys, wish }) }
    }),
  )
  return { sites: sites as Place['sites'], identity, letsWorkersBuy }
}

/** Throws for a key that S3 or the policies of roles cannot use, and for one with which the objects in the store could not be read. */
function checkKey({ kmsKey, prefix }: SetupRequest, home: string, before: Stack | undefined): void {
  if (kmsKey === undefined) return
  if (KMS_KEY.exec(kmsKey)?.[1] !== home)
    throw invalid(
      `Invalid KMS key "${kmsKey}" for a store in ${home}`,
      `Write the ARN of a key, not of an alias, in the Region of the store, such as ${arnIn(home, `kms:${home}:111122223333:key/ID`)}.`,
    )
  const kept = before?.parameters.get('KmsKeyArn') ?? ''
  if (kept !== '' && kept !== kmsKey)
    throw invalid(
      `${prefix} was set up with the key ${kept}, without which the objects in the store could not be read`,
      'Choose another --prefix, or leave out --kms-key.',
    )
}

/** Throws for a path that the roles do not have. */
function checkRolePath({ rolePath, prefix }: SetupRequest, before: Stack | undefined): void {
  const kept = isEmpty(before) ? undefined : (before!.parameters.get('RolePath') ?? '/')
  if (rolePath !== undefined && kept !== undefined && kept !== rolePath)
    throw invalid(
      `${prefix} was set up with roles below ${kept}, and a role cannot be moved`,
      'Choose another --prefix, or leave out --role-path.',
    )
}

/** The Region of the store of an earlier run, from the machines' role, which has no Region. */
async function homeBefore(
  site: Pick<RegionSetup, 'clients' | 'signal' | 'prefix'>,
): Promise<string | undefined> {
  const { Tags = [] } = (await roleNamed(site, roleName(site.prefix, 'machine'))) ?? {}
  const regions = Tags.find(({ Key }) => Key === SETUP_TAGS.regions)?.Value
  return isOurs(site.prefix, Tags) ? regions?.split(' ')[0] : undefined
}

/** The stack of this set-up in a Region. */
async function stackIn(site: Pick<RegionSetup, 'clients' | 'signal' | 'prefix'>): Promise<Stack | undefined> {
  const stack = await readStack(site)
  if (stack === undefined || stack.isOurs) return stack
  throw invalid(
    `the stack ${site.prefix} already exists and was not created by this set-up`,
    'Choose another --prefix.',
  )
}

/** Nothing also where roles may not be read: the deployment reports a missing permission. */
export async function roleNamed(
  { clients, signal }: Pick<RegionSetup, 'clients' | 'signal'>,
  RoleName: string,
): Promise<Role | undefined> {
  try {
    const command = new GetRoleCommand({ RoleName })
    return (await call(signal, () => clients.iam.send(command, { abortSignal: signal }))).Role
  } catch (error) {
    if (hasCode(error, 'NoSuchEntity', 'NoSuchEntityException', 'AccessDenied')) return undefined
    throw error
  }
}

/**
 * The account's own keys for the disks of some Regions: without permissions for them EC2 ends each machine at once. Undefined where they
 * cannot be read: `crucible doctor` checks them again.
 */
async function diskKeysOf(clients: readonly Clients[], signal: AbortSignal): Promise<string[] | undefined> {
  try {
    const keys = await Promise.all(clients.map(({ ec2 }) => call(signal, () => diskKey(ec2, signal))))
    return keys.filter((key) => key !== undefined)
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

interface Choice {
  regions: readonly string[]
  letsWorkersBuy: boolean
  diskKeys: readonly string[] | undefined
  wish: SetupRequest
}

/** A deployed stack keeps every parameter that this run does not choose. */
async function parametersOf(
  site: RegionSetup,
  { regions, letsWorkersBuy, diskKeys, wish }: Choice,
): Promise<Record<string, string>> {
  const { stack, prefix, bucket, isHome } = site
  const kept = isEmpty(stack) ? undefined : Object.fromEntries(stack!.parameters)
  const chosen = {
    Prefix: prefix,
    Regions: regions.join(','),
    Bucket: bucket,
    WorkersMayBuy: letsWorkersBuy ? 'yes' : 'no',
    ...(diskKeys !== undefined && { DiskKeyArns: diskKeys.join(',') }),
    ...(wish.boundary !== undefined && { PermissionsBoundary: wish.boundary }),
    ...(wish.kmsKey !== undefined && { KmsKeyArn: wish.kmsKey }),
    ...(wish.rolePath !== undefined && { RolePath: wish.rolePath }),
  }
  const isOtherNetworkWanted = wish.hasOwnNetwork && kept?.['VpcId'] !== ''
  if (kept !== undefined) return { ...kept, ...chosen, ...(isOtherNetworkWanted && (await newNetwork(site))) }
  const [hasBucket, hasSpotRole, vpcId] = await Promise.all([
    isHome ? hasUsableBucket(site) : false,
    isHome ? roleNamed(site, SPOT_ROLE).then((role) => role !== undefined) : false,
    wish.hasOwnNetwork ? undefined : defaultVpc(site),
  ])
  return {
    ...chosen,
    CreateBucket: hasBucket ? 'no' : 'yes',
    CreateSpotRole: hasSpotRole ? 'no' : 'yes',
    ...(vpcId === undefined ? await newNetwork(site) : { VpcId: vpcId }),
  }
}

async function hasUsableBucket(site: RegionSetup): Promise<boolean> {
  const found = await bucketObstacle(site)
  return found.exists && found.obstacle === undefined
}

async function defaultVpc({ clients, signal }: RegionSetup): Promise<string | undefined> {
  const Filters = [{ Name: 'is-default', Values: ['true'] }]
  const { Vpcs = [] } = await call(signal, () =>
    clients.ec2.send(new DescribeVpcsCommand({ Filters }), { abortSignal: signal }),
  )
  return Vpcs[0]?.VpcId
}

/** A subnet in each zone. */
async function newNetwork(site: RegionSetup): Promise<Record<string, string>> {
  const zones = await zonesOf(site)
  return { VpcId: '', ...Object.fromEntries(zones.map((zone, at) => [`Zone${at + 1}`, zone])) }
}

async function zonesOf({ clients, signal }: RegionSetup): Promise<string[]> {
  const Filters = [
    { Name: 'zone-type', Values: ['availability-zone'] },
    { Name: 'opt-in-status', Values: ['opt-in-not-required'] },
  ]
  const { AvailabilityZones = [] } = await call(signal, () =>
    clients.ec2.send(new DescribeAvailabilityZonesCommand({ Filters }), { abortSignal: signal }),
  )
  return AvailabilityZones.map(({ ZoneName = '' }) => ZoneName)
    .sort()
    .slice(0, ZONES_MAX)
}
