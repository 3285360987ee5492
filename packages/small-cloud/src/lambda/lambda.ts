/** Lambda Cloud: the API v1 with its documented quirks. */
import { HttpAnswer, type HttpRequest, type HttpService } from '../http/service'
import { isSameSecret } from '../keys'
import { runsIn, stateOf } from '../machines/history'
import type { InstanceSummary } from '../control'
import type { Provider, ProviderParts } from '../provider'
import { TokenBuckets, type Bucket } from '../token-buckets'
import { LambdaAccount } from './account'
import { invalidParameters, lambdaError, SUGGESTIONS } from './errors'
import { launchRoute } from './launch'
import { BILLED, type LambdaInstance } from './model'
import { instanceRoutes, otherRoutes, typesRoute } from './routes'
import type { LambdaPlan } from './world'

/** The limits of an account: one request a second, and one launch in twelve (API reference, November 2026). */
const DOCUMENTED = {
  requests: { size: 1, perSecond: 1 },
  launches: { size: 1, perSecond: 1 / 12 },
} as const satisfies Record<string, Bucket>

export function createLambda(parts: ProviderParts): Provider {
  const account = new LambdaAccount(parts)
  return {
    service: serviceOf(account),
    credentials: { apiKey: account.apiKey },
    hosted: () => account.instances.values(),
    instances: () => [...account.instances.values()].map((each) => summaryOf(account, each)),
    interrupt: account.interrupt,
  }
}

function serviceOf(account: LambdaAccount): HttpService {
  const buckets = new TokenBuckets(account.parts.clock)
  const { apiKey } = account
  const { account: state, throttling } = account.plan
  const limits = limitsOf(throttling)
  return {
    name: 'lambda',
    routes: [typesRoute(account), ...instanceRoutes(account), launchRoute(account), ...otherRoutes(account)],
    screen: blockedByFirewall,
    identify: (request) => {
      if (!isSameSecret(keyOf(request) ?? '', apiKey))
        throw lambdaError('global/invalid-api-key', 'API key was invalid, expired, or deleted.')
      if (state === 'inactive') throw lambdaError('global/account-inactive', 'Your account is inactive.')
      return `key ...${apiKey.slice(-4)}`
    },
    pace: ({ action }) => {
      const { requests, launches } = limits
      const isFast =
        (requests !== undefined && !buckets.take('requests', requests)) ||
        (action === 'launch' && launches !== undefined && !buckets.take('launches', launches))
      // The status is documented; code and body are not.
      if (isFast) throw lambdaError('global/rate-limit-exceeded', 'Too many requests.')
    },
    wrongFields: (fields) =>
      invalidParameters(
        fields.map(({ field, words }) => (field === '' ? words : `${field}: ${words}`)).join('; '),
      ),
    unknownRoute: ({ method, url }) => lambdaError('global/not-found', `There is no ${method} ${url}.`),
    fault: (which) => {
      if (which === 'internal-error')
        return lambdaError('global/internal-error', 'An internal server error occurred.')
      if (which === 'unavailable') return lambdaError('provider/internal-unavailable', 'Provider unavailable')
      const { code, message = `${code}, because the world says so.`, status } = which
      return lambdaError(code, message, status)
    },
    writeError: ({ code, message, status }, requestId) => {
      const suggestion = SUGGESTIONS[code]
      const error = {
        code,
        message,
        ...(suggestion === undefined ? {} : { suggestion }),
        request_id: requestId,
      }
      return new HttpAnswer(status, { error })
    },
  }
}

type Limits = Partial<Record<'requests' | 'launches', Bucket>>

function limitsOf(throttling: LambdaPlan['throttling']): Limits {
  if (throttling === 'off') return {}
  if (throttling === 'documented') return DOCUMENTED
  const { requests = DOCUMENTED.requests, launches = DOCUMENTED.launches } = throttling
  return { requests, launches }
}

/** Returns the page of the firewall in front of the API, which refuses clients without their own name and does not answer with JSON. */
function blockedByFirewall({ headers }: HttpRequest): HttpAnswer | undefined {
  const agent = headers['user-agent'] ?? ''
  if (agent !== '' && !/^(node|undici|python-urllib)/i.test(agent)) return undefined
  const page =
    '<!doctype html><html><head><title>Access denied</title></head><body>error code: 1010</body></html>\n'
  return new HttpAnswer(403, page, { 'content-type': 'text/html; charset=UTF-8', server: 'cloudflare' })
}

/** The key as a bearer token, or as the user of basic authentication without a password. */
function keyOf({ headers: { authorization = '' } }: HttpRequest): string | undefined {
  const [scheme = '', value = ''] = authorization.split(' ')
  if (/^bearer$/i.test(scheme)) return value
  if (/^basic$/i.test(scheme)) return Buffer.from(value, 'base64').toString('utf8').replace(/:$/, '')
  return undefined
}

const MINUTE_MS = 60_000

function summaryOf(account: LambdaAccount, instance: LambdaInstance): InstanceSummary {
  const { id, region, type, tags, launchedAtMs, isImpaired } = instance
  const runs = runsIn(instance, BILLED)
  const cents = account.market.centsPerHour(type)
  // Each minute that has begun is billed.
  const minutes = runs.reduce(
    (sum, { fromMs, untilMs = account.nowMs }) => sum + (untilMs - fromMs) / MINUTE_MS,
    0,
  )
  const [first, last] = [runs[0], runs.at(-1)]
  return {
    provider: 'lambda',
    id,
    state: stateOf(instance),
    type: type.name,
    image: 'lambda-stack-22-04',
    zone: region,
    capacity: 'on-demand',
    tags: Object.fromEntries(tags),
    launchedAtMs,
    isImpaired,
    ...(instance.history.some((change) => change.state === 'unhealthy') && { reason: 'unhealthy' }),
    bill: {
      ...(first === undefined ? {} : { fromMs: first.fromMs }),
      ...(last?.untilMs === undefined ? {} : { untilMs: last.untilMs }),
      usd: (Math.ceil(minutes) * cents) / 60 / 100,
    },
  }
}
