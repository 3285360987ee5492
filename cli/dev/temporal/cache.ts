import { ProgramCache, type Cached, type CacheOrigin } from '../programs/cache'
import { TEMPORAL } from './program'
import type { Progress } from './progress'
import type { TemporalVersion } from './version'

export type { CacheOrigin } from '../programs/cache'
export type CachedExecutable = Cached<TemporalVersion>

/** Path of the pinned version, if it is installed. */
export function cachedPath(home: string): string {
  return new ProgramCache(TEMPORAL, home).path
}

/** The installed executable; a changed one counts as absent, and `remark` says so. */
export function findCached(home: string): { executable?: CachedExecutable; remark?: string } {
  return new ProgramCache(TEMPORAL, home).find()
}

/** Whether the whole executable is unchanged since installation; `undefined` without one. */
export async function isCacheIntact(home: string): Promise<boolean | undefined> {
  return new ProgramCache(TEMPORAL, home).isIntact()
}

/** Installs the file that `produce` writes to the given path. */
export async function installIntoCache(
  home: string,
  produce: (path: string) => Promise<CacheOrigin>,
  options: { progress: Progress; signal?: AbortSignal | undefined },
): Promise<CachedExecutable> {
  return new ProgramCache(TEMPORAL, home).install(produce, options)
}
