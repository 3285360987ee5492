import type { OwnTags } from '../../../core/own-tags'
import type { AccountPart, AccountSetup, AccountRequest, Step, Survey, Work } from '../../account'
import { partitionOf, PUBLIC_PARTITION } from '../../../network/partitions'
import { listOf } from '../../settings'
import { BackendError } from '../../errors'
import { ec2Error, hasCode, invalid } from '../errors'
import { checkBoundary } from './boundary'
import { createClients, type Clients } from './clients'
import { findPlace, roleNamed } from './place'
import { refusalOfRoot } from './root'
import { askForQuotas, planRemarks, readQuotas } from './quotas'
import { obstaclesTo, removable, removeSite } from './removal'
import { settingsOf } from './settings'
import { roleName, ROLES, type Place, type RegionSetup, type SetupRequest } from './site'
import { deploy, isEmpty, previewParts } from './stack'
import { bucketObstacle } from './store'
import { terraformFiles } from './terraform'

const PREFIX = /^[a-z][a-z0-9-]{0,30}[a-z0-9]$/
const BUCKET = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/
const ROLE_PATH = /^\/(?:[\w+=,.@-]+\/)*$/
const REGION = /^[a-z]{2,4}(?:-[a-z]+)+-\d$/

export interface SetupOptions extends AccountRequest {
  /** Servers that replace AWS. */
  endpoint?: string
  storeEndpoint?: string
  /** Own tags on everything that is created. */
  tags?: OwnTags
}

/** Throws a `BackendError` for impossible requests. */
export function createAccountSetup(options: SetupOptions): Required<AccountSetup> {
  const wish = checked(options)
  const known = new Map<string, Clients>()
  const clientsOf = (region: string): Clients => {
    const clients = known.get(region) ?? createClients({ ...options, region })
    known.set(region, clients)
    return clients
  }
  const place = (signal: AbortSignal): Promise<Place> => findPlace(wish, clientsOf, signal)
  const placeToChange = async (signal: AbortSignal): Promise<{ found: Place; remarks: string[] }> => {
    const found = await place(signal)
    const refusal = refusalOfRoot(found.identity)
    if (refusal !== undefined) throw new BackendError(refusal)
    return { found, remarks: await checkBoundary(found) }
  }
  return {
    survey: (signal) =>
      classified(async () => {
        const { found, remarks } = await placeToChange(signal)
        const told = await survey(found)
        return { ...told, remarks: [...told.remarks, ...remarks] }
      }),
    apply: (work) =>
      collected(work, async (onStep) => {
        // The roles of the first Region name the Regions, so it comes first.
        for (const site of (await placeToChange(work.signal)).found.sites)
          if (!(await deploy(site, namedIn(site, onStep)))) return
      }),
    askForQuotas: ({ signal }) => classified(async () => quotasOf((await place(signal)).sites, askForQuotas)),
    removal: (signal) =>
      classified(async () => {
        const found = await place(signal)
        const order = [...found.sites].reverse()
        const parts = await Promise.all(
          order.map(async (site) => (await removable(site)).map((part) => inRegion(site, part))),
        )
        const obstacles = await Promise.all(order.map(obstaclesTo))
        return { place: inWords(found), parts: parts.flat(), obstacles: obstacles.flat() }
      }),
    remove: (work) =>
      collected(work, async (onStep, steps) => {
        // The roles record the Regions, so the first Region is removed last, and only after all others.
        for (const site of [...(await place(work.signal)).sites].reverse()) {
          await removeSite(site, { ...work, onStep: namedIn(site, onStep) })
          if (steps.some(({ did }) => did === 'failed')) return
        }
      }),
    terraform: (signal) => classified(() => terraform(wish, place, signal)),
  }
}

/** Converts every error to a `BackendError`. */
async function classified<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw setupError(error)
  }
}

