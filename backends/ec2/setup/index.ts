import { defined } from '../../../core/defined'
import type { AccountSetup, AccountWish, Survey } from '../../account'
import { listOf } from '../../settings'
import { ec2Error, invalid } from '../errors'
import { FREE_PLAN_TYPES, freePlanAdvice } from '../check/free-plan'
import { applyAll, readPiece } from './apply'
import { createClients, type Access, type Clients } from './clients'
import { describeAccount, networkOf, roleName } from './description'
import {
  applyOthers,
  findOthers,
  otherRemark,
  quotasOf,
  readOther,
  regionsOf,
  removeOthers,
} from './other-regions'
import { findPlace, type Place } from './place'
import { askForQuotas, readQuotas } from './quotas'
import { findRemoval, removeAll } from './remove'
import { settingsOf } from './settings'
import { writeTerraform } from './terraform'

const PREFIX = /^[a-z][a-z0-9-]{0,30}[a-z0-9]$/
const BUCKET = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/
/** China, GovCloud, and Regions without Internet access. */
const OTHER_PARTITION = /^(?:cn|us-gov|us-iso\w*|eu-iso\w*)-/
const REGION = /^[a-z]{2}(?:-[a-z]+)+-\d$/

export interface SetupOptions extends AccountWish {
  /** Servers that replace AWS. */
  endpoint?: string
  storeEndpoint?: string
}

/** Throws a `BackendError` for impossible requests. */
export function createAccountSetup(options: SetupOptions): Required<AccountSetup> {
  const wish = checked(options)
  const known = new Map<string, Clients>()
  const clientsOf = (region: string): Clients => {
    const clients = known.get(region) ?? createClients(accessOf({ ...wish, region }))
    known.set(region, clients)
    return clients
  }
  const place = (signal: AbortSignal): Promise<Place> => findPlace(wish, clientsOf, signal)
  return {
    survey: async (signal) => survey(await place(signal)),
    apply: async (work) => {
      const { site, others } = await place(work.signal)
      return [...(await applyAll(site, work)), ...(await applyOthers(others, work))]
    },
    askForQuotas: async ({ signal }) => {
      const found = await place(signal)
      return [...(await askForQuotas(found.site)), ...(await quotasOf(found.others, askForQuotas))]
    },
    removal: async (signal) => {
      const found = await place(signal)
      const own = await findRemoval(found.site)
      const others = await findOthers(found.others)
      return {
        place: tell(found),
        parts: [...others.parts, ...own.parts],
        obstacles: [...others.obstacles, ...own.obstacles],
      }
    },
    remove: async (work) => {
      const { site, others } = await place(work.signal)
      // The roles record the Regions, so they are removed last.
      const gone = await removeOthers(others, work)
      return gone.some(({ did }) => did === 'failed') ? gone : [...gone, ...(await removeAll(site, work))]
    },
    terraform: (signal) => terraform(wish, place, signal),
  }
}

type CheckedOptions = SetupOptions & { region: string; moreRegions?: string[] }

function checked(options: SetupOptions): CheckedOptions {
  const { prefix, bucket } = options
  const [region, ...moreRegions] = listOf(options.region ?? '')
  for (const more of moreRegions)
    if (!REGION.test(more) || OTHER_PARTITION.test(more))
      throw invalid(`"${more}" is no Region that set-up knows`, 'Write Regions such as us-east-1,us-west-2.')
  if (region === undefined) throw invalid('the Region is missing', 'Name one: --region us-east-1.')
  if (!REGION.test(region)) throw invalid(`"${region}" is no Region`, 'Write one such as us-east-1.')
  if (OTHER_PARTITION.test(region))
    throw invalid(
      `${region} belongs to a part of AWS with other names of resources, which set-up does not know`,
      'Choose another Region, or make what docs/reference/aws-account.md lists by hand.',
    )
  if (!PREFIX.test(prefix))
    throw invalid(`"${prefix}" cannot begin names`, 'Write 2 to 32 small letters, digits and hyphens.')
  if (bucket !== undefined && !BUCKET.test(bucket))
    throw invalid(`"${bucket}" is no name of a bucket`, 'Write 3 to 63 small letters, digits and hyphens.')
  return { ...options, region, ...(moreRegions.length > 0 && { moreRegions }) }
}

