import type { Environment } from '../client/config'
import { replaceAws, withDevEnvironment } from '../client/environment'

/** What the command line takes from the environment besides what client and workers read of it. */
export interface CliConfig {
  environment: Environment
  /** False for NO_COLOR (https://no-color.org) and terminals that know no colours. */
  isColourWanted: boolean
  /** How the user calls us, for commands to try next. */
  invocation: string
}

export function readCliConfig(own: Environment = process.env): CliConfig {
  const environment = withDevEnvironment(own)
  if (environment !== own) adoptAws(environment)
  const { NO_COLOR, TERM, npm_lifecycle_event: npmScript } = environment
  return {
    environment,
    isColourWanted: (NO_COLOR ?? '') === '' && TERM !== 'dumb',
    invocation: npmScript === undefined ? 'crucible' : 'npm run crucible --',
  }
}

/** Makes the AWS variables of an environment those of this process, for the SDKs, which look there. Answers what undoes it. */
export function adoptAws(environment: Environment): () => void {
  return replaceAws(environment, process.env)
}
