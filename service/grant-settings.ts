import { readFileSync } from 'node:fs'
import type { Environment } from '../storage/home'
import { ConfigError } from './config-error'

/** Source of the credentials that machines without their own use for the store. */
export interface GrantSettings {
  /** The role to assume; without one, the keys of this process are narrowed. */
  roleArn?: string
  /** Keys created for the machines, for a server without a token service. */
  keys?: { keyId: string; secret: string }
}

/** ARNs of token services: those outside AWS leave some parts empty. */
const ROLE_ARN_PATTERN = /^arn:[\w-]*:iam:[\w-]*:\w*:role\/[\w+=,.@/-]+$/

/** Reads `CRUCIBLE_GRANT_*`; throws a `ConfigError`. */
export function readGrants(env: Environment): GrantSettings {
  const told = (name: string): string | undefined => env[name]?.trim() || undefined
  const roleArn = told('CRUCIBLE_GRANT_ROLE')
  const file = told('CRUCIBLE_GRANT_CREDENTIALS_FILE')
  let [keyId, secret] = [told('CRUCIBLE_GRANT_ACCESS_KEY_ID'), told('CRUCIBLE_GRANT_SECRET_ACCESS_KEY')]
  if (file !== undefined && (keyId ?? secret ?? roleArn) !== undefined)
    throw new ConfigError([
      'CRUCIBLE_GRANT_CREDENTIALS_FILE is set together with another CRUCIBLE_GRANT_ variable: keep one of them',
    ])
  if (file !== undefined) ({ keyId, secret } = readGrantKeys(file))
  if (roleArn !== undefined && !ROLE_ARN_PATTERN.test(roleArn))
    throw new ConfigError([
      `CRUCIBLE_GRANT_ROLE is "${roleArn}": write the ARN of a role, such as arn:aws:iam::123456789012:role/crucible-grant`,
    ])
  if (keyId === undefined && secret === undefined) return roleArn === undefined ? {} : { roleArn }
  if (roleArn !== undefined)
    throw new ConfigError([
      'CRUCIBLE_GRANT_ROLE and CRUCIBLE_GRANT_ACCESS_KEY_ID are both set: keep the keys only if the server has no token service',
    ])
  if (keyId === undefined || secret === undefined)
    throw new ConfigError([
      'CRUCIBLE_GRANT_ACCESS_KEY_ID and CRUCIBLE_GRANT_SECRET_ACCESS_KEY belong together: set both, or neither',
    ])
  return { keys: { keyId, secret } }
}

/** The keys of a file in the format of `~/.aws/credentials`, from its only profile. Throws a `ConfigError`. */
function readGrantKeys(file: string): { keyId: string; secret: string } {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([
      `CRUCIBLE_GRANT_CREDENTIALS_FILE is "${file}", which cannot be read (${(error as Error).message}): name a readable file`,
    ])
  }
  const valuesOf = (key: string): string[] =>
    [...text.matchAll(new RegExp(`^[ \\t]*${key}[ \\t]*=[ \\t]*(\\S+)[ \\t\\r]*$`, 'gim'))].map(
      ([, value]) => value!,
    )
  const [keyIds, secrets] = [valuesOf('aws_access_key_id'), valuesOf('aws_secret_access_key')]
  if (keyIds.length === 1 && secrets.length === 1) return { keyId: keyIds[0]!, secret: secrets[0]! }
  throw new ConfigError([
    `CRUCIBLE_GRANT_CREDENTIALS_FILE is "${file}": write one profile with aws_access_key_id = ... and aws_secret_access_key = ...`,
  ])
}
