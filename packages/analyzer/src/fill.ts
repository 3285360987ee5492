/**
 * Settings that a job leaves open and its program shows: GPUs, their memory, where it saves, how it continues, and whether it may be
 * interrupted.
 */
import { ACCELERATORS } from '../../../core/accelerators'
import type { InferredSetting } from '../../../core/job/job'
import { isOnlyLeast, type Analysis, type Evidence, type Finding } from './report'

/** Least confidence of a filled finding; others are only mentioned. */
const CERTAIN_ENOUGH = 0.9

/** Fields as in a job file, as far as they have values. */
type Fields = Readonly<Record<string, unknown>>

export interface Filled {
  fields: Record<string, unknown>
  settings: InferredSetting[]
  /** Suggestions of the program for its owner's decision, in sentences. */
  hints: string[]
}

/**
 * Fills fields without a value. A value of the user is never changed, except that the resume option is added to the command.
 * @param target the program's path for a command that the user may type
 * @param isGpuWanted whether the user wants the GPUs that the program probably needs (`likelyGpuNeed`)
 */
export function fill(
  fields: Fields,
  analysis: Analysis,
  { target, isGpuWanted = false }: { target: string; isGpuWanted?: boolean },
): Filled {
  const filled: Filled = { fields: { ...fields }, settings: [], hints: [] }
  if (analysis.kind === 'unreadable' && analysis.entry !== null) {
    const [why] = analysis.findings.canResume.missing
    filled.hints.push(
      `Could not tell whether ${target} trains a model${why === undefined ? '' : `: ${why}`}.`,
    )
  }
  if (analysis.kind !== 'training') return filled
  fillGpus(filled, analysis, isGpuWanted)
  fillGpuMemory(filled, analysis)
  fillDirectory(filled, analysis)
  fillResumeOption(filled, analysis)
  hintResume(filled, analysis, target)
  fillInterruptible(filled, analysis)
  fillWorkFamily(filled, analysis)
  hintRunTime(filled, analysis)
  return filled
}

interface Setting {
  field: string
  value: unknown
  reason: string
  finding: Finding<unknown>
}

function note(filled: Filled, { field, value, reason, finding }: Setting): void {
  const [place] = finding.evidence
  filled.settings.push({
    field,
    value: typeof value === 'string' ? value : JSON.stringify(value),
    reason,
    from: place === undefined ? null : placeInWords(place),
    confidence: finding.confidence,
  })
}

const placeInWords = ({ file, line }: Evidence): string => `${file}:${line}`

const isSure = ({ value, confidence }: Finding<unknown>): boolean =>
  value !== null && confidence >= CERTAIN_ENOUGH

const groupOf = (fields: Fields, name: string): Fields => (fields[name] ?? {}) as Fields

function put(filled: Filled, setting: Setting): void {
  const [group, name] = setting.field.split('.') as [string, string | undefined]
  filled.fields[group] =
    name === undefined ? setting.value : { ...groupOf(filled.fields, group), [name]: setting.value }
  note(filled, setting)
}

const GPU_FIELDS = ['gpus', 'gpu_memory', 'accelerators']

/** Whether a job leaves its GPUs open and its program needs some, surely or not. */
function isGpuOpen(fields: Fields, { findings: { needsGpu } }: Analysis): boolean {
  const resources = groupOf(fields, 'resources')
  return needsGpu.value === true && GPU_FIELDS.every((name) => resources[name] === undefined)
}

/**
 * Returns in words that a program probably needs a GPU for which its job does not ask; undefined if it surely does, or needs none. Only its
 * owner can decide, because a GPU costs more.
 */
export function likelyGpuNeed(fields: Fields, analysis: Analysis): string | undefined {
  const { entry, kind, findings } = analysis
  if (kind !== 'training' || !isGpuOpen(fields, analysis) || isSure(findings.needsGpu)) return undefined
  const sure = `${Math.round(findings.needsGpu.confidence * 100)} %`
  return `${entry} would probably take days without a GPU (${sure} sure)`
}

function fillGpus(filled: Filled, analysis: Analysis, isGpuWanted: boolean): void {
  const { entry, findings } = analysis
  const { gpuUse, needsGpu, gpuCount } = findings
  if (!isGpuOpen(filled.fields, analysis)) return
  const likely = likelyGpuNeed(filled.fields, analysis)
  if (likely !== undefined && !isGpuWanted) {
    filled.hints.push(`${likely}: add --gpus 1.`)
    return
  }
  const reason = gpuUse.value === 'hard' ? 'the program stops without a GPU' : 'a CPU would take days'
  if (isSure(gpuCount)) {
    put(filled, { field: 'resources.gpus', value: gpuCount.value, reason, finding: needsGpu })
    return
  }
  put(filled, { field: 'resources.gpus', value: '1+', reason, finding: needsGpu })
  filled.hints.push(`It is not known how many GPUs ${entry} needs: add --gpus.`)
}

const GIB_IN_GB = 2 ** 30 / 1e9

