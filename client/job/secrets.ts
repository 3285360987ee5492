/** The values of secrets, from the environment of the caller. */
import { secretsNeeded, type JobSpec } from '../../core/job/job'
import type { SecretValues } from '../../storage/secrets'
import type { Context } from '../context'
import { CrucibleError } from '../errors'

/** Owner of the secrets, as messages name it. */
export interface SecretOwner {
  /** Begins "... the secret HF_TOKEN". */
  needs: string
  /** The command that reads them. */
  command: string
}

const JOB: SecretOwner = { needs: 'The job needs', command: 'crucible submit ...' }

/** Problems that keep secrets from being read, as sentences with the remedy: those that are not set, are empty, or are not UTF-8. */
export function secretProblems(
  { config: { environment } }: Context,
  names: readonly string[],
  { needs, command }: SecretOwner = JOB,
): string[] {
  const unset = names.filter((name) => environment[name] === undefined)
  const empty = names.filter((name) => environment[name]?.trim() === '')
  // Node replaces bytes that are not UTF-8.
  const changed = names.filter((name) => environment[name]?.includes('\uFFFD') === true)
  return [
    ...sentence(unset, ([what, verb, them], list) => {
      const example = `\`${unset[0]}=... ${command}\``
      return `${needs} the ${what} ${list}, which ${verb} not set here. Set ${them} in the environment of this command, such as ${example}.`
    }),
    ...sentence(empty, ([what, verb, them], list) => {
      return `${needs} the ${what} ${list}, which ${verb} empty here: check the command that sets ${them}. A program that needs no value needs no secret.`
    }),
    ...sentence(changed, ([what, verb, them], list) => {
      return `${needs} the ${what} ${list}, which ${verb} not UTF-8 here, so the program would get other bytes. Encode ${them}, such as with base64.`
    }),
  ]
}

type Words = readonly [what: string, verb: string, them: string]

function sentence(names: readonly string[], words: (words: Words, list: string) => string): string[] {
  if (names.length === 0) return []
  return [words(names.length === 1 ? ['secret', 'is', 'it'] : ['secrets', 'are', 'them'], names.join(', '))]
}

/** Warnings about the values of a job's secrets, in sentences. */
export function secretWarnings(context: Context, spec: Pick<JobSpec, 'secrets' | 'imageLogin'>): string[] {
  return surprisingValues(context, secretsNeeded(spec))
}

/** Warns of space around a value of one line. A key in several lines needs its last line break. */
export function surprisingValues({ config }: Context, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const value = config.environment[name] ?? ''
    const bare = value.trim()
    if (bare === '' || bare === value || bare.includes('\n')) return []
    return /[\r\n]$/.test(value)
      ? [
          `The secret ${name} ends with a line break, which its program gets too. To leave it out, write ${name}="$(cat FILE)".`,
        ]
      : [
          `The secret ${name} begins or ends with a space, which its program gets too. Remove it if it is a slip.`,
        ]
  })
}

/** The values of a job's secrets. Throws `usage` with all problems at once. */
export function secretsOf(context: Context, spec: Pick<JobSpec, 'secrets' | 'imageLogin'>): SecretValues {
  return secretValues(context, secretsNeeded(spec))
}

/** The values of secrets. Throws `usage` with all problems at once. */
export function secretValues(context: Context, names: readonly string[], owner?: SecretOwner): SecretValues {
  const problems = secretProblems(context, names, owner)
  if (problems.length > 0) throw new CrucibleError('usage', problems.join('\n'), { details: { problems } })
  return Object.fromEntries(names.map((name) => [name, context.config.environment[name]!]))
}
