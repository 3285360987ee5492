/** Reads retraining files: a schedule, and the jobs of its runs. */
import type { z } from 'zod'
import { defined, without } from '../core/defined'
import type { CalendarRule } from '../core/time/calendar'
import { MONTHS_OF } from '../core/time/calendar'
import { secretsNeeded, type JobSpec } from '../core/job/job'
import type { JobTemplate, RetrainSpec } from '../core/retraining/retraining'
import { dateValues, MODEL_NAMES, nextRuns } from '../core/retraining/run-dates'
import { RETRAIN_DEFAULTS } from './capacity-schema'
import { faultsOf } from './faults'
import { nameFrom } from './fields'
import { readJob, readWritten } from './job-file'
import { jobFile } from './job-schema'
import { formatPath, type Fault, type Problem } from './problem'
import { problemsIn, wordsOf, writeField } from './problems'
import { retrainFile } from './retrain-schema'
import { capacityOf, retrainFaults } from './retrain-relations'
import { fieldsAt } from './schema-walk'
import { templateFaults, filled, type TemplateValues } from './templates'
import { readYaml } from './yaml-text'

/** A schedule as written in its file. @experimental */
export interface Retrain {
  spec: RetrainSpec
  /** The folder to pack, relative to the file; null to send nothing along. */
  workdir: string | null
  /** Names of all secrets that runs need. */
  secrets: string[]
  /** The job with the values of the next date. */
  sample: JobSpec
}

/** @experimental */
export type RetrainOrProblems = { retrain: Retrain } | { problems: Problem[] }

/** The mappings whose values are texts as written. */
const VERBATIM = ['job.env', 'evaluation.env', 'promotion.env', 'rehearsal.env']

/** The jobs of a file, and the names that their templates may have. */
const JOBS = ['job', 'rehearsal', 'evaluation', 'promotion'] as const
type JobPart = (typeof JOBS)[number]

/**
 * Reads a retraining file. Its jobs are checked with the values of the next date.
 *
 * @param options.fileName as the user named it, for problems and for the schedule's name
 * @experimental
 */
export function parseRetrainFile(
  text: string,
  { fileName: file, nowMs }: { fileName: string; nowMs: number },
): RetrainOrProblems {
  const yaml = readYaml(text, VERBATIM)
  if ('faults' in yaml) return { problems: yaml.faults.map((fault) => ({ file, path: '', ...fault })) }
  const defaultName = nameFrom(
    file
      .split(/[\\/]/)
      .at(-1)!
      .replace(/\.[^.]+$/, ''),
  )
  const read = readRetrain(yaml.value, { nowMs, defaultName })
  if ('retrain' in read) return read
  return { problems: problemsIn(read.faults, { file, yaml, schema: retrainFile }) }
}

interface ReadOptions {
  nowMs: number
  defaultName: string
}

function readRetrain(value: unknown, options: ReadOptions): { retrain: Retrain } | { faults: Fault[] } {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    const message = value === null ? 'the file is empty' : 'the file is not a mapping of fields to values'
    return { faults: [{ path: [], message, remedy: 'write at least job: and its fields' }] }
  }
  const parsed = retrainFile.safeParse(value)
  if (!parsed.success) {
    const found = faultsOf(parsed.error.issues, { value, schema: retrainFile, synonyms: SYNONYMS })
    return { faults: found.map(asFieldOfJob) }
  }
  const spec = specOf(parsed.data, options)
  const faults = retrainFaults(parsed.data, spec)
  if (faults.length > 0) return { faults }
  const values = sampleValues(spec, options.nowMs)
  if (values === undefined) {
    const message = 'has no date in the next years outside the blackouts'
    return {
      faults: [{ path: ['blackouts'], message, remedy: 'shorten them, or write on_blackout: next-day' }],
    }
  }
  const jobs = JOBS.map((part) => readPart(spec, part, { ...options, values }))
  const jobFaults = jobs.flatMap((job) => job?.faults ?? [])
  if (jobFaults.length > 0) return { faults: jobFaults }
  const secrets = jobs.flatMap((job) => (job?.spec === undefined ? [] : secretsNeeded(job.spec)))
  const { webhookSecret } = spec.notify
  if (webhookSecret !== undefined) secrets.push(webhookSecret)
  const { workdir = null, spec: sample } = jobs[0]!
  return { retrain: { spec, workdir, secrets: [...new Set(secrets)], sample: sample! } }
}

/** Explains fields of a job at the top level: the file is a job file, or lost its indentation. */
function asFieldOfJob(fault: Fault): Fault {
  const [name, ...rest] = fault.path.map(String)
  const isOfJob = rest.length === 0 && fieldsAt(jobFile, []).includes(name ?? '')
  return fault.isAboutName === true && isOfJob ? { ...fault, remedy: `write it as job.${name}` } : fault
}

const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['schedule', 'every'],
  ['cron', 'every'],
  ['timezone', 'zone'],
  ['tz', 'zone'],
  ['hour', 'time'],
  ['at', 'time'],
  ['evaluate', 'evaluation'],
  ['promote', 'promotion'],
  ['notifications', 'notify'],
  ['lead_time', 'lead'],
])

/** Returns sample values of the right form; each run has its own. */
function sampleValues(spec: RetrainSpec, nowMs: number): Record<string, string> | undefined {
  const [run] = nextRuns(spec, nowMs, 1).runs
  if (run === undefined) return undefined
  const { zone } = spec.calendar
  const dates = dateValues('sample-run', { ...run, zone, isByHand: false })
  return { ...dates, ...Object.fromEntries(MODEL_NAMES.map((model) => [model, 'sample'])) }
}

