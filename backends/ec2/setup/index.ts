import type { AccountSetup, AccountWish, Survey } from '../../account'
import { ec2Error, invalid } from '../errors'
import { FREE_PLAN_TYPES, freePlanAdvice } from '../plan'
import { applyAll, readPiece } from './apply'
import { createClients, type Access } from './clients'
import { describeAccount, roleName } from './description'
import { findPlace, type Place } from './place'
import { askForQuotas, readQuotas } from './quotas'
import { findRemoval, removeAll } from './remove'
import { settingsOf } from './settings'
import { writeTerraform } from './terraform'

const PREFIX = /^[a-z][a-z0-9-]{0,30}[a-z0-9]$/
const BUCKET = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/
/** China, GovCloud, and what has no way to the Internet. */
const OTHER_PARTITION = /^(?:cn|us-gov|us-iso\w*|eu-iso\w*)-/
const REGION = /^[a-z]{2}(?:-[a-z]+)+-\d$/

export interface SetupOptions extends AccountWish {
  /** Other servers in the place of AWS. */
  endpoint?: string
  storeEndpoint?: string
}

/** Throws a `BackendError` for wishes that cannot be. */
export function createAccountSetup(options: SetupOptions): AccountSetup {
  const wish = checked(options)
  const clients = createClients(accessOf(wish))
  const place = (signal: AbortSignal): Promise<Place> => findPlace(wish, clients, signal)
  return {
    survey: async (signal) => survey(await place(signal)),
    apply: async (work) => {
      const { site } = await place(work.signal)
      return applyAll(site, work)
    },
    askForQuotas: async ({ signal }) => askForQuotas((await place(signal)).site),
    removal: async (signal) => {
      const found = await place(signal)
      return { place: tell(found), ...(await findRemoval(found.site)) }
    },
    remove: async (work) => removeAll((await place(work.signal)).site, work),
    terraform: (signal) => terraform(wish, place, signal),
  }
}

function checked(options: SetupOptions): SetupOptions & { region: string } {
  const { region, prefix, bucket } = options
  if (region === undefined) throw invalid('the Region is missing', 'Name one: --region us-east-1.')
  if (!REGION.test(region)) throw invalid(`"${region}" is no Region`, 'Write one such as us-east-1.')
  if (OTHER_PARTITION.test(region))
    throw invalid(
      `${region} belongs to a part of AWS with other names of resources, which set-up does not know`,
      'Choose another Region, or make what docs/backends/ec2.md lists by hand.',
    )
  if (!PREFIX.test(prefix))
    throw invalid(`"${prefix}" cannot begin names`, 'Write 2 to 32 small letters, digits and hyphens.')
  if (bucket !== undefined && !BUCKET.test(bucket))
    throw invalid(`"${bucket}" is no name of a bucket`, 'Write 3 to 63 small letters, digits and hyphens.')
  return { ...options, region }
}

function accessOf({ region, profile, endpoint, storeEndpoint }: SetupOptions & { region: string }): Access {
  return {
    region,
    ...(profile === undefined ? {} : { profile }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(storeEndpoint === undefined ? {} : { storeEndpoint }),
  }
}

function tell({ site: { choices }, identity }: Place): Survey['place'] {
  const { account, region, prefix } = choices
  return { account, region, identity, prefix }
}

async function survey(place: Place): Promise<Survey> {
  const { site } = place
  const { account, region, bucket, prefix, network } = site.choices
  const pieces = describeAccount(site.choices)
  const parts = []
  // One after the other: what comes later is told by the ids of what came before.
  for (const piece of pieces) parts.push(await readPiece(piece, site))
  const subnets = pieces.filter(({ kind }) => kind === 'subnet').map(({ id }) => site.ids.get(id))
  const group = site.ids.get('machines')
  return {
    place: tell(place),
    parts,
    remarks: [...remarksOf(network, place.hasDefault), ...(await planRemarks(site))],
    quotas: await readQuotas(site),
    settings: settingsOf({
      ...{ region, bucket, profile: roleName(prefix, 'machine') },
      grantRole: `arn:aws:iam::${account}:role/${roleName(prefix, 'grant')}`,
      ...(group === undefined ? {} : { group }),
      subnets: subnets.filter((id) => id !== undefined),
    }),
  }
}

function remarksOf(network: Place['site']['choices']['network'], hasDefault: boolean): string[] {
  return [
    'None of this costs anything by itself: you pay for machines, with their disks and addresses, while jobs run, and for what the bucket keeps (about $0.023 a GB and month).',
    'Launch templates are not part of it: workers make one for each image, disk and network they use.',
    ...('vpcId' in network
      ? [`Machines go into the default network ${network.vpcId}.`]
      : [`Machines go into a network of their own${hasDefault ? '' : ', as there is no default one'}.`]),
  ]
}

/** Nothing where the plan may not be read: a launch tells. */
async function planRemarks({ clients, signal }: Place['site']): Promise<string[]> {
  const plan = await clients.plan(signal).catch(() => undefined)
  if (plan !== 'free') return []
  const types = FREE_PLAN_TYPES.map((name) => ({ name, isFreeTier: true }))
  return [`The account is on the free plan, which launches no machine with a GPU. ${freePlanAdvice(types)}`]
}

/** Zones that nearly every Region has, where nobody can be asked. */
const USUAL_ZONES = ['a', 'b', 'c']

async function terraform(
  wish: SetupOptions & { region: string },
  place: (signal: AbortSignal) => Promise<Place>,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  try {
    const { site } = await place(signal)
    const { network } = site.choices
    const spot = describeAccount(site.choices).find(({ kind }) => kind === 'linked-role')
    const isThere = spot !== undefined && (await readPiece(spot, site)).state === 'theirs'
    return writeTerraform({ ...site.choices, network, makesSpotRole: !isThere })
  } catch (error) {
    if (ec2Error(error).failure.class === 'invalid' || signal.aborted) throw error
    const { region, prefix, bucket } = wish
    const named = bucket === undefined ? {} : { bucket }
    const network = { zones: USUAL_ZONES.map((letter) => `${region}${letter}`) }
    return writeTerraform({ region, prefix, ...named, network, makesSpotRole: true })
  }
}
