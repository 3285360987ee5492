import type { Environment } from '../home'

/** Variables of Git that do not name a repository. Hooks set the others, and would lead Git to another repository. */
const KEPT = new Set([
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
  'GIT_EXEC_PATH',
  'GIT_DISCOVERY_ACROSS_FILESYSTEM',
])

/** The environment of a Git that only reads: it takes no locks, shows no prompt, downloads nothing, and reports in English. */
export function gitEnvironment(env: Environment = process.env): Record<string, string | undefined> {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || KEPT.has(name))
  const environment = Object.fromEntries(kept)
  environment.GIT_OPTIONAL_LOCKS = '0'
  environment.GIT_TERMINAL_PROMPT = '0'
  environment.GIT_NO_LAZY_FETCH = '1'
  environment.LC_ALL = 'C'
  return environment
}
