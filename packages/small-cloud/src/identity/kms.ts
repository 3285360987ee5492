/** Keys of KMS: who may use one. */
import type { World } from '../world/world'
import type { Identities, Principal } from './identities'
import { matches } from '../world/faults'

export type KeyAction = 'kms:GenerateDataKey' | 'kms:Decrypt'

export class Kms {
  constructor(
    private readonly world: Pick<World, 'keys'>,
    private readonly identities: Pick<Identities, 'judge'>,
  ) {}

  /** `of`: the ARN that S3 gives as the context of the encryption. Why a caller may not use a key, in the words of S3; undefined if it may. A key that the world does not name delegates to IAM. */
  refusal(
    principal: Principal,
    action: KeyAction,
    { key, of }: { key: string; of: string },
  ): string | undefined {
    const { delegates, users } = this.world.keys[key] ?? { delegates: true, users: [] }
    const [, , , region] = key.split(':')
    const context = { 'kms:ViaService': `s3.${region}.amazonaws.com`, 'kms:EncryptionContext:aws:s3:arn': of }
    const wish = { action, resource: key, context }
    const [own, ...narrowing] = principal.policies
    const judged = (policies: Principal['policies']) =>
      this.identities.judge({ ...principal, policies }, wish)
    const isNamed = users.some((pattern) => matches(pattern, principal.role?.arn ?? principal.arn))
    const reason =
      reasonOf(isNamed || delegates ? 'allowed' : 'implicitDeny', 'resource-based') ??
      reasonOf(isNamed && judged([own!]) === 'implicitDeny' ? 'allowed' : judged([own!]), 'identity-based') ??
      reasonOf(judged(narrowing), 'session')
    if (reason === undefined) return undefined
    return `User: ${principal.arn} is not authorized to perform: ${action} on resource: ${key} ${reason.replace('ACTION', action)}`
  }
}

function reasonOf(verdict: ReturnType<Identities['judge']>, kind: string): string | undefined {
  if (verdict === 'allowed') return undefined
  if (verdict === 'explicitDeny')
    return `with an explicit deny in ${kind === 'identity-based' ? 'an' : 'a'} ${kind} policy`
  return `because no ${kind} policy allows the ACTION action`
}
