import { arnIn } from '../../../network/partitions'
import type { CallContext, Problem } from '../../backend'
import { checkClock, checkSpotRole, checkTypes } from './account'
import { checkBuyer } from './buyer'
import { checkBucket, placeOf } from './bucket'
import { checkImage } from './image'
import { checkGroups, checkWaysOut } from './network'
import { checkStoreRights } from './store-rights'
import { ec2Error } from '../errors'
import type { Host } from '../host'
import {
  DISK_KEY_ACTIONS,
  probesOf,
  STORE_PERMISSIONS,
  WORKER_PERMISSIONS,
  type PolicyFacts,
} from '../setup/permissions'
import { checkPlan } from './free-plan'
import { refusalOfRoot } from '../setup/root'
import { isOpen, requestInWords } from '../market/quotas'
import { checkReservations } from '../market/reservations'
import { quotaOf } from '../market/shapes'
import { isNeuron, whyUnusable } from '../market/usable'
import { TYPES_DEFAULT } from '../config'

const isOptional = (action: string): boolean =>
  [...WORKER_PERMISSIONS, ...STORE_PERMISSIONS].some(
    (each) => each.action === action && each.isOptional === true,
  )

/**
 * Problems that prevent machines here, worst first. Read-only, except for a small object in the bucket that tests conditional writes and is
 * removed again.
 */
export async function check(host: Host, { signal }: CallContext): Promise<Problem[]> {
  const identity = await nameable(() => host.api.account.identity(signal), signal)
  if ('problem' in identity) return [identity.problem]
  const root = refusalOfRoot(identity.value.arn)
  if (root !== undefined)
    return [{ severity: 'error', message: root.message, remedy: root.hint, failure: root.class }]
  const parts = [
    () => checkPermissions(host, identity.value, signal),
    () => checkWaysOut(host, signal),
    () => checkGroups(host, signal),
    () => checkProfile(host, signal),
    () => checkStoreRights(host, storeOf(host), { account: identity.value.account, signal }),
    () => checkImage(host, signal),
    () => checkTypes(host, signal),
    () => checkSpotRole(host, signal),
    () => checkPlan(host, signal),
    () => checkQuotas(host, signal),
    () => checkPrices(host, signal),
    () => checkReservations(host, signal),
    () => checkBuyer(host, identity.value.account, signal),
    () => checkBucket(host, signal),
    () => checkDiskKey(host, identity.value.arn, signal),
  ]
  const problems = await Promise.all(
    parts.map(async (part) => {
      const found = await nameable(part, signal)
      return 'problem' in found ? [found.problem] : found.value
    }),
  )
  return [...checkClock(identity.value.clockAheadMs), ...problems.flat()]
    .filter(isFirstWord)
    .sort((a, b) => a.severity.localeCompare(b.severity))
}

/** A problem shared by several parts is listed once; the list of missing permissions is separate. */
function isFirstWord({ failure, message, remedy }: Problem, at: number, all: Problem[]): boolean {
  const isSame = (one: Problem): boolean =>
    one.remedy === remedy && (failure === 'auth' || one.message === message)
  return all.findIndex(isSame) === at
}

/** An answer, or the problem that prevented it. Throws only if the caller aborted. */
async function nameable<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<{ value: T } | { problem: Problem }> {
  try {
    return { value: await ask() }
  } catch (error) {
    const thrown = ec2Error(error)
    if (signal.aborted) throw thrown
    const { class: failure, message, code, hint } = thrown.failure
    const denied = failure === 'auth' ? NAMED_ACTION.exec(message)?.[1] : undefined
    if (denied !== undefined) return { problem: denial(message, denied) }
    const words =
      code === undefined || message.includes(code) ? message : `${message.replace(/\.$/, '')} (${code})`
    return { problem: { severity: 'error', message: words, remedy: hint ?? REACH_REMEDY, failure } }
  }
}

/** The common wording of all services: `... is not authorized to perform: ec2:DescribeSubnets`. */
const NAMED_ACTION = /not authorized to perform: ([\w-]+:\w+)/