function accessOf({ region, profile, endpoint, storeEndpoint }: CheckedOptions): Access {
  return {
    region,
    ...defined({ profile, endpoint, storeEndpoint }),
  }
}

function tell({ site: { choices }, identity }: Place): Survey['place'] {
  const { account, prefix } = choices
  return { account, region: regionsOf(choices).join(', '), identity, prefix }
}

async function survey(place: Place): Promise<Survey> {
  const { site } = place
  const { account, region, bucket, prefix, network, letsWorkersBuy } = site.choices
  const pieces = describeAccount(site.choices)
  const parts = []
  // One after the other: later pieces need the ids of earlier ones.
  for (const piece of pieces) parts.push(await readPiece(piece, site))
  for (const other of place.others) parts.push(...(await readOther(other)))
  const sites = [site, ...place.others]
  const subnets = sites.flatMap(({ choices, ids }) =>
    networkOf(choices)
      .filter(({ kind }) => kind === 'subnet')
      .map(({ id }) => ids.get(id)),
  )
  const groups = sites.map(({ ids }) => ids.get('machines')).filter((id) => id !== undefined)
  return {
    place: tell(place),
    parts,
    remarks: [
      ...remarksOf(network, place.hasDefault),
      ...place.others.map(otherRemark),
      ...(await planRemarks(site)),
    ],
    quotas: [...(await readQuotas(site)), ...(await quotasOf(place.others, readQuotas))],
    settings: settingsOf({
      ...{ region, bucket, profile: roleName(prefix, 'machine') },
      grantRole: `arn:aws:iam::${account}:role/${roleName(prefix, 'grant')}`,
      ...(letsWorkersBuy && { buyerRole: `arn:aws:iam::${account}:role/${roleName(prefix, 'buyer')}` }),
      regions: regionsOf(site.choices),
      ...(groups.length === 0 ? {} : { group: groups.join(',') }),
      subnets: subnets.filter((id) => id !== undefined),
    }),
  }
}

function remarksOf(network: Place['site']['choices']['network'], hasDefault: boolean): string[] {
  return [
    'None of this has a standing charge: you pay for machines, with their disks and addresses, while jobs run, and for data in the bucket (about $0.023 per GB and month).',
    'Launch templates are not part of it: workers make one for each image, disk and network they use.',
    ...('vpcId' in network
      ? [`Machines go into the default network ${network.vpcId}.`]
      : [`Machines go into a network of their own${hasDefault ? '' : ', as there is no default one'}.`]),
  ]
}

/** Nothing if the plan may not be read: a launch shows it. */
async function planRemarks({ clients, signal }: Place['site']): Promise<string[]> {
  const plan = await clients.plan(signal).catch(() => undefined)
  if (plan !== 'free') return []
  const types = FREE_PLAN_TYPES.map((name) => ({ name, isFreeTier: true }))
  return [`The account is on the free plan, which launches no machine with a GPU. ${freePlanAdvice(types)}`]
}

/** Zones that nearly every Region has, for use without an account. */
const USUAL_ZONES = ['a', 'b', 'c']
const usualNetwork = (region: string): { zones: string[] } => ({
  zones: USUAL_ZONES.map((letter) => `${region}${letter}`),
})

async function terraform(
  wish: CheckedOptions,
  place: (signal: AbortSignal) => Promise<Place>,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  try {
    const { site, others } = await place(signal)
    const spot = describeAccount(site.choices).find(({ kind }) => kind === 'linked-role')
    const isThere = spot !== undefined && (await readPiece(spot, site)).state === 'theirs'
    return writeTerraform({
      ...{ ...site.choices, makesSpotRole: !isThere },
      others: others.map(({ choices: { region, network } }) => ({ region, network })),
    })
  } catch (error) {
    if (ec2Error(error).failure.class === 'invalid' || signal.aborted) throw error
    const { region, moreRegions = [], prefix, bucket, letsWorkersBuy = false } = wish
    const named = bucket === undefined ? {} : { bucket }
    const others = moreRegions.map((other) => ({ region: other, network: usualNetwork(other) }))
    return writeTerraform({
      ...{ region, prefix, ...named, others },
      ...{ network: usualNetwork(region), makesSpotRole: true, letsWorkersBuy },
    })
  }
}
