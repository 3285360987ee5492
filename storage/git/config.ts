import type { Environment } from '../home'

/** Variables of Git that do not name a repository. Hooks set the others, and would lead Git to another repository. */
const KEPT = new Set([
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
  'GIT_EXEC_PATH',
  'GIT_DISCOVERY_ACROSS_FILESYSTEM',
])

/** Takes no locks, shows no prompt, downloads nothing, and reports in English. */
const READING: Readonly<Record<string, string>> = {
  GIT_OPTIONAL_LOCKS: '0',
  GIT_TERMINAL_PROMPT: '0',
  GIT_NO_LAZY_FETCH: '1',
  LC_ALL: 'C',
}

/** The environment of a Git that only reads the repository of the folder in which it starts. */
export function gitEnvironment(env: Environment = process.env): Record<string, string | undefined> {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || KEPT.has(name))
  return { ...Object.fromEntries(kept), ...READING }
}
