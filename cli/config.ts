import type { Environment } from '../client/config'

/** What the command line takes from the environment besides what client and workers read of it. */
export interface CliConfig {
  environment: Environment
  /** False for NO_COLOR (https://no-color.org) and terminals that know no colours. */
  isColourWanted: boolean
  /** How the user calls us, for commands to try next. */
  invocation: string
}

export function readCliConfig(environment: Environment = process.env): CliConfig {
  const { NO_COLOR, TERM, npm_lifecycle_event: npmScript } = environment
  return {
    environment,
    isColourWanted: (NO_COLOR ?? '') === '' && TERM !== 'dumb',
    invocation: npmScript === undefined ? 'crucible' : 'npm run crucible --',
  }
}
