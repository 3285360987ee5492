import type { OwnedResource } from '../../core/handle'
import { DAY_MS } from '../../core/time/time'
import type { Volume } from './documents'
import type { Host } from './host'
import { BACKEND } from './offers'

/** Mount point of the volume on machines. */
export const CACHE_PATH = '/var/cache/crucible'
const NAME_MAX = 63

/** Returns the volume of a deployment; `prefix` is the part that the gateway allows. */
export function cacheVolume(prefix: string, deployment: string): string {
  return `${prefix}cache-${deployment}`.slice(0, NAME_MAX)
}

/** Programs that keep models and packages find them here again. It is never the only copy of anything. */
export function cacheEnvironment(): Record<string, string> {
  return {
    HF_HOME: `${CACHE_PATH}/huggingface`,
    TORCH_HOME: `${CACHE_PATH}/torch`,
    PIP_CACHE_DIR: `${CACHE_PATH}/pip`,
    UV_CACHE_DIR: `${CACHE_PATH}/uv`,
  }
}

/** Returns the deployment's volume for garbage collection, which deletes it once no machine has mounted it for long. */
export async function cacheLeftovers(
  { api, config, deps }: Host,
  deployment: string,
  signal: AbortSignal,
): Promise<OwnedResource[]> {
  const { allowed } = await api.health(signal)
  const name = cacheVolume(allowed.volumes, deployment)
  const found = (await api.volumes(name, signal)).filter((volume) => volume.name === name)
  const nowMs = deps.clock()
  return found.map((volume): OwnedResource => {
    const unusedMs = nowMs - lastUseOf(volume, nowMs, config.cacheUnusedMs)
    const isNeeded = unusedMs < config.cacheUnusedMs
    const days = Math.floor(unusedMs / DAY_MS)
    return {
      handle: { backend: BACKEND, kind: 'volume', id: name },
      owner: { deployment, jobId: '', attemptId: '' },
      createdAtMs: volume.created_at_ms,
      description: 'volume for caches of models and packages',
      use: {
        isNeeded,
        reason: isNeeded
          ? `machines used it within the last ${days + 1} days`
          : `no machine has used it for ${days} days`,
      },
    }
  })
}

/** The gateway forgets a use after seven days without another one. */
function lastUseOf(
  { used_at_ms: used, created_at_ms: created }: Volume,
  nowMs: number,
  limitMs: number,
): number {
  return used ?? Math.max(created, nowMs - limitMs)
}
