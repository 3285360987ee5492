import type { Problem } from '../../backend'
import type { MachineType } from '../sdk/api'
import type { Host } from '../host'
import { UPGRADE_PLAN } from '../meanings'

/** Best types for a first job on the free plan, if `describe-instance-types` still lists them as such. */
export const FREE_PLAN_TYPES = ['m7i-flex.large', 'c7i-flex.large']

/** Why the account's plan prevents the launch of a type, if it does. */
export function planNote(
  plan: 'free' | 'paid' | undefined,
  { name, isFreeTier }: MachineType,
): string | undefined {
  if (plan !== 'free' || isFreeTier) return undefined
  return `the account is on the free plan, which does not launch ${name}: upgrade the account's plan`
}

/** Advice for a new account; nothing if the plan allows no suitable type. */
export function freePlanAdvice(types: readonly Pick<MachineType, 'name' | 'isFreeTier'>[]): string {
  const eligible = types.filter(({ isFreeTier }) => isFreeTier).map(({ name }) => name)
  const first = FREE_PLAN_TYPES.find((name) => eligible.includes(name)) ?? eligible[0]
  return first === undefined
    ? `${UPGRADE_PLAN} None of the machine types of CRUCIBLE_EC2_TYPES is allowed until then.`
    : `${UPGRADE_PLAN} Until then only jobs without a GPU that fit into ${first} run.`
}

export async function checkPlan({ market }: Host, signal: AbortSignal): Promise<Problem[]> {
  if ((await market.plan(signal)) !== 'free') return []
  const types = await market.types(signal)
  const message =
    'the account is on the free plan of AWS, which launches a few small machine types and none with a GPU'
  return [{ severity: 'warning', message, remedy: freePlanAdvice(types), failure: 'quota' }]
}
