import { defined } from '../../core/defined'
import type { OwnTags } from '../../core/own-tags'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { BackendError } from '../errors'
import {
  Complaint,
  durationWithin,
  listOf,
  parseYesNo,
  SettingsReader,
  urlOr,
  type Parser,
} from '../settings'
import { parseOwnTags } from './own-tags'

/** Settings for buying machines. */
export interface Ec2Config {
  /** The Region of this config; for a whole config the first of `regions`. */
  region: string
  /** All Regions in which machines are bought; at least one. */
  regions: string[]
  /** Subnets by id, or the default ones of every zone. */
  subnets: string[] | 'default'
  /** Security groups by id, or by name in the network of the subnets. */
  securityGroups: { ids: string[] } | { name: string }
  /** Tags of the account's own on everything that is created. */
  tags: OwnTags
  /** Name of the instance profile of the machines. */
  profile: string
  /** Image (`ami-...`) or public parameter; `{arch}` in it is replaced by the type's architecture. */
  image: string
  /** Image, or public parameter, of machines with Trainium and Inferentia. */
  neuronImage: string
  /** Names of machine types, with `*` as a wildcard. */
  types: string[]
  hasSpot: boolean
  /** Capacity reservations and Capacity Blocks that may be used: by jobs that name one, by all jobs, by no job; or those that all jobs may use. */
  reservations: 'named' | 'all' | 'none' | string[]
  /** ARN of the role that buys and changes capacity in advance; the worker's own credentials if missing. */
  buyerRole?: string
  /** Minimum disk size of a machine. */
  diskGiB: number
  /** A machine whose agent has not registered after this long is given up. */
  registerWithinMs: number
  /** Whether machines get credentials for their own attempt's part of the store; otherwise they use those of their profile. */
  hasGrants: boolean
  /** How long EC2 listings may omit a change. */
  staleForMs: number
  /** A launch template of this age without machines is deleted. */
  templatesKeptMs: number
  /** A server that replaces AWS. */
  endpoint?: string
}

/** Names that set-up uses, and defaults here. */
const PROFILE_DEFAULT = 'crucible-machine'
export const GROUP_DEFAULT = 'crucible-machine'

/** Ubuntu with NVIDIA's driver, Docker and the agent, kept current by AWS. */
const IMAGE_DEFAULT =
  '/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id'

/** Ubuntu with the driver and the frameworks of Neuron, kept current by AWS ("Neuron DLAMI User Guide"). */
const NEURON_IMAGE_DEFAULT = '/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id'

/** NVIDIA GPUs of every generation, CPU machines of a generation that every Region has, and Neuron for jobs that name it. */
export const TYPES_DEFAULT = ['g*', 'p*', 'c7i.*', 'm7i.*', 'r7i.*', 'inf2.*', 'trn1*', 'trn2.*']

/** The image needs about sixty. */
const DISK_DEFAULT_GIB = 100
/** Maximum size of one volume. */
export const DISK_MAX_GIB = 16_384

/** An agent registers within two minutes; five times as long is more than slowness. */
const REGISTER_DEFAULT_MS = 10 * MINUTE_MS
/** AWS advises waiting up to five minutes before relying on a list ("Eventual consistency", EC2 developer guide). */
const STALE_DEFAULT_MS = 5 * MINUTE_MS

/** Launches create a missing one again: this only avoids recreating one that is used every week. */
const TEMPLATES_KEPT_DEFAULT_MS = 168 * HOUR_MS

