import { without } from '../../core/defined'
import { formatInstant } from '../../core/time/time'
import { randomBytes } from 'node:crypto'
import { nextRuns, type ScheduledRun } from '../../core/retraining/run-dates'
import { writtenFrom } from '../../core/retraining/schedule-dates'
import type { SkippedDate } from '../../core/time/calendar'
import { codeDigest } from '../../core/job/job'
import type { RetrainInput } from '../../core/retraining/run'
import type { RetrainSpec } from '../../core/retraining/retraining'
import { nearest } from '../../intake/nearest'
import type { Retrain } from '../../intake/retrain'
import { asStored, Gaps, isStoredAlike } from '../../storage/json'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import {
  newestRevision,
  putRevision,
  readRevisions,
  scheduleNames,
  surveyRevisions,
  type ScheduleRevision,
} from '../../storage/schedules'
import { ensureDeploymentKey, scheduleKey, sealSecrets, type SecretValues } from '../../storage/secrets'
import { codeOf, NO_CODE, type Code } from '../job/bundle'
import { secretValues, surprisingValues, type SecretOwner } from '../job/secrets'
import type { Context } from '../context'
import { checkSameDeployment, deploymentForWriting } from '../deployment'
import { CrucibleError } from '../errors'
import { workflowPagesOf } from '../job/read-view'
import { permitted } from './permits'
import { gapsInWords } from '../job/view'
import { establish, handleOf, heldSchedule, isNamed, scheduleOf, withStamp } from './schedule-handles'

/** @experimental */
export interface ScheduleSubmission {
  retrain: Retrain
  /** Absolute path of the folder to send along; null for none. */
  directory: string | null
}

/** @experimental */
export interface ScheduleCreated {
  name: string
  revision: number
  /** Whether the request changed the schedule; false if it already was in that state. */
  isNew: boolean
  runs: ScheduledRun[]
  skipped: SkippedDate[]
  warnings: string[]
}

const RUNS: SecretOwner = { needs: 'The runs need', command: 'crucible schedule create FILE' }

/** Dates shown after a change. */
const SHOWN = 4

/**
 * Creates the schedule of a retraining file. Repeating it with the same content changes nothing; another content under the name of an
 * existing schedule is refused. After a crash, the same call completes it.
 */
export async function createSchedule(
  context: Context,
  submission: ScheduleSubmission,
): Promise<ScheduleCreated> {
  return put(context, submission, 'created')
}

/** Replaces the file, code and secrets of a schedule. Runs that have begun keep their revision. */
export async function updateSchedule(
  context: Context,
  submission: ScheduleSubmission,
): Promise<ScheduleCreated> {
  await currentOf(context, submission.retrain.spec.name)
  return put(context, submission, 'updated')
}

async function put(
  context: Context,
  { retrain, directory }: ScheduleSubmission,
  kind: 'created' | 'updated',
): Promise<ScheduleCreated> {
  const { store, config } = context
  const { spec, secrets } = retrain
  const values = secretValues(context, secrets, RUNS)
  await checkSameDeployment(context, await context.temporal())
  await context.compareClocks()
  const code = directory === null ? NO_CODE : await codeOf(store, directory, retrain.sample)
  try {
    const deployment = await deploymentForWriting(store)
    const input = {
      schedule: spec.name,
      spec,
      bundle: code.ref,
      secrets,
      owner: config.owner,
      deployment,
      uiUrl: workflowPagesOf(config),
    }
    const revision = await revise(context, { kind, input, code, values })
    const isNew = await establish(context, revision)
    const { runs, skipped } = nextRuns(spec, context.now(), SHOWN)
    return {
      name: spec.name,
      revision: revision.revision,
      isNew,
      runs,
      skipped,
      warnings: [...code.warnings, ...surprisingValues(context, secrets), ...warningsOf(spec, runs)],
    }
  } finally {
    await code.remove()
  }
}

interface Change {
  kind: ScheduleRevision['kind']
  input: Omit<RetrainInput, 'revision' | 'carry'>
  code?: Code
  values: SecretValues
}

