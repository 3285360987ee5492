import { ProgramCache, type Cached, type CacheOrigin } from '../programs/cache'
import { TEMPORAL } from './program'
import type { Progress } from './progress'
import type { TemporalVersion } from './version'

export type { CacheOrigin } from '../programs/cache'
export type CachedExecutable = Cached<TemporalVersion>

/** Where the pinned version lies once it is installed. */
export function cachedPath(home: string): string {
  return new ProgramCache(TEMPORAL, home).path
}

/** The installed executable; what is not as it was installed counts as absent and is said in `remark`. */
export function findCached(home: string): { executable?: CachedExecutable; remark?: string } {
  return new ProgramCache(TEMPORAL, home).find()
}

/** Whether the whole executable is as it was installed; `undefined` when none is. */
export async function isCacheIntact(home: string): Promise<boolean | undefined> {
  return new ProgramCache(TEMPORAL, home).isIntact()
}

/** Installs what `produce` puts at the path it is given. */
export async function installIntoCache(
  home: string,
  produce: (path: string) => Promise<CacheOrigin>,
  options: { progress: Progress; signal?: AbortSignal | undefined },
): Promise<CachedExecutable> {
  return new ProgramCache(TEMPORAL, home).install(produce, options)
}