/** The settings by name, for the parser's messages and for the documentation. */
export const EC2_SETTINGS = [
  { name: 'CRUCIBLE_EC2_REGION', default: '`AWS_REGION`', meaning: 'Region in which machines are bought' },
  {
    name: 'CRUCIBLE_EC2_REGIONS',
    default: 'that one Region',
    meaning: 'several Regions, separated by commas',
  },
  {
    name: 'CRUCIBLE_EC2_SUBNETS',
    default: 'the default subnet of every zone',
    meaning: 'subnets of the machines; a Region without any uses its default ones',
  },
  {
    name: 'CRUCIBLE_EC2_SECURITY_GROUPS',
    default: 'the group named `crucible-machine`',
    meaning: 'security groups of the machines; no inbound rule is needed',
  },
  {
    name: 'CRUCIBLE_EC2_PROFILE',
    default: 'crucible-machine',
    meaning: 'instance profile of the machines',
  },
  {
    name: 'CRUCIBLE_EC2_IMAGE',
    default: 'the newest Deep Learning Base image with Ubuntu 24.04',
    meaning: 'image of the machines, or a public parameter with its id; `{arch}` becomes `x86_64` or `arm64`',
  },
  {
    name: 'CRUCIBLE_EC2_NEURON_IMAGE',
    default: "AWS's newest Neuron image",
    meaning: 'image of machines with Trainium and Inferentia, or a public parameter with its id',
  },
  {
    name: 'CRUCIBLE_EC2_TYPES',
    default: '`g*,p*,c7i.*,m7i.*,r7i.*,inf2.*,trn1*,trn2.*`',
    meaning: 'types of machines to offer, separated by commas; `*` is a wildcard',
  },
  { name: 'CRUCIBLE_EC2_SPOT', default: 'yes', meaning: '`no` offers no spot machines' },
  {
    name: 'CRUCIBLE_EC2_RESERVATIONS',
    default: 'named',
    meaning:
      'capacity that was reserved elsewhere: `named` is for jobs that name it, `all` for all jobs; `none`; or ids, which are for all jobs, and no others',
  },
  {
    name: 'CRUCIBLE_EC2_BUYER_ROLE',
    default: "the worker's own credentials",
    meaning: 'ARN of the role that buys and changes capacity in advance',
  },
  {
    name: 'CRUCIBLE_EC2_TAGS',
    default: 'none',
    meaning: 'your own tags on everything that is created, also by `setup aws`; for bills and tag policies',
  },
  { name: 'CRUCIBLE_EC2_DISK', default: '100', meaning: 'least disk of a machine, in GiB' },
  {
    name: 'CRUCIBLE_EC2_REGISTER_WITHIN',
    default: '10m',
    meaning: 'a machine whose agent has not registered by then is replaced',
  },
  {
    name: 'CRUCIBLE_EC2_STALE_FOR',
    default: '5m',
    meaning: 'how long EC2 listings may omit a new resource',
  },
  {
    name: 'CRUCIBLE_EC2_TEMPLATES_KEPT',
    default: '168h',
    meaning: 'garbage collection deletes unused launch templates of this age',
  },
  {
    name: 'CRUCIBLE_EC2_GRANTS',
    default: 'yes',
    meaning:
      "machines get store credentials for their own attempt; with `no` they use the role of their profile, and every job can read and change the other jobs' data",
  },
  {
    name: 'AWS_ENDPOINT_URL',
    default: 'AWS itself',
    meaning: 'another server with the AWS API',
  },
]

export type ParsedEc2Config = { config: Ec2Config } | { problems: string[] }

/** Reads the settings of `EC2_SETTINGS`; either a whole config or every problem at once. */
export function parseEc2Config(settings: Record<string, string | undefined>): ParsedEc2Config {
  const { problems, read, result } = new SettingsReader(settings)
  const one = read('CRUCIBLE_EC2_REGION', regionOf(settings), parseRegion)
  const regions = read('CRUCIBLE_EC2_REGIONS', one === '' ? [] : [one], parseRegions)
  const region = regions[0] ?? ''
  if (region === '' && problems.length === 0)
    problems.push('CRUCIBLE_EC2_REGION is missing: name a Region, such as us-east-1')
  if (settings.CRUCIBLE_EC2_REGION?.trim() && one !== '' && region !== '' && !regions.includes(one))
    problems.push(
      `CRUCIBLE_EC2_REGION is "${one}", which CRUCIBLE_EC2_REGIONS does not list: add it there, or leave CRUCIBLE_EC2_REGION out`,
    )
  const endpoint = read('AWS_ENDPOINT_URL', '', urlOr('write a URL, such as http://127.0.0.1:4566'))
  const buyerRole = read('CRUCIBLE_EC2_BUYER_ROLE', '', parseRoleArn)
  const groups = read('CRUCIBLE_EC2_SECURITY_GROUPS', [], idsOf('sg-'))
  const config: Ec2Config = {
    region,
    regions,
    subnets: read<string[] | 'default'>('CRUCIBLE_EC2_SUBNETS', 'default', idsOf('subnet-')),
    securityGroups: groups.length > 0 ? { ids: groups } : { name: GROUP_DEFAULT },
    profile: read('CRUCIBLE_EC2_PROFILE', PROFILE_DEFAULT, parseProfile),
    image: read('CRUCIBLE_EC2_IMAGE', IMAGE_DEFAULT, parseImage),
    neuronImage: read('CRUCIBLE_EC2_NEURON_IMAGE', NEURON_IMAGE_DEFAULT, parseImage),
    types: read('CRUCIBLE_EC2_TYPES', TYPES_DEFAULT, parseTypes),
    hasSpot: read('CRUCIBLE_EC2_SPOT', true, parseYesNo),
    reservations: read<Ec2Config['reservations']>('CRUCIBLE_EC2_RESERVATIONS', 'named', parseReservations),
    diskGiB: read('CRUCIBLE_EC2_DISK', DISK_DEFAULT_GIB, parseDisk),
    registerWithinMs: read('CRUCIBLE_EC2_REGISTER_WITHIN', REGISTER_DEFAULT_MS, parseDuration),
    staleForMs: read('CRUCIBLE_EC2_STALE_FOR', STALE_DEFAULT_MS, parseDuration),
    templatesKeptMs: read('CRUCIBLE_EC2_TEMPLATES_KEPT', TEMPLATES_KEPT_DEFAULT_MS, parseDuration),
    tags: read<OwnTags>('CRUCIBLE_EC2_TAGS', {}, parseOwnTags),
    hasGrants: read('CRUCIBLE_EC2_GRANTS', true, parseYesNo),
    buyerRole: buyerRole === '' ? undefined : buyerRole,
    endpoint: endpoint === '' ? undefined : endpoint,
  }
  return result(config)
}