const setupError = (error: unknown): BackendError =>
  hasCode(error, ...NO_RIGHT)
    ? new BackendError({ ...ec2Error(error).failure, hint: FOR_ADMINISTRATORS }, { cause: error })
    : ec2Error(error)

const NO_RIGHT = ['AccessDenied', 'AccessDeniedException', 'UnauthorizedOperation']
const FOR_ADMINISTRATORS =
  'Have an administrator run this command, or give them the files of `crucible setup aws --terraform FOLDER`.'

type OnStep = Work['onStep']

/** The steps of some work, also of work that the caller stopped. */
async function collected(
  { signal, onStep }: Work,
  work: (onStep: OnStep, steps: Step[]) => Promise<void>,
): Promise<Step[]> {
  const steps: Step[] = []
  const note: OnStep = (step) => {
    steps.push(step)
    onStep(step)
  }
  try {
    await work(note, steps)
  } catch (error) {
    if (!signal.aborted) throw setupError(error)
  }
  return steps
}

/** A part with its Region in the name where that is not the first one, because each Region has one. */
function inRegion<P extends Pick<AccountPart, 'id' | 'name'>>({ isHome, region }: RegionSetup, part: P): P {
  return isHome ? part : { ...part, id: `${part.id}@${region}`, name: `${part.name} in ${region}` }
}

const namedIn =
  (site: RegionSetup, onStep: OnStep): OnStep =>
  (step) =>
    onStep({ ...step, part: inRegion(site, step.part) })

function checked(options: SetupOptions): SetupRequest {
  const { region, prefix, bucket, rolePath } = options
  const regions = [...new Set(listOf(region ?? ''))]
  if (regions.length === 0) throw invalid('the Region is missing', 'Name one: --region us-east-1.')
  for (const each of regions) {
    if (!REGION.test(each))
      throw invalid(`Unknown Region "${each}"`, 'Write Regions such as us-east-1,us-west-2.')
    const { name, description = 'a Region' } = partitionOf(each)
    if (name !== PUBLIC_PARTITION)
      throw invalid(
        `${each} (${description}) is in the partition ${name}, which set-up does not support`,
        'Choose another Region, or create what docs/reference/aws-account.md lists yourself.',
      )
  }
  if (!PREFIX.test(prefix))
    throw invalid(`Invalid prefix "${prefix}"`, 'Write 2 to 32 small letters, digits and hyphens.')
  if (bucket !== undefined && !BUCKET.test(bucket))
    throw invalid(`Invalid bucket name "${bucket}"`, 'Write 3 to 63 small letters, digits and hyphens.')
  if (rolePath !== undefined && !ROLE_PATH.test(rolePath))
    throw invalid(`Invalid path "${rolePath}" of roles`, 'Begin and end it with a slash, such as /ml/.')
  return { ...options, regions }
}

function inWords({ sites, identity }: Place): Survey['place'] {
  const [{ account, prefix }] = sites
  return { account, region: sites.map(({ region }) => region).join(', '), identity, prefix }
}

async function survey(place: Place): Promise<Survey> {
  const { sites } = place
  const [home] = sites
  const parts = await Promise.all(
    sites.map(async (site) => (await partsOf(site)).map((part) => inRegion(site, part))),
  )
  return {
    place: inWords(place),
    parts: parts.flat(),
    remarks: [
      'None of this has a standing charge: you pay for machines, with their disks and addresses, while jobs run, and for data in the bucket (about $0.023 per GB and month).',
      'Launch templates are not part of it: workers make one for each image, disk and network they use.',
      ...sites.map(networkRemark),
      ...(await planRemarks(home)),
    ],
    quotas: await quotasOf(sites, readQuotas),
    settings: settingsOf(place),
  }
}

/** Parts that the stack has or lacks, and resources outside the stack that it uses or collides with. */
async function partsOf(site: RegionSetup): Promise<AccountPart[]> {
  const others = site.isHome ? await partsOfOthers(site) : []
  // A deployment would fail.
  if (others.some(({ state }) => state === 'taken')) return others
  return [...others, ...(await previewParts(site))]
}

