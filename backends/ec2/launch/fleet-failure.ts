import type { Failure, FailureClass } from '../../../core/failure'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import { MINUTE_MS } from '../../../core/time/time'
import type { FleetAnswer } from '../sdk/api'
import { failureOfCode } from '../errors'
import { LEFT_ALONE_MS, type Host } from '../host'
import { isNotOffered, meaningOf } from '../meanings'

type PoolError = FleetAnswer['errors'][number]

/** Code without a cause: the fleet got nothing. EC2 adds it to the code with the cause. */
const SAYS_NOTHING = 'UnfulfillableCapacity'

/**
 * Returns the failure of a fleet without a machine. EC2 answers 200 for any cause, with one error for each pool and often an additional
 * `UnfulfillableCapacity`. Errors that apply to every launch of the deployment come first, because no other pool helps; then the pools by
 * `FAILURE_PRECEDENCE`.
 * @param errors at least one
 */
export function failureOfFleet(host: Host, order: Order, errors: readonly PoolError[]): Failure {
  const failed = errors.map((error) => {
    const failure = failureOfCode(error.code, error.message)
    return { error, failure: treatAsTransientWhileNew(host, error, failure) }
  })
  const telling = preferring(failed, ({ error }) => error.code !== SAYS_NOTHING)
  const own = preferring(telling, ({ error }) => !isNotOffered(error.code, error.message))
  const deploymentWide = own.find(
    ({ error }) => meaningOf(error.code, error.message)?.isDeploymentWide === true,
  )
  if (deploymentWide !== undefined) return deploymentWide.failure
  for (const { error, failure } of telling) leaveAlone(host, order, { error, failure })
  const [first] = FAILURE_PRECEDENCE.flatMap((one) => own.filter(({ failure }) => failure.class === one))
  const codes = [...new Set(errors.map(({ code }) => code))].join(', ')
  return {
    ...first!.failure,
    message: `None of ${order.offers.length} pools gave a machine (${codes}): ${first!.failure.message}`,
  }
}

/** Transient failures rank above ones that need an operator, because another pool of the same order may recover. */
const FAILURE_PRECEDENCE: readonly FailureClass[] = [
  'capacity',
  'throttled',
  'transient',
  'quota',
  'unclassified',
  'expired',
  'auth',
  'invalid',
]

function preferring<T>(all: T[], isPreferred: (one: T) => boolean): T[] {
  const preferred = all.filter(isPreferred)
  return preferred.length > 0 ? preferred : all
}

/** Remembers a pool without capacity, so that the next plans prefer others for a while. */
function leaveAlone(
  { memory }: Host,
  order: Order,
  { error, failure }: { error: PoolError; failure: Failure },
): void {
  for (const offer of order.offers.filter((one) => isOf(one, error.pool)))
    memory.missed(offer, error.code, LEFT_ALONE_MS[aloneFor(error, failure)])
}

function aloneFor({ code, message }: PoolError, failure: Failure): keyof typeof LEFT_ALONE_MS {
  if (isNotOffered(code, message)) return 'never'
  return failure.class === 'quota' ? 'quota' : 'capacity'
}

function isOf({ type, data }: Offer, pool: PoolError['pool']): boolean {
  if (pool === undefined || (pool.type === undefined && pool.subnet === undefined)) return true
  return (
    (pool.type === undefined || pool.type === type) &&
    (pool.subnet === undefined || pool.subnet === data?.subnet)
  )
}

/** New profiles and groups are visible everywhere within about this long. */
const NEW_MS = MINUTE_MS

/**
 * EC2 does not know a profile or group that was created moments ago. Such an answer is transient for a minute after it was first seen, and
 * `invalid` from then on, whether it came from the call itself or from one pool of a fleet.
 */
export function treatAsTransientWhileNew(
  host: Host,
  { code, message }: Pick<PoolError, 'code' | 'message'>,
  failure: Failure,
): Failure {
  const isMissing =
    code === 'InvalidGroup.NotFound' ||
    (code === 'InvalidParameterValue' && meaningOf(code, message)?.class === 'transient')
  if (!isMissing) return failure
  const isNew = host.memory.heldMs(`not found: ${message}`, true)! < NEW_MS
  return { ...failure, class: isNew ? 'transient' : 'invalid' }
}
