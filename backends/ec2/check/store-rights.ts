import { arnIn } from '../../../network/partitions'
import type { Problem } from '../../backend'
import { ec2Error } from '../errors'
import type { Host } from '../host'
import { probesOf, STORE_PERMISSIONS, type PolicyFacts } from '../setup/permissions'

/** Actions listed in one sentence. */
const NAMED_MAX = 3

/**
 * Checks the permissions of the machines' role on the store: none if machines get grants, otherwise all that the runner needs. `bucket` is
 * missing if policies of this account do not apply to the store.
 */
export async function checkStoreRights(
  { config, api }: Host,
  bucket: string | undefined,
  { account, signal }: { account: string; signal: AbortSignal },
): Promise<Problem[]> {
  // The existence of a profile with a role is a separate check.
  const profile = await api.account.profile(config.profile, signal).catch(() => undefined)
  if (bucket === undefined || profile?.roleName === undefined) return []
  const { roleName, roleArn = arnIn(config.region, `iam::${account}:role/${roleName}`) } = profile
  const needed = STORE_PERMISSIONS.filter(({ isOptional }) => isOptional !== true)
  const { region, profile: machineProfile } = config
  const facts: PolicyFacts = { account, region, bucket, machineRoleArn: roleArn, machineProfile }
  try {
    const denied = new Set(
      (
        await Promise.all(
          probesOf(config.hasGrants ? STORE_PERMISSIONS : needed, facts).map((wish) =>
            api.account.deniedActions(roleArn, wish, signal),
          ),
        )
      )
        .flat()
        .map(({ action }) => action),
    )
    if (!config.hasGrants) return denied.size === 0 ? [] : [lacking(roleName, [...denied])]
    const allowed = STORE_PERMISSIONS.map(({ action }) => action).filter((action) => !denied.has(action))
    return allowed.length === 0 ? [] : [excessive(roleName, allowed)]
  } catch (error) {
    const { message } = ec2Error(error).failure
    return [
      {
        severity: 'warning',
        message: `cannot check what the role ${roleName} of the machines may do in the store: ${message}`,
        remedy: 'Allow iam:SimulatePrincipalPolicy, or check its policies.',
      },
    ]
  }
}

function excessive(role: string, allowed: string[]): Problem {
  return {
    severity: 'warning',
    message: `the role ${role} of the machines may use the store (${inWords(allowed)}): each job can read and change the other jobs' data`,
    remedy:
      'Run `crucible setup aws` again, which removes the store from the role; for your own role, remove these permissions.',
  }
}

function lacking(role: string, denied: string[]): Problem {
  return {
    severity: 'error',
    message: `the role ${role} of the machines lacks permissions for the store (${inWords(denied)}), and CRUCIBLE_EC2_GRANTS is "no"`,
    remedy: 'Remove the setting CRUCIBLE_EC2_GRANTS, so that machines get credentials from their worker.',
    failure: 'auth',
  }
}

function inWords(actions: string[]): string {
  const more = actions.length > NAMED_MAX ? ` and ${actions.length - NAMED_MAX} more` : ''
  return `${actions.slice(0, NAMED_MAX).join(', ')}${more}`
}
