import type { Problem } from '../../backend'
import { ec2Error } from '../errors'
import type { Host } from '../host'
import { BUYER_PERMISSIONS, probesOf } from '../setup/permissions'

/** Actions listed in one sentence. */
const NAMED_MAX = 3
const REMEDY =
  'Run `crucible setup aws --buyer`, or remove the setting CRUCIBLE_EC2_BUYER_ROLE: jobs run without it, and nothing is bought in advance.'

const ROLE_ARN = /^arn:[\w-]+:iam::(\d+):role\/.+$/

/** Returns why this role must not buy: its purchases would belong to another account, and never show among this one's reservations. */
export function whyForeign(buyerRole: string, account: string): string | undefined {
  if (ROLE_ARN.exec(buyerRole)?.[1] === account) return undefined
  return `the role ${buyerRole} belongs to another account; its purchases would not appear in ${account}`
}

/**
 * Checks whether capacity can be bought in advance, if the settings name a role for it. Without one it reports nothing, because most
 * deployments buy nothing, and a refused purchase explains itself.
 */
export async function checkBuyer(
  { config, api, deps }: Host,
  account: string,
  signal: AbortSignal,
): Promise<Problem[]> {
  const { buyerRole, region } = config
  if (buyerRole === undefined || config.reservations === 'none') return []
  const foreign = whyForeign(buyerRole, account)
  if (foreign !== undefined) return [notPermitted(foreign)]
  try {
    // Any question in the name of the role.
    await api.reserving.blockTypes(signal)
  } catch (error) {
    const { failure } = ec2Error(error)
    if (signal.aborted || failure.class !== 'auth') throw error
    return [notPermitted(failure.message)]
  }
  const facts = {
    account,
    region,
    machineRoleArn: '',
    machineProfile: '',
    bucket: '',
    deployment: deps.deployment,
  }
  const asked = probesOf(BUYER_PERMISSIONS, facts)
  const answers = await Promise.all(asked.map((wish) => api.account.deniedActions(buyerRole, wish, signal)))
  const denied = answers.flat()
  const lacking = [...new Set(denied.map(({ action }) => action))]
  if (lacking.length === 0) return []
  const more = lacking.length > NAMED_MAX ? ` and ${lacking.length - NAMED_MAX} more` : ''
  const why = denied.some(({ isOfBoundary }) => isOfBoundary)
    ? ', which its permissions boundary does not allow'
    : ''
  return [notPermitted(`the role ${buyerRole} lacks ${lacking.slice(0, NAMED_MAX).join(', ')}${more}${why}`)]
}

function notPermitted(message: string): Problem {
  return {
    severity: 'warning',
    remedy: REMEDY,
    failure: 'auth',
    message: `buying capacity in advance is not permitted: ${message}`,
  }
}
