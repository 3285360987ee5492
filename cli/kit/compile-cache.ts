import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * Node 22.8 and later cache compiled code, which speeds up the next start; only modules loaded after this call benefit. Node runs what it
 * finds there, and its default folder is below the temporary folder, where any user of the host could make it first.
 */
export function enableCompileCache(): void {
  const { enableCompileCache: enable } = module as { enableCompileCache?: (directory: string) => unknown }
  try {
    enable?.(join(homedir(), '.cache', 'crucible', 'node'))
  } catch {
    // A user without a home folder has no cache.
  }
}
