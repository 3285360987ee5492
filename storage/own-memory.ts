import type { OwnMemory } from '../core/job/own-memory'
import { layout } from './layout'
import { NewestDocuments } from './newest'
import type { ObjectStore } from './store'

const MEMORY = new NewestDocuments(layout.allOwnMemory(), parseMemory)

/** Keeps the GPU memory that an attempt used, once. `atMs` is when its runner last spoke. */
export function putOwnMemory(
  store: ObjectStore,
  memory: OwnMemory,
  { atMs, attempt }: { atMs: number; attempt: number },
): Promise<void> {
  return MEMORY.put(store, layout.ownMemory(atMs, { jobId: memory.jobId, attempt }), memory)
}

/** Memory that the deployment's newest attempts used, newest first. */
export function readOwnMemory(store: ObjectStore): Promise<OwnMemory[]> {
  return MEMORY.read(store)
}

/** Only this file writes them, so a brief check of their shape suffices. */
function parseMemory(text: string): OwnMemory {
  const memory = JSON.parse(text) as Partial<OwnMemory> | null
  const { jobId, run, bundleSha256, gpus, peakMiB, totalMiB } = memory ?? {}
  const areNumbers = [gpus, peakMiB, totalMiB].every((each) => typeof each === 'number' && each > 0)
  if (!areNumbers || [jobId, run, bundleSha256].includes(undefined))
    throw new Error('it has no GPU memory of an attempt')
  return memory as OwnMemory
}
