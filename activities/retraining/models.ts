import type { JobSource } from '../../core/messages'
import type { RetrainingActivities } from '../../core/retraining/run'
import type { ModelRef, PromotedModel } from '../../core/retraining/retraining'
import { olderThanProduction } from '../../planner/retraining/gate'
import { CHECKPOINT_PARSERS, parseLogLine } from '../../intake/documents'
import { readArtifact } from '../../storage/artifacts'
import { sha256 } from '../../storage/checkpoint-digests'
import { newestGoodCheckpoint } from '../../storage/checkpoints'
import { layout } from '../../storage/layout'
import { readLines } from '../../storage/logs'
import { promote, putRunEntry, readProduction } from '../../storage/schedules'
import { StoreError, type ObjectStore } from '../../storage/store'
import type { RetrainingDeps } from './activities'
import { checkReplaces } from './claims'

type Task<Name extends keyof RetrainingActivities> = Parameters<RetrainingActivities[Name]>[0]

/** Returns the model: the newest good checkpoint of its job, with a digest over all its files. */
export async function modelOf(
  { store, now }: RetrainingDeps,
  { jobId, input, run, recordSeq }: Task<'modelOf'>,
): Promise<{ model: ModelRef; source: JobSource } | null> {
  const good = await newestGoodCheckpoint(store, jobId, CHECKPOINT_PARSERS)
  if (good === undefined) return null
  const { checkpoint, manifest } = good
  const lines = manifest.files.map(({ path, digest }) => `${digest}  ${path}\n`).sort()
  const attempts = (await store.listFolders(layout.attempts(jobId))).map(Number).filter(Number.isInteger)
  const model: ModelRef = {
    jobId,
    checkpointId: checkpoint.id,
    step: checkpoint.step,
    digest: sha256(lines.join('')),
    artifactsUrl: `${store.url}/${layout.artifactsOf(jobId, Math.max(1, ...attempts))}`,
  }
  await putRunEntry(
    store,
    { schedule: input.schedule, run: run.id },
    {
      seq: recordSeq,
      atMs: now(),
      kind: 'model',
      data: model,
      summary: `The newest checkpoint of ${jobId} is ${checkpoint.id}, ${model.digest.slice(0, 12)}`,
    },
  )
  return { model, source: { jobId, checkpoint } }
}

/** Returns the model in production, without a source if its checkpoint no longer exists. */
export async function productionOf(
  store: ObjectStore,
  { model: name, window }: Task<'productionOf'>,
): ReturnType<RetrainingActivities['productionOf']> {
  const promoted = await readProduction(store, name)
  if (promoted === undefined) return null
  const { jobId, checkpointId } = promoted
  const good = await newestGoodCheckpoint(store, jobId, CHECKPOINT_PARSERS).catch(unlessTransient)
  const isThere = good?.checkpoint.id === checkpointId
  const older = window && olderThanProduction(window, promoted)
  return { promoted, source: isThere ? { jobId, checkpoint: good.checkpoint } : null, older }
}

/** A store that does not answer now must not decide how the models are compared. */
function unlessTransient(error: unknown): undefined {
  if (error instanceof StoreError && error.isTransient) throw error
  return undefined
}

export async function promoteModel(
  { store, now }: RetrainingDeps,
  task: Task<'promoteModel'>,
): Promise<PromotedModel> {
  const { input, run, recordSeq, name, model, metric } = task
  const { window } = run.dates
  const made = {
    ...model,
    promotedAtMs: now(),
    schedule: input.schedule,
    run: run.id,
    window,
    bundleSha256: input.bundle?.sha256 ?? null,
    metric,
  }
  // Again: another run may have taken the claim over from this one after it was ended by hand.
  const check = (current: PromotedModel | undefined): void => checkReplaces(task, current)
  const promoted = await promote(store, name, { ...made, check })
  await putRunEntry(
    store,
    { schedule: input.schedule, run: run.id },
    {
      seq: recordSeq,
      atMs: now(),
      kind: 'promoted',
      data: promoted,
      summary: `Version ${promoted.seq} of ${name} is in production`,
    },
  )
  return promoted
}

/** The metric that an evaluation reported: in metrics.json, or in the last line of its output that has it. */
export async function readMetric(
  store: ObjectStore,
  { jobId, attempts, metric }: Task<'readMetric'>,
): Promise<number | null> {
  const file = await readArtifact(store, jobId, METRICS_FILE)
  const written = file === undefined ? undefined : numberIn(file.toString('utf8'), metric)
  if (written !== undefined) return usable(written)
  let found: number | undefined
  const range = { jobId, attempt: attempts, afterLine: 0, isOver: true }
  for await (const { s, m } of readLines(store, range, parseLogLine))
    if (s === 'out' || s === 'err') found = numberIn(m, metric) ?? numberAfter(m, metric) ?? found
  return usable(found)
}

/** Returns the last value, if it is a number. An earlier value belongs to an earlier state of the model. */
function usable(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null
}

const METRICS_FILE = 'metrics.json'

/** A number under a name in a JSON object. Python writes NaN and infinities, which JSON does not have. */
function numberIn(text: string, metric: string): number | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  try {
    const plain = text.replace(/([:[,]\s*)(?:NaN|-?Infinity)(?=\s*[,\]}])/g, '$1null')
    const value = (JSON.parse(plain) as Record<string, unknown>)[metric]
    return typeof value === 'number' ? value : value === null ? NaN : undefined
  } catch {
    return undefined
  }
}

/** `loss: 1.25`, `loss=1.25`, `loss 1.25` */
function numberAfter(line: string, metric: string): number | undefined {
  const name = metric.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)
  const match = new RegExp(
    String.raw`(?:^|[\s,;])${name}(?:\s*[:=]\s*|\s+)(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|[+-]?inf(?:inity)?)(?![\w.])`,
    'i',
  ).exec(line)
  return match === null ? undefined : Number(match[1])
}