/** Returns the revision with this content: the newest one, or a new one. Its code and secrets are stored first. */
async function revise(context: Context, { kind, input, code, values }: Change): Promise<ScheduleRevision> {
  const { store, config } = context
  const { schedule: name } = input
  const newest = (await readRevisions(store, name)).at(-1)
  const isGone = newest === undefined || newest.kind === 'deleted'
  const isSame =
    !isGone && isStoredAlike(contentOf({ ...input, revision: newest.revision }), contentOf(newest.input))
  const isComplete = isSame && kind !== 'secrets' && (await isCodeStored(store, newest.input))
  if (!isGone && !isSame && kind === 'created') {
    throw new CrucibleError('usage', `A schedule ${name} already exists with other content.`, {
      hint: `Change it with \`crucible schedule update FILE\`, or give the file another name.`,
    })
  }
  const revision = isComplete ? newest.revision : (newest?.revision ?? 0) + 1
  if (input.bundle !== null && !isComplete)
    await code?.uploadTo(layout.scheduleBundle(name, input.bundle.sha256))
  await sealValues(context, { name, revision }, values)
  if (isComplete) return newest
  const made: ScheduleRevision = {
    revision,
    atMs: context.now(),
    by: config.owner,
    kind,
    input: asStored({ ...input, revision }),
  }
  if (await putRevision(store, made)) return made
  throw new CrucibleError('failed', `The schedule was changed concurrently: ${name}.`, {
    hint: `Look at it with \`crucible schedule show ${name}\`, then try again.`,
  })
}

/** Returns the content of a revision without the Web UI's address, which may differ between clients, and with its code by its digest. */
function contentOf({ bundle, ...input }: ScheduleRevision['input']): object {
  return { ...without(input, ['uiUrl']), code: bundle === null ? null : codeDigest(bundle) }
}

async function isCodeStored(
  store: ObjectStore,
  { schedule, bundle }: ScheduleRevision['input'],
): Promise<boolean> {
  return bundle === null || (await store.head(layout.scheduleBundle(schedule, bundle.sha256))) !== undefined
}

async function sealValues(
  { store, config }: Context,
  { name, revision }: { name: string; revision: number },
  values: SecretValues,
): Promise<void> {
  if (Object.keys(values).length === 0) return
  const key = scheduleKey(await ensureDeploymentKey(config.home.secretKeyFile), name)
  await store.put(layout.scheduleSecrets(name, revision), sealSecrets(key, values, randomBytes(NONCE_BYTES)))
}

const NONCE_BYTES = 16

/** Reads the secrets of a schedule again from the environment, for its next runs. */
export async function renewSecrets(
  context: Context,
  name: string,
): Promise<{ revision: number; secrets: string[] }> {
  const { input, revision: current } = await currentOf(context, name)
  if (input.secrets.length === 0) return { revision: current, secrets: [] }
  const values = secretValues(context, input.secrets, RUNS)
  await context.compareClocks()
  const revision = await revise(context, { kind: 'secrets', input, values })
  await establish(context, revision)
  return { revision: revision.revision, secrets: input.secrets }
}

/**
 * Returns the newest revision; for a reader who names what cannot be read, the newest readable one. Throws `not-found` if the schedule does
 * not exist.
 */
export async function currentOf(context: Context, name: string, gaps?: Gaps): Promise<ScheduleRevision> {
  const { store } = context
  const revisions = !/^[a-z0-9-]+$/.test(name)
    ? []
    : gaps === undefined
      ? await readRevisions(store, name)
      : await surveyRevisions(store, name, gaps)
  const newest = revisions.at(-1)
  if (newest !== undefined && newest.kind !== 'deleted') return newest
  if (newest === undefined && gaps?.isEmpty === false)
    throw new CrucibleError('unavailable', gapsInWords(gaps.names, '')!)
  const near = nearest(name, await scheduleNames(store))
  const meant = near === undefined || near === name ? '' : ` Did you mean ${near}?`
  throw new CrucibleError('not-found', `There is no schedule ${name}.${meant}`, {
    hint: 'See them with `crucible schedule list`.',
  })
}

/**
 * Throws `not-found` for an unknown schedule. For a command that ends spending: a store that is away or damaged does not say that a schedule
 * is unknown, and Temporal decides.
 */
