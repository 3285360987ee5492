import type { Failure } from '../../../core/failure'

/** Why the root user of an account may not set it up or run workers; `undefined` for every other identity. */
export function refusalOfRoot(arn: string): (Failure & { hint: string }) | undefined {
  const account = /^arn:[\w-]+:iam::(\d+):root$/.exec(arn)?.[1]
  if (account === undefined) return undefined
  return {
    class: 'auth',
    code: 'RootUser',
    message: `You are signed in as the root user of the account ${account}, to which AWS gives no role, so machines could get no keys.`,
    hint: 'In the AWS console, make a user in IAM Identity Center, or in IAM, with the policy AdministratorAccess; then sign in as that user: `aws configure sso`, or `aws login`.',
  }
}
