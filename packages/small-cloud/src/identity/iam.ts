/** IAM, limited to calls that read the configuration, change policies and simulate permissions. */
import { z } from 'zod'
import type { World } from '../world/world'
import { integer, members, text } from '../wire/query'
import { action, type Action, type Service } from '../wire/service'
import { policyChanges } from './policy-changes'
import { noSuch, profileOf, profileWords, roleOf, roleWords } from './iam-words'
import type { Identities, Role } from './identities'
import { judge, type Policy, type Verdict, type AuthorizationRequest } from './policy'

const IAM_NAMESPACE = 'https://iam.amazonaws.com/doc/2010-05-08/'

const marker = { Marker: text.optional(), MaxItems: integer.optional() }

export function iamService(world: World, identities: Identities): Service {
  return {
    name: 'iam',
    style: 'query',
    namespace: IAM_NAMESPACE,
    actions: {
      ...roleActions(world, identities),
      ...judgeActions(identities),
      ...policyChanges(identities),
    },
  }
}

function roleActions(world: World, identities: Identities): Record<string, Action> {
  const find = (name: string): Role => roleOf(identities, name)
  const named = z.strictObject({ RoleName: text, ...marker })
  return {
    GetRole: action({
      input: z.strictObject({ RoleName: text }),
      run: ({ RoleName }) => ({ Role: roleWords(world, find(RoleName)) }),
    }),
    GetInstanceProfile: action({
      input: z.strictObject({ InstanceProfileName: text }),
      run({ InstanceProfileName: name }) {
        return { InstanceProfile: profileWords(world, profileOf(identities, name)) }
      },
    }),
    ListRoles: action({
      input: z.strictObject({ PathPrefix: text.default('/'), ...marker }),
      run: ({ PathPrefix }) => ({
        Roles: [...identities.roles.values()]
          .filter(({ path }) => path.startsWith(PathPrefix))
          .map((role) => roleWords(world, role)),
        IsTruncated: false,
      }),
    }),
    ListAttachedRolePolicies: action({
      input: named,
      run: ({ RoleName }) => ({
        AttachedPolicies: find(RoleName).plan.managed.map((PolicyName) => ({
          PolicyName,
          PolicyArn: `arn:aws:iam::aws:policy/${PolicyName}`,
        })),
        IsTruncated: false,
      }),
    }),
    ListRolePolicies: action({
      input: named,
      run: ({ RoleName }) => ({ PolicyNames: Object.keys(find(RoleName).plan.policies), IsTruncated: false }),
    }),
    GetRolePolicy: action({
      input: z.strictObject({ RoleName: text, PolicyName: text }),
      run({ RoleName, PolicyName }) {
        const document = find(RoleName).plan.policies[PolicyName]
        if (document === undefined) throw noSuch(`The role policy with name ${PolicyName} cannot be found.`)
        return { RoleName, PolicyName, PolicyDocument: encodeURIComponent(JSON.stringify(document)) }
      },
    }),
  }
}

const context = z.strictObject({
  ContextKeyName: text,
  ContextKeyType: text.optional(),
  ContextKeyValues: members(text).default([]),
})

function judgeActions(identities: Identities): Record<string, Action> {
  return {
    SimulatePrincipalPolicy: action({
      input: z.strictObject({
        PolicySourceArn: text,
        ActionNames: members(text),
        ResourceArns: members(text).default(['*']),
        ContextEntries: members(context).default([]),
        ...marker,
      }),
      run({ PolicySourceArn: arn, ActionNames, ResourceArns, ContextEntries }) {
        const policies = identities.findByArn(arn)
        if (policies === undefined) throw noSuch(`The principal ${arn} cannot be found.`)
        const entries = Object.fromEntries(
          ContextEntries.map(({ ContextKeyName, ContextKeyValues }) => [ContextKeyName, ContextKeyValues]),
        )
        const results = ActionNames.flatMap((name) =>
          ResourceArns.map((resource) => ({
            EvalActionName: name,
            EvalResourceName: resource,
            EvalDecision: together(policies, { action: name, resource, context: entries }),
            MatchedStatements: [],
            MissingContextValues: [],
          })),
        )
        return { EvaluationResults: results, IsTruncated: false }
      },
    }),
  }
}

function together(policies: readonly (readonly Policy[])[], wish: AuthorizationRequest): Verdict {
  const verdicts = policies.map((each) => judge(each, wish))
  return verdicts.find((verdict) => verdict !== 'allowed') ?? 'allowed'
}