export async function checkSchedule(context: Context, name: string): Promise<void> {
  const isHeld = (await heldSchedule(context, name).catch(() => undefined)) !== undefined
  if (!isHeld) await currentOf(context, name, new Gaps())
}

/** Starts runs now for the windows that opened from `fromMs` to `toMs`, and returns them. */
export async function backfill(
  context: Context,
  name: string,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<ScheduledRun[]> {
  const revision = await currentOf(context, name)
  await context.compareClocks()
  const { spec } = revision.input
  const nowMs = context.now()
  const earliest = fromMs - spec.leadMs
  const all = nextRuns(spec, earliest, BACKFILL_MAX + 1).runs
  const runs = all.filter(({ opensAtMs }) => opensAtMs >= fromMs && opensAtMs < toMs)
  if (runs.length > BACKFILL_MAX) {
    throw new CrucibleError('usage', `These are more than ${BACKFILL_MAX} dates.`, {
      hint: 'Choose a shorter time.',
    })
  }
  if (runs.length === 0) {
    throw new CrucibleError('usage', `${name} has no date in that time.`, {
      hint: `\`crucible schedule next ${name}\` shows its dates to come.`,
    })
  }
  const ahead = runs.find(({ startsAtMs }) => startsAtMs > nowMs)
  if (ahead !== undefined) {
    const startsAt = formatInstant(ahead.startsAtMs)
    throw new CrucibleError('usage', `${ahead.date} is not missed: its run begins ${startsAt}.`, {
      hint: `Choose dates of the past, or start a run now with \`crucible schedule trigger ${name}\`.`,
    })
  }
  const handle = handleOf(await context.temporal(), name)
  // Temporal starts only dates that it holds.
  const wanted = withStamp(scheduleOf(revision, nowMs, Math.min(earliest, writtenFrom(nowMs))))
  await handle.update(({ state }) => ({ ...wanted, state }))
  const dates = runs.map(({ startsAtMs }) => ({
    // Temporal takes the times after the start, up to and with the end.
    start: new Date(startsAtMs - 1_000),
    end: new Date(startsAtMs),
    overlap: 'BUFFER_ALL' as const,
  }))
  const wishes = runs.map(({ startsAtMs }) => ({ kind: 'backfill' as const, startsAtMs }))
  await permitted(context, name, wishes, () => handle.backfill(dates))
  return runs
}

/** Largest number of backfilled runs; a larger one is a mistake. */
const BACKFILL_MAX = 12

export async function deleteSchedule(context: Context, name: string): Promise<void> {
  const { store, config } = context
  const client = await context.temporal()
  // Temporal first: it starts no run from then on, whatever happens to the store.
  await handleOf(client, name)
    .delete()
    .catch((error: unknown) => {
      if (!isNamed(error, 'ScheduleNotFoundError')) throw error
    })
  const { input } = await currentOf(context, name, new Gaps())
  const revision = await newestRevision(store, name)
  for (let each = 1; each <= revision; each++) await store.delete(layout.scheduleSecrets(name, each))
  await putRevision(store, {
    revision: revision + 1,
    atMs: context.now(),
    by: config.owner,
    kind: 'deleted',
    input: { ...input, revision: revision + 1 },
  })
}

/** Returns warnings about surprising dates of a schedule. */
export function warningsOf(spec: RetrainSpec, runs: readonly ScheduledRun[]): string[] {
  const overlaps = runs.filter(
    ({ startsAtMs }, index) => startsAtMs < (runs[index - 1]?.opensAtMs ?? -Infinity),
  )
  const warnings = runs.flatMap(({ date, notes }) => notes.map((note) => `${date}: ${note}`))
  const [first] = overlaps
  if (first === undefined) return warnings
  const words = {
    queue: 'it begins when that run is over, with less time to find capacity',
    skip: 'it is skipped unless that run is over',
    allow: 'both run concurrently',
  }[spec.overlap]
  return [
    ...warnings,
    `${first.date}: its run starts before the previous run's window opens; ${words} (lead, overlap).`,
  ]
}