interface ReadPart {
  spec?: JobSpec
  workdir?: string | null
  faults: Fault[]
}

/** Checks one of the jobs of a file; `undefined` if the file does not have it. */
function readPart(
  spec: RetrainSpec,
  part: JobPart,
  { nowMs, values }: ReadOptions & { values: TemplateValues },
): ReadPart | undefined {
  const template = templatesOf(spec)[part]
  if (template === undefined) return undefined
  const isAfterTraining = part === 'evaluation' || part === 'promotion'
  const known = Object.keys(values).filter(
    (name) => isAfterTraining || !(MODEL_NAMES as readonly string[]).includes(name),
  )
  const under = (fault: Fault): Fault => ({ ...fault, path: [part, ...fault.path] })
  const unknown = [...templateFaults(template, known), ...fixedDeadline(template)]
  if (unknown.length > 0) return { faults: unknown.map(under) }
  const read = readWritten(filled(template, values), { nowMs, defaultName: spec.name })
  if ('job' in read) return { ...read.job, faults: [] }
  return { faults: read.faults.map((fault) => under({ ...fault, remedy: remedyOf(fault) })) }
}

/** The examples of a job's fields are in the schema of the job file. */
function remedyOf(fault: Fault): string {
  return wordsOf(fault, { schema: jobFile, write: writeField }).remedy
}

function fixedDeadline({ deadline }: JobTemplate): Fault[] {
  if (typeof deadline !== 'string' || !/^\s*\d{4}-/.test(deadline)) return []
  const message = 'is a fixed time, which would be over for every later run'
  return [{ path: ['deadline'], message, remedy: 'write a duration from the launch, such as 36h' }]
}

function templatesOf(spec: RetrainSpec): Partial<Record<JobPart, JobTemplate | undefined>> {
  const { job, rehearsal, evaluation, promotion } = spec
  return { job, rehearsal, evaluation: evaluation?.job, promotion: promotion?.job }
}

/** A job of a run, with the templates replaced. */
export function jobOfTemplate(
  template: JobTemplate,
  { values, name, nowMs }: { values: TemplateValues; name: string; nowMs: number },
): { spec: JobSpec } | { problems: Problem[] } {
  const read = readJob(filled(template, values), { nowMs, defaultName: name })
  if ('job' in read) return { spec: read.job.spec }
  return {
    problems: read.faults.map((fault) => ({
      path: formatPath(fault.path),
      message: fault.message,
      remedy: remedyOf(fault),
    })),
  }
}

type Written = z.output<typeof retrainFile>

function specOf(file: Written, { defaultName }: ReadOptions): RetrainSpec {
  const { every, months, evaluation, promotion, notify = {} } = file
  const name = file.name ?? defaultName
  const leadMs =
    file.lead ?? (file.capacity === undefined ? RETRAIN_DEFAULTS.leadMs : RETRAIN_DEFAULTS.leadWithCapacityMs)
  const calendar: CalendarRule = {
    months: months === undefined ? monthsOf(MONTHS_OF[every]) : [...new Set(months)].sort((a, b) => a - b),
    day: file.day,
    ...file.time,
    zone: file.zone,
    blackouts: file.blackouts ?? [],
    onBlackout: file.on_blackout,
  }
  return {
    name,
    calendar,
    leadMs,
    overlap: file.overlap,
    job: file.job,
    data: file.data ?? { period: every },
    overrun: overrunOf(file.overrun),
    checkMs: file.check_before ?? Math.min(RETRAIN_DEFAULTS.checkMs, leadMs / 2),
    notify: defined({ webhook: notify.webhook, webhookSecret: notify.webhook_secret }),
    capacity: file.capacity && capacityOf(file.capacity, leadMs),
    rehearsal: file.rehearsal && changed(file.job, file.rehearsal),
    budgetMicroUsd: file.budget,
    evaluation: evaluation && evaluationOf(file.job, evaluation),
    promotion: promotion && promotionOf(file.job, promotion, name),
  }
}

function monthsOf(everyMonths: number): number[] {
  return Array.from({ length: 12 / everyMonths }, (_, index) => 1 + index * everyMonths)
}

function overrunOf(overrun: Written['overrun']): RetrainSpec['overrun'] {
  const { extend_max: extendMaxMicroUsd, backends } = overrun ?? {}
  return defined({ extendMaxMicroUsd, backends })
}

function evaluationOf(
  job: JobTemplate,
  {
    metric,
    better = 'lower',
    tolerance,
    limit,
    production = 'rerun',
    ...change
  }: NonNullable<Written['evaluation']>,
): NonNullable<RetrainSpec['evaluation']> {
  return {
    metric: String(metric),
    better,
    production,
    job: changed(job, change),
    tolerance: tolerance ?? { kind: 'absolute', value: 0 },
    limit,
  }
}

function promotionOf(
  job: JobTemplate,
  { model, ask = false, ask_for: askMs, ...change }: NonNullable<Written['promotion']>,
  name: string,
): NonNullable<RetrainSpec['promotion']> {
  return {
    model: model ?? name,
    isAsked: ask,
    askMs: askMs ?? RETRAIN_DEFAULTS.askMs,
    job: change.run === undefined ? undefined : changed(job, change),
  }
}

/** Returns a job with the code and the settings of another one, but its own command. */
function changed(job: JobTemplate, change: JobTemplate): JobTemplate {
  return { ...without(job, ['script', 'run', 'name']), ...change }
}
