/** IAM policies and their evaluation. */
import { z } from 'zod'
import { matches } from '../world/faults'

const oneOrMore = z.union([z.string(), z.array(z.string())]).transform((value) => [value].flat())
const conditions = z.record(
  z.string(),
  z.record(
    z.string(),
    z.union([z.boolean().transform(String), oneOrMore]).transform((v) => [v].flat()),
  ),
)
const statement = z.strictObject({
  Sid: z.string().optional(),
  Effect: z.enum(['Allow', 'Deny']),
  Action: oneOrMore.optional(),
  NotAction: oneOrMore.optional(),
  Resource: oneOrMore.optional(),
  NotResource: oneOrMore.optional(),
  Condition: conditions.default({}),
})
const policySchema = z.strictObject({
  Version: z.enum(['2012-10-17', '2008-10-17']).optional(),
  Id: z.string().optional(),
  Statement: z.union([z.array(statement), statement]).transform((value) => [value].flat()),
})

export type Policy = z.output<typeof policySchema>
type Statement = Policy['Statement'][number]
export type Verdict = 'allowed' | 'implicitDeny' | 'explicitDeny'

/** An action to authorize. */
export interface AuthorizationRequest {
  /** Action such as `ec2:RunInstances`. */
  action: string
  /**
   * The ARN of the resource. Without one only the action is checked: a permission for any resource suffices, its conditions apply only when
   * `context` has their keys, and only a denial of every resource counts.
   */
  resource?: string
  /** Condition keys, such as `s3:prefix`. */
  context?: Readonly<Record<string, string | readonly string[]>>
}

/** Reads a policy. Returns the problem if the policy is invalid. */
export function readPolicy(document: unknown): Policy | { problem: string } {
  const read = policySchema.safeParse(document)
  if (read.success) return read.data
  const [issue] = read.error.issues
  return { problem: `${issue!.path.map(String).join('.')}: ${issue!.message}` }
}

/** Evaluates policies together: an explicit deny overrides every allow. */
export function judge(policies: readonly Policy[], wish: AuthorizationRequest): Verdict {
  const statements = policies.flatMap((policy) => policy.Statement).filter((each) => applies(each, wish))
  if (statements.some(({ Effect }) => Effect === 'Deny')) return 'explicitDeny'
  return statements.length > 0 ? 'allowed' : 'implicitDeny'
}

function applies(statement: Statement, wish: AuthorizationRequest): boolean {
  const { Effect, Action, NotAction } = statement
  const action = wish.action.toLowerCase()
  const isNamed = (Action ?? NotAction ?? []).some((pattern) => matches(pattern.toLowerCase(), action))
  if (isNamed !== (Action !== undefined)) return false
  if (wish.resource === undefined)
    return Effect === 'Allow' ? fitsConditions(statement, wish) : isForEverything(statement)
  return fitsResource(statement, wish.resource) && fitsConditions(statement, wish)
}

function isForEverything({ Resource, Condition }: Statement): boolean {
  return (Resource ?? []).includes('*') && Object.keys(Condition).length === 0
}

function fitsResource({ Resource, NotResource }: Statement, resource: string): boolean {
  if (NotResource !== undefined) return !NotResource.some((pattern) => matches(pattern, resource))
  return (Resource ?? []).some((pattern) => matches(pattern, resource))
}

function fitsConditions({ Condition }: Statement, { resource, context = {} }: AuthorizationRequest): boolean {
  const given = new Map(Object.entries(context).map(([key, value]) => [key.toLowerCase(), [value].flat()]))
  return Object.entries(Condition).every(([operator, keys]) =>
    Object.entries(keys).every(([key, wanted]) => {
      const has = given.get(key.toLowerCase())
      return (resource === undefined && has === undefined) || fitsCondition(operator, wanted, has)
    }),
  )
}

type Comparison = (given: string, wanted: string) => boolean

const equals: Comparison = (given, wanted) => given === wanted
const like: Comparison = (given, wanted) => matches(wanted, given)
const COMPARISONS: Readonly<Record<string, Comparison>> = {
  StringEquals: equals,
  StringEqualsIgnoreCase: (given, wanted) => given.toLowerCase() === wanted.toLowerCase(),
  StringLike: like,
  ArnEquals: like,
  ArnLike: like,
  Bool: (given, wanted) => given.toLowerCase() === wanted.toLowerCase(),
  NumericEquals: (given, wanted) => Number(given) === Number(wanted),
  NumericLessThan: (given, wanted) => Number(given) < Number(wanted),
  NumericLessThanEquals: (given, wanted) => Number(given) <= Number(wanted),
  NumericGreaterThan: (given, wanted) => Number(given) > Number(wanted),
  NumericGreaterThanEquals: (given, wanted) => Number(given) >= Number(wanted),
}

function fitsCondition(
  written: string,
  wanted: readonly string[],
  given: readonly string[] | undefined,
): boolean {
  const operator = written.replace(/^For(Any|All)Values?:/, '').replace(/IfExists$/, '')
  if (operator === 'Null') return wanted.includes(String(given === undefined))
  if (given === undefined) return written.endsWith('IfExists') || operator.includes('Not')
  const isNegative = operator.includes('Not')
  const compare = COMPARISONS[operator.replace('Not', '')]
  // An unknown operator must not grant anything.
  if (compare === undefined) return false
  const isAny = given.some((value) => wanted.some((pattern) => compare(value, pattern)))
  return isNegative ? !isAny : isAny
}
