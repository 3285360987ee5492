import { withoutEnd } from '../../core/trim'
import { CODES } from '../../core/errors'
import { StoreError } from '../store'

/** The contents of an S3 store's URL: `s3://bucket/prefix?endpoint=http://host:port&region=eu-west-1`. */
export interface S3Place {
  bucket: string
  /** The prefix of every key: empty, or ends with a slash. */
  prefix: string
  /** Queried when missing. */
  region?: string
  /** Server other than AWS. It gets path-style requests, `/bucket/key`, which all servers understand. */
  endpoint?: string
}

const PARAMETERS = ['endpoint', 'region'] as const
const SHAPE =
  's3://bucket/prefix?region=eu-west-1, with &endpoint=https://host:port for a server other than AWS'
/** S3 itself allows fewer names; other servers also allow capitals and underscores. */
const BUCKET_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/

/** Parses the URL of a store. Throws a `StoreError` that explains an error in it. */
export function parsePlace(url: URL): S3Place {
  const complain = (why: string): StoreError =>
    new StoreError(`Cannot open the object store ${shown(url)}: ${why}; write ${SHAPE}.`, {
      isTransient: false,
      code: CODES.badUrl,
    })
  const bucket = decodeURIComponent(url.host)
  if (url.username !== '' || url.password !== '')
    throw complain('it must not contain keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile')
  if (bucket === '') throw complain('it names no bucket')
  if (!BUCKET_PATTERN.test(bucket)) throw complain(`${JSON.stringify(bucket)} is not a valid bucket name`)
  const unknown = [...url.searchParams.keys()].find((name) => !PARAMETERS.some((known) => known === name))
  if (unknown !== undefined) throw complain(`there is no parameter ${JSON.stringify(unknown)}`)
  if (url.hash !== '' || PARAMETERS.some((name) => url.searchParams.getAll(name).length > 1))
    throw complain('each parameter may occur once')
  const prefix = withoutEnd(decodeURIComponent(url.pathname).replace(/^\/+/, ''), '/')
  if (prefix.split('/').some((segment) => ['.', '..'].includes(segment)) || prefix.includes('//'))
    throw complain(`its prefix ${JSON.stringify(prefix)} is not a plain path`)
  const endpoint = url.searchParams.get('endpoint')
  if (endpoint !== null && !isServer(endpoint))
    throw complain(`its endpoint ${JSON.stringify(endpoint)} must begin with http:// or https://`)
  const region = url.searchParams.get('region')
  return {
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    region: region === null || region === '' ? undefined : region,
    endpoint: endpoint === null ? undefined : withoutEnd(endpoint, '/'),
  }
}

/** Formats a place as a URL. The same place always gets the same URL. */
export function formatPlace({ bucket, prefix, region, endpoint }: S3Place): string {
  const path = prefix
    .split('/')
    .slice(0, -1)
    .map((segment) => `/${encodeURIComponent(segment)}`)
    .join('')
  const query = new URLSearchParams()
  if (endpoint !== undefined) query.set('endpoint', endpoint)
  if (region !== undefined) query.set('region', region)
  return `s3://${bucket}${path}${query.size === 0 ? '' : `?${query.toString()}`}`
}

/** Returns the URL without the part that the user may have used for a password. */
function shown(url: URL): string {
  const copy = new URL(url.href)
  copy.username = copy.password = ''
  return copy.href
}

function isServer(endpoint: string): boolean {
  if (!URL.canParse(endpoint)) return false
  const { protocol, host, search, hash } = new URL(endpoint)
  return ['http:', 'https:'].includes(protocol) && host !== '' && search === '' && hash === ''
}
