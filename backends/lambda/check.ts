import type { CallContext, Problem } from '../backend'
import { lambdaError } from './errors'
import type { Host } from './host'
import { HttpError } from '../http'
import { keyInWords } from './config'
import { isOffered } from './offers'

const REACH_REMEDY = 'Check that this machine reaches cloud.lambda.ai, and CRUCIBLE_LAMBDA_ENDPOINT.'

/** Checks for obstacles to machines. Quotas are not checked, because Lambda shows them only in its dashboard. */
export async function check(host: Host, { signal }: CallContext): Promise<Problem[]> {
  const { config, api } = host
  const open = config.keyProblem === undefined ? [] : [config.keyProblem]
  const keys = await nameable(() => api.sshKeys(signal), signal)
  if ('problem' in keys) return [withKey(keys.problem, config.apiKey), ...open]
  const others = await Promise.all(
    [checkTypes, checkRegions, checkCache].map((part) => nameable(() => part(host, signal), signal)),
  )
  const problems = others.flatMap((each) => ('problem' in each ? [each.problem] : each.value))
  const hasKey = keys.value.some(({ name }) => name === config.sshKey)
  return [...(hasKey ? [] : [noSshKey(config.sshKey)]), ...problems, ...open]
}

function noSshKey(name: string): Problem {
  return {
    severity: 'error',
    message: `the account has no SSH key ${name}, and each launch must name one`,
    remedy: 'Run `crucible setup lambda`, or name another one in CRUCIBLE_LAMBDA_SSH_KEY.',
    failure: 'invalid',
  }
}

async function checkTypes({ api, config }: Host, signal: AbortSignal): Promise<Problem[]> {
  const types = Object.keys(await api.types(signal))
  if (types.some((name) => isOffered({ config }, name))) return []
  return [
    {
      severity: 'error',
      message: `Lambda has no instance type that CRUCIBLE_LAMBDA_TYPES allows (${config.types.join(',')})`,
      remedy: `Name some of ${types.sort().join(', ')}.`,
    },
  ]
}

/** Checks the Regions. Lists of stock cannot distinguish a misspelt Region from one that is sold out. */
async function checkRegions({ api, config }: Host, signal: AbortSignal): Promise<Problem[]> {
  if (config.regions === undefined) return []
  const known = await api.regions(signal).catch((error: unknown) => {
    // The reference has this call, but not every client generated from it, and no other function needs it.
    if (error instanceof HttpError && error.facts.status === 404) return undefined
    throw error
  })
  if (known === undefined) return []
  const unknown = config.regions.filter((name) => !known.includes(name))
  if (unknown.length === 0) return []
  return [
    {
      severity: unknown.length === config.regions.length ? 'error' : 'warning',
      message: `Lambda has no Region ${unknown.join(', ')}, which CRUCIBLE_LAMBDA_REGIONS names`,
      remedy: `Name some of ${known.sort().join(', ')}.`,
    },
  ]
}

async function checkCache({ api, config }: Host, signal: AbortSignal): Promise<Problem[]> {
  if (config.cache === undefined) return []
  const fileSystems = await api.fileSystems(signal)
  if (fileSystems.some(({ name }) => name === config.cache)) return []
  return [
    {
      severity: 'warning',
      message: `the account has no file system ${config.cache}: machines run without that cache`,
      remedy: 'Create it at cloud.lambda.ai/file-systems, or unset CRUCIBLE_LAMBDA_CACHE.',
    },
  ]
}

/** An answer, or the problem that prevents it. Throws only for a caller who left. */
async function nameable<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<{ value: T } | { problem: Problem }> {
  try {
    return { value: await ask() }
  } catch (error) {
    const thrown = lambdaError(error)
    if (signal.aborted) throw thrown
    const { class: failure, message, hint } = thrown.failure
    return { problem: { severity: 'error', message, remedy: hint ?? REACH_REMEDY, failure } }
  }
}

function withKey(problem: Problem, apiKey: string): Problem {
  return problem.failure === 'auth'
    ? { ...problem, message: `${problem.message} (${keyInWords(apiKey)})` }
    : problem
}
