/** Changes the inline policies of roles, as their owner does. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { text } from '../wire/query'
import { action, type Action } from '../wire/service'
import type { Identities, Role } from './identities'
import { noSuch, roleOf } from './iam-words'
import { readPolicy } from './policy'

const ofPolicy = z.strictObject({ RoleName: text, PolicyName: text })
/** Maximum total length of a role's inline policies, in characters without white space. */
const INLINE_CHARS_MAX = 10_240

export function policyChanges(identities: Identities): Record<string, Action> {
  const change = (role: Role): void => identities.planned(role)
  return {
    PutRolePolicy: action({
      input: ofPolicy.extend({ PolicyDocument: text }),
      isMutating: true,
      run({ RoleName, PolicyName, PolicyDocument }) {
        const role = roleOf(identities, RoleName)
        const document = parsed(PolicyDocument)
        const read = readPolicy(document)
        if ('problem' in read) throw malformed(read.problem)
        const policies = { ...role.plan.policies, [PolicyName]: document as Role['plan']['policies'][string] }
        const chars = Object.values(policies).reduce((sum, each) => sum + JSON.stringify(each).length, 0)
        if (chars > INLINE_CHARS_MAX)
          throw new ApiError(
            'LimitExceeded',
            `Maximum policy size of ${INLINE_CHARS_MAX} bytes exceeded for role ${RoleName}`,
            409,
          )
        role.plan.policies = policies
        change(role)
      },
    }),
    DeleteRolePolicy: action({
      input: ofPolicy,
      isMutating: true,
      run({ RoleName, PolicyName }) {
        const role = roleOf(identities, RoleName)
        const { [PolicyName]: gone, ...kept } = role.plan.policies
        if (gone === undefined) throw noSuch(`The role policy with name ${PolicyName} cannot be found.`)
        role.plan.policies = kept
        change(role)
      },
    }),
  }
}

function parsed(document: string): unknown {
  try {
    return JSON.parse(document)
  } catch {
    throw malformed('This policy contains invalid Json')
  }
}

function malformed(message: string): ApiError {
  return new ApiError('MalformedPolicyDocument', message)
}