function regionOf(env: Record<string, string | undefined>): string {
  return env.AWS_REGION?.trim() || env.AWS_DEFAULT_REGION?.trim() || ''
}

/** A request, completed by the environment's settings for AWS. Throws `invalid` for tags that EC2 would refuse. */
export function accountOptions<T extends { region?: string }>(
  wish: T,
  env: Record<string, string | undefined>,
): T & { endpoint?: string; storeEndpoint?: string; tags: OwnTags } {
  const configured = env.CRUCIBLE_EC2_REGIONS?.trim() || env.CRUCIBLE_EC2_REGION?.trim()
  const region = wish.region ?? (configured || regionOf(env) || undefined)
  const endpoint = env.AWS_ENDPOINT_URL?.trim() || undefined
  const storeEndpoint = env.AWS_ENDPOINT_URL_S3?.trim() || undefined
  const { problems, read } = new SettingsReader(env)
  const tags = read<OwnTags>('CRUCIBLE_EC2_TAGS', {}, parseOwnTags)
  const [message] = problems
  if (message !== undefined) throw new BackendError({ class: 'invalid', message })
  return { ...wish, ...defined({ region, endpoint, storeEndpoint }), tags }
}

const parseRegion: Parser<string> = (text) =>
  /^[a-z]{2,4}(?:-[a-z]+)+-\d$/.test(text) ? text : new Complaint('write a Region, such as us-east-1')

const parseRegions: Parser<string[]> = (text) => {
  const regions = [...new Set(listOf(text))]
  return regions.length > 0 && regions.every((each) => !(parseRegion(each) instanceof Complaint))
    ? regions
    : new Complaint('write Regions such as us-east-1,us-west-2, with commas between them')
}

const idsOf =
  (prefix: string): Parser<string[]> =>
  (text) => {
    const ids = listOf(text)
    const isGood = ids.length > 0 && ids.every((id) => new RegExp(`^${prefix}[0-9a-z]+$`).test(id))
    return isGood
      ? ids
      : new Complaint(`write ids such as ${prefix}0123456789abcdef0, with commas between them`)
  }

const parseProfile: Parser<string> = (text) =>
  /^[\w+=,.@-]{1,128}$/.test(text)
    ? text
    : new Complaint('write the name of an instance profile, not its ARN')

const parseRoleArn: Parser<string> = (text) =>
  /^arn:aws[\w-]*:iam::\d{12}:role\/[\w+=,.@/-]+$/.test(text)
    ? text
    : new Complaint('write the ARN of a role, such as arn:aws:iam::123456789012:role/crucible-buyer')

const parseImage: Parser<string> = (text) =>
  /^(?:ami-[0-9a-z]+|\/[\w.{}/-]+)$/.test(text)
    ? text
    : new Complaint('write an image such as ami-0123456789abcdef0, or a parameter that begins with /')

const parseTypes: Parser<string[]> = (text) => {
  const types = listOf(text)
  return types.length > 0 && types.every((type) => /^[a-z0-9.*-]+$/.test(type))
    ? types
    : new Complaint('write names of types such as g5.xlarge,p4d.*')
}

const parseReservations: Parser<Ec2Config['reservations']> = (text) => {
  if (text === 'named' || text === 'all' || text === 'none') return text
  const ids = idsOf('cr-')(text)
  return ids instanceof Complaint
    ? new Complaint(`write named, all, none, or ${ids.advice.replace(/^write /, '')}`)
    : ids
}

const parseDisk: Parser<number> = (text) =>
  /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= DISK_MAX_GIB
    ? Number(text)
    : new Complaint(`write whole GiB from 1 to ${DISK_MAX_GIB}, such as 200`)

const parseDuration = durationWithin({ advice: 'write a duration with its unit, such as 90s or 10m' })