function denial(message: string, action: string): Problem {
  return {
    severity: isOptional(action) ? 'warning' : 'error',
    message,
    remedy: `Allow ${action} in its policies.`,
    failure: 'auth',
  }
}

const REACH_REMEDY = 'Check that this machine reaches AWS, and CRUCIBLE_EC2_REGION.'

async function checkPermissions(
  host: Host,
  { account, arn }: { account: string; arn: string },
  signal: AbortSignal,
): Promise<Problem[]> {
  const { region, profile } = host.config
  const store = storeOf(host)
  const facts: PolicyFacts = {
    account,
    region,
    machineRoleArn: await machineRoleArn(host, account, signal),
    machineProfile: profile,
    bucket: store ?? '',
    deployment: host.deps.deployment,
  }
  const wanted = [...WORKER_PERMISSIONS, ...(store === undefined ? [] : STORE_PERMISSIONS)]
  try {
    const principal = await principalOf(host, arn, signal)
    const asked = probesOf(wanted, facts).map((wish) =>
      host.api.account.deniedActions(principal, wish, signal),
    )
    const denied = (await Promise.all(asked)).flat()
    const bounded = new Set(denied.filter(({ isOfBoundary }) => isOfBoundary).map(({ action }) => action))
    return [...new Set(denied.map(({ action }) => action))].map((action) =>
      bounded.has(action)
        ? {
            ...denial(`the permissions boundary of ${arn} does not allow ${action}`, action),
            remedy: `Allow ${action} in that boundary: aws iam get-role --role-name NAME, or get-user, shows it.`,
          }
        : denial(`${arn} lacks permission for ${action}`, action),
    )
  } catch (error) {
    const { message } = ec2Error(error).failure
    return [
      {
        severity: 'warning',
        message: `whether this identity, ${arn}, has all needed permissions cannot be checked: ${message}`,
        remedy: 'Allow it iam:SimulatePrincipalPolicy, or check its policies.',
      },
    ]
  }
}

/** Whether this identity may use the account's own key for disks. The policy of the key may still refuse it: IAM simulates none. */
async function checkDiskKey(host: Host, arn: string, signal: AbortSignal): Promise<Problem[]> {
  // Another check names the missing permission to read it.
  const key = await host.api.account.diskKey(signal).catch(() => undefined)
  if (key === undefined) return []
  const context = { 'kms:GrantIsForAWSResource': 'true' }
  const denied = await host.api.account.deniedActions(
    await principalOf(host, arn, signal),
    { actions: DISK_KEY_ACTIONS, probe: { resource: key, context } },
    signal,
  )
  if (denied.length === 0) return []
  const actions = denied.map(({ action }) => action).join(', ')
  return [
    {
      severity: 'error',
      message: `this account encrypts disks with the key ${key}, and ${arn} lacks permission for ${actions} with it: EC2 would end each machine at once (Client.InternalError)`,
      remedy:
        'Run `crucible setup aws` again, which adds them to the role of workers; or allow them in its policies.',
      failure: 'auth',
    },
  ]
}

/** Returns the name of the profile's role. Most have the profile's name; another check reports a missing permission to read it. */
async function machineRoleArn(
  { api, config: { profile, region } }: Host,
  account: string,
  signal: AbortSignal,
): Promise<string> {
  const found = await api.account.profile(profile, signal).catch(() => undefined)
  return found?.roleArn ?? arnIn(region, `iam::${account}:role/${found?.roleName ?? profile}`)
}

/** Returns the bucket if policies of this account apply to it; a non-AWS server's is excluded. */
function storeOf({ config, deps: { storeUrl } }: Host): string | undefined {
  if (storeUrl === undefined || !storeUrl.startsWith('s3://')) return undefined
  const { bucket } = placeOf(storeUrl)
  return bucket.endpoint === undefined || config.endpoint !== undefined ? bucket.name : undefined
}

