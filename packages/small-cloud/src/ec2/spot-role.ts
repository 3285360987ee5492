/** The account's service-linked role that EC2 requires for launching spot machines. */
import { linkedRoleName } from '../identity/identities'
import { ApiError } from '../wire/errors'
import type { Call } from '../wire/service'
import type { CapacityType } from '../world/schema'
import type { Ec2 } from './ec2'

const SPOT = 'spot.amazonaws.com'

/** Returns the error when the role is missing. A caller with permission to create the role creates it implicitly, as in EC2. */
export function spotRoleProblem(ec2: Ec2, { principal }: Call, capacity: CapacityType): ApiError | undefined {
  const { identities } = ec2.parts
  if (capacity !== 'spot' || identities.roles.has(linkedRoleName(SPOT))) return undefined
  if (identities.judge(principal, { action: 'iam:CreateServiceLinkedRole' }) === 'allowed') {
    identities.addLinkedRole(SPOT, { createdAt: new Date(ec2.nowMs) })
    return undefined
  }
  return new ApiError(
    'AuthFailure.ServiceLinkedRoleCreationNotPermitted',
    'The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.',
    403,
  )
}
