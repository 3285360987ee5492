import { existsSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import type { Environment } from '../../client/config'
import { replaceAws, simulatedIn, withDevEnvironment } from '../../client/environment'
import { packageRoot } from './package'
import { exemptLoopback, nameUser } from './surroundings'

/** Settings of the command line from the environment, in addition to those of client and workers. */
export interface CliConfig {
  environment: Environment
  /** The backends whose provider is simulated; empty in a real deployment. */
  simulated: readonly string[]
  /** False for NO_COLOR (https://no-color.org) and terminals without colours. */
  isColourWanted: boolean
  /** The command as the user typed it, for suggestions. */
  invocation: string
  /** False for `CRUCIBLE_SUBMIT_CONFIRM=no`: `submit` asks nothing before it spends money. Undefined if the text says neither. */
  confirmsSubmit: boolean | undefined
}

/** Completes the environment of this process for itself and its children. */
export function completeEnvironment(): void {
  exemptLoopback(process.env)
  nameUser(process.env)
}

/** @param script the file that Node runs, as the user named it */
export function readCliConfig(
  own: Environment = process.env,
  script: string | undefined = process.argv[1],
): CliConfig {
  const environment = withDevEnvironment(own)
  if (environment !== own) adoptAws(environment)
  const { NO_COLOR, TERM, CRUCIBLE_SUBMIT_CONFIRM = 'yes' } = environment
  return {
    environment,
    simulated: simulatedIn(own),
    isColourWanted: (NO_COLOR ?? '') === '' && TERM !== 'dumb',
    invocation: invocationOf(environment, script ?? ''),
    confirmsSubmit: yesOrNo(CRUCIBLE_SUBMIT_CONFIRM.trim() || 'yes'),
  }
}

function yesOrNo(text: string): boolean | undefined {
  if (/^(?:yes|true|on|1)$/i.test(text)) return true
  return /^(?:no|false|off|0)$/i.test(text) ? false : undefined
}

/** The program of a clone; a package does not have it. */
const OF_CLONE = 'crucible'

/** Returns the command that runs this program again: in a clone, by npx, or installed. */
function invocationOf({ npm_lifecycle_event: npmScript }: Environment, script: string): string {
  const root = packageRoot()
  const ofClone = join(root, OF_CLONE)
  if (script === ofClone) return pathFromHere(ofClone)
  if (script === join(root, 'dist', 'cli', 'main.js') && npmScript !== undefined && existsSync(ofClone)) {
    return npmScript === 'crucible' ? 'npm run crucible --' : pathFromHere(ofClone)
  }
  // npx keeps packages here that are not installed in the project.
  if (script.includes(`${sep}_npx${sep}`)) return 'npx crucible-ml'
  return script.endsWith(join(sep, 'node_modules', '.bin', 'crucible')) ? 'npx crucible' : 'crucible'
}

function pathFromHere(path: string): string {
  const here = relative(process.cwd(), path)
  if (here.length > path.length) return path
  return here.startsWith('..') ? here : `.${sep}${here}`
}

/**
 * Sets the AWS variables of this process to those of an environment, because the SDKs read them there. Returns a function that
 * undoes it.
 */
export function adoptAws(environment: Environment): () => void {
  return replaceAws(environment, process.env)
}
