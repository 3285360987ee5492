import { withoutEnd } from '../../core/trim'
import type { Failure } from '../../core/failure'
import { listOf } from '../settings'
import { API, type Health } from './documents'

/** Names that a deployment of the gateway must allow; a list is missing if no setting requires it. */
export interface Policy {
  registries?: string[]
  secrets?: string[]
}

const REGISTRIES = 'CRUCIBLE_GATEWAY_REGISTRIES'
export const SECRETS = 'CRUCIBLE_GATEWAY_SECRETS'
export const IMAGE_SECRETS = 'CRUCIBLE_MODAL_IMAGE_SECRETS'

/** Reads `REGISTRY=SECRET,...`: Modal Secrets by the registry, or the part of one, whose images they open. */
export function imageSecretsIn(text: string | undefined): Record<string, string> | undefined {
  const pairs = listOf(text ?? '').map((pair) => /^([^=\s]+)=([^=\s]+)$/.exec(pair))
  if (pairs.some((pair) => pair === null)) return undefined
  return Object.fromEntries(pairs.map((pair) => [withoutEnd(pair![1]!, '/'), pair![2]!]))
}

/** The Modal Secret for an image; the longest name that fits its reference decides. */
export function imageSecretOf(
  imageSecrets: Readonly<Record<string, string>>,
  reference: string | undefined,
): string | null {
  if (reference === undefined) return null
  const fitting = Object.keys(imageSecrets)
    .filter((registry) => fullReference(reference).startsWith(`${registry}/`))
    .sort((one, other) => other.length - one.length)
  return imageSecrets[fitting[0] ?? ''] ?? null
}

/** Completes an image reference as the gateway does (`gateway/crucible_gateway/policy.py`). */
function fullReference(reference: string): string {
  const [first = '', ...rest] = reference.split('/')
  if (rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')) return reference
  return `docker.io/${rest.length > 0 ? reference : `library/${reference}`}`
}

/** Returns the names that the settings require of the gateway. */
export function policyIn(settings: Record<string, string | undefined>): Policy {
  const registries = listOf(settings[REGISTRIES] ?? '')
  const ofImages = Object.values(imageSecretsIn(settings[IMAGE_SECRETS]) ?? {})
  const secrets = [...new Set([...listOf(settings[SECRETS] ?? ''), ...ofImages])]
  return {
    registries: registries.length > 0 ? registries : undefined,
    secrets: secrets.length > 0 ? secrets : undefined,
  }
}

/** Names that are required and that the gateway does not allow. */
export function missingIn({ allowed }: Health, { registries = [], secrets = [] }: Policy): string[] {
  return [
    ...registries.filter((name) => !allowed.registries.includes(name)),
    ...secrets.filter((name) => !allowed.secrets.includes(name)),
  ]
}

/** Why the gateway would not start a machine with an image, and what to do; undefined if it would. */
export function imageRefusal(
  { allowed }: Health,
  imageSecrets: Readonly<Record<string, string>>,
  reference: string | undefined,
): string | undefined {
  if (reference === undefined) return undefined
  const isAllowed = (registry: string): boolean =>
    fullReference(reference).startsWith(`${withoutEnd(registry, '/')}/`)
  if (!allowed.registries.some(isAllowed))
    return `the Modal gateway does not allow the registry of ${reference}: add it to ${REGISTRIES} and run \`crucible setup modal\``
  const secret = imageSecretOf(imageSecrets, reference)
  if (secret !== null && !allowed.secrets.includes(secret))
    return `the Modal gateway does not allow the Modal Secret ${secret} for ${reference}: run \`crucible setup modal\``
  return undefined
}

/** Returns why this version cannot work with the gateway. A gateway with more features is fine. */
export function versionProblem({ api }: Pick<Health, 'api'>): Failure | undefined {
  if (api === API) return undefined
  const isOld = api < API
  return {
    class: 'invalid',
    message: `the Modal gateway speaks version ${api} of its interface, and this version of Crucible ${API}`,
    hint: isOld ? 'Run `crucible setup modal` to update it.' : 'Update Crucible on this worker.',
  }
}
