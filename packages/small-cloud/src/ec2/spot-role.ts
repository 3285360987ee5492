/** The service-linked role of the account without which EC2 launches no spot machine. */
import { linkedRoleName } from '../identity/identities'
import { ApiError } from '../wire/errors'
import type { Call } from '../wire/service'
import type { CapacityType } from '../world/schema'
import type { Ec2 } from './ec2'

const SPOT = 'spot.amazonaws.com'

/** What stands against spot machines for want of the role. Whoever may make it has it made by the way, as EC2 does. */
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