async function partsOfOthers(site: RegionSetup): Promise<AccountPart[]> {
  const { stack, prefix, bucket, parameters } = site
  const part = { id: 'SpotRole', what: 'role of a service', name: 'AWSServiceRoleForEC2Spot', remarks: [] }
  const found: AccountPart[] = parameters['CreateSpotRole'] === 'no' ? [{ ...part, state: 'theirs' }] : []
  if (parameters['CreateBucket'] === 'no')
    found.push({ id: 'Store', what: 'bucket', name: bucket, state: 'theirs', remarks: [] })
  if (!isEmpty(stack)) return found
  const { obstacle } = await bucketObstacle(site)
  if (obstacle !== undefined)
    found.push({ id: 'Store', what: 'bucket', name: bucket, state: 'taken', remarks: [obstacle] })
  const remarks = ['already exists and was not created by this set-up: choose another --prefix']
  for (const name of ROLES.map((of) => roleName(prefix, of)))
    if ((await roleNamed(site, name)) !== undefined)
      found.push({ id: name, what: 'role', name, state: 'taken', remarks })
  return found
}

function networkRemark({ parameters, region }: RegionSetup): string {
  const { VpcId: vpcId = '' } = parameters
  return vpcId === ''
    ? `Machines in ${region} use a separate network.`
    : `Machines in ${region} use the existing network ${vpcId}.`
}

async function quotasOf(sites: Place['sites'], read: typeof readQuotas): Promise<Survey['quotas']> {
  const found = await Promise.all(
    sites.map(async (site) => {
      const quotas = await read(site)
      return site.isHome
        ? quotas
        : quotas.map((quota) => ({ ...quota, name: `${quota.name} in ${site.region}` }))
    }),
  )
  return found.flat()
}

/** Zones that nearly every Region has, for use without an account. */
const USUAL_ZONES = ['a', 'b', 'c']

async function terraform(
  wish: SetupRequest,
  place: (signal: AbortSignal) => Promise<Place>,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const { prefix, regions, bucket, boundary, kmsKey, rolePath, letsWorkersBuy = false } = wish
  try {
    const found = await place(signal)
    const [home] = found.sites
    return terraformFiles({
      prefix,
      regions: found.sites.map(({ region }) => region),
      bucket: home.bucket,
      create_spot_role: home.parameters['CreateSpotRole'] !== 'no',
      workers_may_buy: found.letsWorkersBuy,
      permissions_boundary: home.parameters['PermissionsBoundary'] || undefined,
      kms_key_arn: home.parameters['KmsKeyArn'] || undefined,
      role_path: home.parameters['RolePath'] || undefined,
      disk_key_arns: home.parameters['DiskKeyArns'] ? listOf(home.parameters['DiskKeyArns']) : undefined,
      networks: Object.fromEntries(
        found.sites.map(({ region, parameters }) => [region, networkIn(parameters)]),
      ),
    })
  } catch (error) {
    if (ec2Error(error).failure.class === 'invalid' || signal.aborted) throw error
    return terraformFiles({
      prefix,
      regions,
      bucket,
      create_spot_role: true,
      workers_may_buy: letsWorkersBuy,
      permissions_boundary: boundary,
      kms_key_arn: kmsKey,
      role_path: rolePath,
      networks: Object.fromEntries(
        regions.map((region) => [region, { zones: USUAL_ZONES.map((letter) => `${region}${letter}`) }]),
      ),
    })
  }
}

function networkIn(parameters: Readonly<Record<string, string>>): { vpc_id: string } | { zones: string[] } {
  const { VpcId: vpcId = '' } = parameters
  if (vpcId !== '') return { vpc_id: vpcId }
  const zones = Object.entries(parameters).filter(([name, value]) => /^Zone\d$/.test(name) && value !== '')
  return { zones: zones.sort().map(([, value]) => value) }
}