/**
 * Returns the principal to simulate. IAM is asked for the role, not for one session of it, because a session's ARN lacks the path of its
 * role, which single sign-on roles have (`/aws-reserved/sso.amazonaws.com/...`).
 */
async function principalOf({ api }: Host, arn: string, signal: AbortSignal): Promise<string> {
  const session = /^arn:([\w-]+):sts::(\d+):assumed-role\/([^/]+)\/.+$/.exec(arn)
  if (session === null) return arn
  const [, partition, account, name = ''] = session
  const known = await api.account.roleArn(name, signal).catch(() => undefined)
  return known ?? `arn:${partition}:iam::${account}:role/${name}`
}

async function checkProfile(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const { profile, region } = host.config
  const found = await host.api.account.profile(profile, signal)
  if (found?.roleName === undefined) {
    return [
      {
        severity: 'error',
        message:
          found === undefined
            ? `there is no instance profile named ${profile}`
            : `the instance profile ${profile} has no role`,
        remedy:
          'Make one whose role has the policy AmazonSSMManagedInstanceCore (`crucible setup aws` does); or set CRUCIBLE_EC2_PROFILE.',
        failure: 'invalid',
      },
    ]
  }
  if (found.policies.length === 0 || found.policies.some((name) => /SSM/i.test(name))) return []
  return [
    {
      severity: 'warning',
      message: `the role ${found.roleName} of the machines seems to have no policy for the SSM agent`,
      remedy: `Run: aws iam attach-role-policy --role-name ${found.roleName} --policy-arn ${arnIn(region, 'iam::aws:policy/AmazonSSMManagedInstanceCore')}`,
    },
  ]
}

/** Names the machine families whose quota is zero. New accounts may have no GPU quota at all. */
async function checkQuotas(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const types = await host.market.types(signal)
  const families = new Map(
    types.flatMap((type) => {
      const quota = quotaOf(type.name)
      // A quota of zero for chips of Neuron matters only to jobs that name them, which are rare.
      const isUnasked = isNeuron(type) && host.config.types.every((one) => TYPES_DEFAULT.includes(one))
      return quota === undefined || isUnasked ? [] : [[quota.words, quota] as const]
    }),
  )
  const requests = host.api.account.quotaRequests(signal).catch(() => [])
  const ways = host.config.hasSpot ? (['on-demand', 'spot'] as const) : (['on-demand'] as const)
  const found = [...families.values()].flatMap((quota) =>
    ways.map(async (way): Promise<Problem[]> => {
      const limit = await host.quota(quota[way], signal)
      if (limit === undefined || limit > 0) return []
      const none = `the account may have no ${way} machines of the family ${quota.words} in ${host.config.region}`
      const asked = (await requests).find(({ code }) => code === quota[way])
      const request = asked === undefined ? '' : `; ${requestInWords(asked)}`
      const remedy =
        asked !== undefined && isOpen(asked)
          ? `Wait for the answer to the request for ${quota[way]}: \`crucible setup aws --quota\` follows it.`
          : `Ask for more with \`crucible setup aws --quota\`; the quota is ${quota[way]}.`
      return [{ severity: 'warning', message: `${none}${request}`, remedy, failure: 'quota' }]
    }),
  )
  return (await Promise.all(found)).flat()
}

/** Reports prices that are not current, and types that are not offered because they have no price. */
async function checkPrices(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const [all, priceOf] = await Promise.all([host.market.types(signal), host.market.onDemand(signal)])
  const types = all.filter((type) => whyUnusable(type, host.config) === undefined)
  const note = types.map(({ name }) => priceOf(name)?.note).find((one) => one !== undefined)
  if (note === undefined) return []
  const unpriced = types.filter(({ name }) => priceOf(name) === undefined).length
  const missing = unpriced === 0 ? '' : `; ${unpriced} of ${types.length} types have none and are not offered`
  return [
    {
      severity: 'warning',
      message: `${note}${missing}`,
      remedy:
        'Allow pricing:GetProducts, and let workers reach the price list, api.pricing.us-east-1.amazonaws.com.',
    },
  ]
}
