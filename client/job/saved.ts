import type { JobSpec } from '../../core/job/job'
import { lossDespiteNotice, savingOf, type SavedBefore } from '../../core/job/saving'
import { formatInstant } from '../../core/time/time'
import { parseManifest } from '../../intake/documents'
import { readNewestManifest } from '../../storage/checkpoints'
import type { Context } from '../context'
import { jobIdOf, queryOf } from './list'
import { rehearsedBefore } from './rehearsed'

/** Maximum number of jobs of a name that are searched for a checkpoint. */
const LOOKED_THROUGH_MAX = 5

/**
 * The newest checkpoint of the job that this one repeats, otherwise of the last jobs of its name, otherwise of its rehearsal: the
 * best estimate for the next ones. `undefined` without one.
 */
export async function savedBefore(
  context: Context,
  spec: JobSpec,
  from?: string,
): Promise<SavedBefore | undefined> {
  const { totalBytes, saveMs } = rehearsedBefore(context.config.home, spec) ?? {}
  // Upload times of a rehearsal do not apply elsewhere; the program's write times do.
  const saved = await savedByJobs(context, { name: spec.name, from })
  if (saved !== undefined) return { ...saved, saveMs: saved.saveMs ?? saveMs }
  return totalBytes === undefined ? undefined : { totalBytes, saveMs }
}

async function savedByJobs(
  context: Context,
  { name, from }: { name: string; from: string | undefined },
): Promise<SavedBefore | undefined> {
  try {
    for (const jobId of from === undefined ? await newestNamed(context, name) : [from]) {
      const manifest = await readNewestManifest(context.store, jobId, parseManifest)
      if (manifest === undefined) continue
      const { totalBytes, uploadMs, saveMs } = manifest
      return {
        totalBytes,
        uploadMs,
        saveMs,
      }
    }
  } catch {
    // Only needed for a warning; other steps will report an unreachable store.
  }
  return undefined
}

async function newestNamed(context: Context, name: string): Promise<string[]> {
  const client = await context.temporal()
  const ids: string[] = []
  for await (const { workflowId } of client.workflow.list({
    query: queryOf({ name }),
    pageSize: LOOKED_THROUGH_MAX,
  })) {
    ids.push(jobIdOf(workflowId))
    if (ids.length === LOOKED_THROUGH_MAX) break
  }
  return ids
}

/** Facts that the owner of a job on spot machines must know beforehand, in sentences. */
export async function warningsFor(context: Context, spec: JobSpec, from?: string): Promise<string[]> {
  const { backends, checkpoint, isInterruptible } = spec
  const maySpot =
    backends.length === 0 || backends.some(({ capacityType = 'spot' }) => capacityType === 'spot')
  if (!isInterruptible || !maySpot) return []
  const saving = savingOf(spec, await savedBefore(context, spec, from))
  const loss = saving && lossDespiteNotice(saving, checkpoint.everyMs)
  const rehearsed = rehearsedBefore(context.config.home, spec)
  return [
    ...(rehearsed?.survives === false
      ? [`Its last rehearsal here (${formatInstant(rehearsed.atMs)}) says: ${rehearsed.summary}`]
      : []),
    ...(loss === undefined ? [] : [`On a spot machine, ${loss}.`]),
  ]
}