/** The upper end of the range, so that no attempt ends for want of memory; for jobs that set GPUs, but neither their memory nor their type. */
function fillGpuMemory(filled: Filled, { entry, findings: { memory } }: Analysis): void {
  const resources = groupOf(filled.fields, 'resources')
  const { gpus } = resources
  if (gpus === undefined || gpus === 0 || gpus === '0' || memory.value === null) return
  if (resources['gpu_memory'] !== undefined || resources['accelerators'] !== undefined) return
  const { lowGiB, highGiB } = memory.value
  const range = `${inWords(lowGiB)} to ${inWords(highGiB)} GiB`
  if (!isSure(memory)) {
    const [what] = memory.missing
    const why = what === undefined ? '' : `; ${what} would narrow it`
    const need = isOnlyLeast(memory) ? `at least ${inWords(lowGiB)} GiB` : range
    filled.hints.push(`${entry} needs ${need} of memory on each GPU${why}: add --gpu-memory.`)
    return
  }
  const wanted = Math.ceil(highGiB * GIB_IN_GB)
  if (wanted > LARGEST_GB) {
    filled.hints.push(
      `${entry} needs ${range} of memory on each GPU, more than any has: shard the model, or add --gpu-memory.`,
    )
    return
  }
  put(filled, {
    field: 'resources.gpu_memory',
    value: `${wanted}GB+`,
    reason: `it needs ${range}`,
    finding: memory,
  })
}

/** Fills the family for jobs with GPUs, because it decides the relative speed of GPU types. */
function fillWorkFamily(filled: Filled, { findings: { workFamily } }: Analysis): void {
  const resources = groupOf(filled.fields, 'resources')
  if (!GPU_FIELDS.some((name) => resources[name] !== undefined)) return
  if (filled.fields['work_family'] !== undefined || !isSure(workFamily)) return
  put(filled, {
    field: 'work_family',
    value: workFamily.value,
    reason: 'that is what it trains',
    finding: workFamily,
  })
}

/** Mentions the run time. A range from the work alone is too wide to plan with, but distinguishes an hour from a week. */
function hintRunTime(filled: Filled, { entry, findings: { runTime } }: Analysis): void {
  if (runTime.value === null || filled.fields['duration'] !== undefined) return
  const { lowHours, highHours, accelerator, gpus } = runTime.value
  filled.hints.push(
    `${entry} takes about ${lowHours} to ${highHours} h on ${gpus} ${accelerator} by its model and steps: add --duration for a narrower forecast.`,
  )
}

const LARGEST_GB = Math.max(...ACCELERATORS.map(({ memoryGb }) => memoryGb))

const inWords = (gib: number): string => String(Number(gib.toPrecision(2)))

/** Fills the checkpoint directory. A program that saves in Crucible's folder has none of its own. */
function fillDirectory(filled: Filled, { findings: { checkpointDirectory } }: Analysis): void {
  if (groupOf(filled.fields, 'checkpoint')['directory'] !== undefined) return
  if (!isSure(checkpointDirectory) || !isPlain(filled.fields)) return
  const { value } = checkpointDirectory
  put(filled, {
    field: 'checkpoint.directory',
    value,
    reason: 'the program saves there',
    finding: checkpointDirectory,
  })
}

/** Whether the program needs an option to continue, in addition to those of its command. */
const needsOption = ({ findings: { canResume } }: Analysis): boolean =>
  canResume.how !== null && !canResume.how.isGiven

function fillResumeOption(filled: Filled, analysis: Analysis): void {
  const { canResume, resumeOption } = analysis.findings
  if (canResume.value !== 'yes' || !needsOption(analysis) || analysis.knowsCrucible) return
  const { run } = filled.fields
  if (typeof run !== 'string' || !isSure(resumeOption) || !isPlain(filled.fields)) {
    const option = canResume.how?.option ?? null
    filled.hints.push(
      option === null
        ? `${analysis.entry} does not resume with this command: add the options that do, for attempts with CRUCIBLE_RESUME_FROM.`
        : `${analysis.entry} resumes only with ${option}: add it to the command for attempts with CRUCIBLE_RESUME_FROM.`,
    )
    return
  }
  // Only an attempt with a checkpoint gets the option.
  const value = `${run.trimEnd()} \${CRUCIBLE_RESUME_FROM:+${resumeOption.value}}`
  put(filled, { field: 'run', value, reason: 'the program resumes with this option', finding: resumeOption })
}

/** Whether the command is one program with its arguments, run in the working directory. */
function isPlain({ run }: Fields): boolean {
  return typeof run === 'string' && ![...'\n;|&<>()`\\#'].some((mark) => run.trim().includes(mark))
}

function hintResume(filled: Filled, analysis: Analysis, target: string): void {
  const { value } = analysis.findings.canResume
  const cannot = value === 'no' ? 'cannot' : value === 'partial' ? 'cannot completely' : undefined
  if (cannot === undefined || analysis.knowsCrucible || filled.fields['interruptible'] !== undefined) return
  filled.hints.push(
    `${analysis.entry} ${cannot} resume after an interruption. For a change that makes it: crucible analyze --suggest-resume ${target}`,
  )
}

function fillInterruptible(filled: Filled, analysis: Analysis): void {
  const { canResume, savesCheckpoints, cannotRun } = analysis.findings
  if (filled.fields['interruptible'] !== undefined) return
  if (canResume.value !== 'yes' || !isSure(canResume)) return
  if (savesCheckpoints.value !== true || !isSure(savesCheckpoints) || (cannotRun.value ?? []).length > 0)
    return
  const isKept = groupOf(filled.fields, 'checkpoint')['directory'] !== undefined || analysis.knowsCrucible
  if (!isKept) {
    const [why] = analysis.findings.checkpointDirectory.missing
    filled.hints.push(
      `${analysis.entry} can resume, but where it saves is unknown${why === undefined ? '' : ` (${why})`}: add --checkpoint-dir and --interruptible to use spot capacity.`,
    )
    return
  }
  const isResumed =
    !needsOption(analysis) || analysis.knowsCrucible || filled.settings.some(({ field }) => field === 'run')
  if (!isResumed) return
  put(filled, {
    field: 'interruptible',
    value: true,
    reason: 'the program saves and resumes',
    finding: canResume,
  })
}
