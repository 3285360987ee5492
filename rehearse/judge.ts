import { formatDuration } from '../core/time/time'
import { advise, type Change } from './advice'
import { compareLives, deadPath, isLossContinued, lackOfFiles, returnedFile } from './compare'
import { median } from './moments'
import { failureOnRestore, resumesOf, type Resume } from './resumes'
import { lastOf, type RehearsedCheckpoint, type RehearsalFacts } from './seen'
import { compareRuns } from './trackers'
import { countOf, formatBytes, namesOf } from './words'

/** `unknown`: no evidence either way. */
type Outcome = 'good' | 'warning' | 'bad' | 'unknown'

export interface Check {
  name: string
  outcome: Outcome
  /** Text for people, one clause or sentence. */
  text: string
}

/** The program's checkpoints; null if none was seen. */
export interface CheckpointSummary {
  /** File names of one, with `*` for numbers. */
  files: string[]
  sizeBytes: number
  state: RehearsedCheckpoint['state']
  /** Evidence that a checkpoint is complete, or the reason why it is only provisional. */
  evidence: string
  saveMs: number | null
  intervalMs: number | null
}

export interface Report {
  survives: boolean
  /** Summary in one sentence. */
  summary: string
  checks: Check[]
  /** Suggested changes, most important first. */
  changes: Change[]
  checkpoint: CheckpointSummary | null
  /** Resumes, one per interruption, in order of time. */
  resumes: Resume[]
  tookMs: number
}

/** Judges the observations of a rehearsal. Pure. */
export function judge(seen: RehearsalFacts): Report {
  const checkpoint = checkpointOf(seen)
  const resumes = resumesOf(seen)
  const checks = hasFailedAlone(seen)
    ? [failedAlone(seen)]
    : [
        ...checkpointChecks(checkpoint),
        survivalCheck(seen, resumes, checkpoint),
        stepCheck(resumes),
        lossCheck(seen, resumes),
        sameCheck(seen, resumes),
        ...keptChecks(seen),
        ...trackerChecks(seen),
        lostCheck(resumes, checkpoint),
      ]
  const bad = checks.filter(({ outcome }) => outcome === 'bad')
  return {
    survives: bad.length === 0,
    summary: summaryOf(bad, resumes),
    checks,
    changes: advise(seen, { checks, checkpoint, resumes }),
    checkpoint,
    resumes,
    tookMs: seen.tookMs,
  }
}

/** Start of a check that failed for lack of evidence: the program may well survive. */
const NOT_PROVEN = 'not proven'

function summaryOf(bad: readonly Check[], resumes: readonly Resume[]): string {
  const [first] = bad
  if (first?.text.startsWith(NOT_PROVEN))
    return `Not proven that this job survives${first.text.slice(NOT_PROVEN.length)}.`
  if (bad.length > 0) return `This job does not survive an interruption: ${bad[0]!.text}.`
  return `This job survives: it resumed after ${countOf(resumes.length, 'interruption')}.`
}

function hasFailedAlone({ undisturbed }: RehearsalFacts): boolean {
  return lastOf(undisturbed)?.end?.outcome === 'failed'
}

function failedAlone({ undisturbed }: RehearsalFacts): Check {
  const text = `the program fails without any interruption: ${lastOf(undisturbed)!.end!.message}`
  return { name: 'Runs undisturbed', outcome: 'bad', text: text.replace(/\.$/, '') }
}

/** The newest seen checkpoint of the most trusted state: what complete checkpoints of the program look like. */
function checkpointOf({ undisturbed, interrupted }: RehearsalFacts): CheckpointSummary | null {
  const saved = [...undisturbed.attempts, ...interrupted.attempts].flatMap((attempt) => attempt.saved)
  const typical = saved.findLast(({ state }) => state === 'complete') ?? saved.at(-1)
  if (typical === undefined) return null
  const times = undisturbed.attempts[0]?.saved.map(({ savedAtMs }) => savedAtMs) ?? []
  const gaps = times.slice(1).map((atMs, index) => atMs - times[index]!)
  return {
    files: namesOf(typical.files.map(({ path }) => path)),
    sizeBytes: typical.totalBytes,
    state: typical.state,
    evidence: typical.evidence.text,
    saveMs: median(saved.flatMap(({ saveMs }) => (saveMs === undefined ? [] : [saveMs]))),
    intervalMs: median(gaps),
  }
}

const FILES_NAMED_MAX = 4

function checkpointChecks(found: CheckpointSummary | null): Check[] {
  if (found === null)
    return [
      {
        name: 'Checkpoint files',
        outcome: 'bad',
        text: 'no checkpoint was saved in the checkpoint directory',
      },
    ]
  const { files, sizeBytes, state, evidence, saveMs, intervalMs } = found
  const more = files.length - FILES_NAMED_MAX
  const named = files.slice(0, FILES_NAMED_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '')
  const every = intervalMs === null ? '' : `, one every ${formatDuration(intervalMs)}`
  const took =
    saveMs === null
      ? 'save time not measured'
      : saveMs === 0
        ? 'saved at once'
        : `${formatDuration(saveMs)} to save`
  return [
    { name: 'Checkpoint files', outcome: 'good', text: named },
    state === 'complete'
      ? { name: 'Proven complete', outcome: 'good', text: evidence }
      : { name: 'Proven complete', outcome: 'warning', text: `no, only provisional: ${evidence}` },
    { name: 'Size and time', outcome: 'good', text: `${formatBytes(sizeBytes)}, ${took}${every}` },
  ]
}

function survivalCheck(
  { interrupted }: RehearsalFacts,
  resumes: readonly Resume[],
  found: CheckpointSummary | null,
): Check {
  const name = 'Resumes'
  const bad = (text: string): Check => ({ name, outcome: 'bad', text })
  const last = lastOf(interrupted)
  if (last?.end?.outcome === 'failed')
    return bad(`the program fails after an interruption: ${last.end.message.replace(/\.$/, '')}`)
  const torn = resumes.find((resume) => resume.torn !== null)
  if (torn !== undefined) return bad(`it resumed from a torn checkpoint: ${torn.torn!}`)
  const times = countOf(resumes.length, 'interruption')
  if (found === null)
    return { name, outcome: 'unknown', text: `after ${times}, each time from the beginning` }
  const restored = resumes.filter(({ restoredState, hasGoneOn }) => restoredState !== null && hasGoneOn)
  const failure = failureOnRestore(interrupted, resumes)
  if (failure !== undefined)
    return bad(`the program fails on its checkpoint${failure === '' ? '' : `: ${failure}`}`)
  if (restored.length === 0 && resumes.every(({ kind }) => kind !== 'lost'))
    return bad(
      `${NOT_PROVEN}: no resume from a checkpoint was seen; rehearse a longer run, with more time (--for)`,
    )
  const failed = resumes.filter(({ stepsBack }) => stepsBack > 0)
  if (failed.length === 0) return { name, outcome: 'good', text: `after ${times}` }
  const often = countOf(failed.length, 'time')
  const text = `after ${times}, but ${often} it failed on the newest checkpoint and resumed from an older one`
  return { name, outcome: 'warning', text }
}

function stepCheck(resumes: readonly Resume[]): Check {
  const name = 'Right step'
  const scratch = resumes.find(({ kind }) => kind === 'ignored')
  if (scratch !== undefined) {
    const { restoredStep, firstStep } = scratch
    return {
      name,
      outcome: 'bad',
      text: `it got the checkpoint of step ${restoredStep} but began at step ${firstStep}`,
    }
  }
  const lost = resumes.find(({ kind }) => kind === 'lost')
  if (lost !== undefined)
    return { name, outcome: 'bad', text: 'it started over although it had saved a checkpoint' }
  const right = resumes.filter(({ kind }) => kind === 'right')
  if (right.length === 0 && resumes.some(({ kind }) => kind === 'behind'))
    return {
      name,
      outcome: 'bad',
      text: `${NOT_PROVEN}: it always began at the checkpoint before the newest`,
    }
  if (right.length === 0) return { name, outcome: 'unknown', text: 'no step was seen after a restore' }
  const [{ restoredStep, firstStep }] = right as [Resume]
  return {
    name,
    outcome: 'good',
    text: `${countOf(right.length, 'time')}, such as ${firstStep} after the checkpoint of step ${restoredStep}`,
  }
}

function lossCheck(seen: RehearsalFacts, resumes: readonly Resume[]): Check {
  const name = 'Loss continues'
  const verdicts = resumes
    .map((resume) => isLossContinued(seen, resume))
    .filter((verdict) => verdict !== null)
  if (verdicts.length === 0)
    return { name, outcome: 'unknown', text: 'not judged: too few losses were seen in the output' }
  const jump = verdicts.find(({ isContinued }) => !isContinued)
  if (jump === undefined)
    return { name, outcome: 'good', text: `after ${countOf(verdicts.length, 'resume')}` }
  const { found, expected, step } = jump
  return {
    name,
    outcome: 'bad',
    text: `the loss was ${round(found)} at step ${step} after a resume, but ${round(expected)} without one`,
  }
}

function round(loss: number): number {
  return Number(loss.toPrecision(4))
}

function sameCheck(seen: RehearsalFacts, resumes: readonly Resume[]): Check {
  const name = 'Same results'
  const { kind, text } = compareLives(seen, resumes)
  const outcome: Outcome = kind === 'same' ? 'good' : kind === 'differs' ? 'warning' : 'unknown'
  return { name, outcome, text }
}

/** Checks the files that the program kept. There are no such checks if this process cannot read the checkpoint directory. */
function keptChecks(seen: RehearsalFacts): Check[] {
  const { interrupted } = seen
  if (interrupted.kept === undefined || lastOf(interrupted)?.restores.length === 0) return []
  const lack = lackOfFiles(seen)
  const returned = returnedFile(seen)
  const dead = deadPath(seen)
  const name = 'Files kept'
  const files: Check =
    lack !== undefined
      ? { name, outcome: 'bad', text: lack }
      : returned !== undefined
        ? { name, outcome: 'warning', text: `${returned} is there, although the program had deleted it` }
        : { name, outcome: 'good', text: `${countOf(interrupted.kept.paths.length, 'file')} at the end` }
  if (dead === undefined) return [files]
  const text = `after an interruption ${dead.file} names ${dead.path}, which does not exist`
  return [files, { name: 'Stored paths', outcome: 'bad', text }]
}

function trackerChecks({ undisturbed, interrupted }: RehearsalFacts): Check[] {
  const runs = compareRuns(undisturbed, interrupted)
  if (runs === undefined) return []
  return [{ name: 'Tracker runs', outcome: runs.isSame ? 'good' : 'warning', text: runs.text }]
}

/** Losing more than this many rounds of training and saving in one interruption is worth a warning. */
const LOST_ROUNDS = 2.5

function lostCheck(resumes: readonly Resume[], found: CheckpointSummary | null): Check {
  const name = 'Work lost'
  if (found === null) return { name, outcome: 'bad', text: 'all of it, each time' }
  const known = resumes.filter(({ lostMs }) => lostMs !== null)
  if (known.length === 0) return { name, outcome: 'unknown', text: 'unknown: the program reports no steps' }
  const more = known.length < resumes.length ? '; unknown where neither a step nor a save was seen' : ''
  const worst = known.reduce((a, b) => (b.lostMs! > a.lostMs! ? b : a))
  const steps = worst.lostSteps === null ? '' : ` (${countOf(worst.lostSteps, 'step')})`
  const text = `${formatDuration(worst.lostMs!)}${steps} at worst${withNotice(known)}`
  const isMuch = found.intervalMs !== null && worst.lostMs! > found.intervalMs * LOST_ROUNDS
  return { name, outcome: isMuch ? 'warning' : 'good', text: `${text}${more}` }
}

function withNotice(resumes: readonly Resume[]): string {
  const told = resumes.filter(({ manner }) => manner === 'notice')
  if (told.length === 0) return ''
  const worst = Math.max(...told.map(({ lostMs }) => lostMs!))
  return `, ${formatDuration(worst)} after a notice`
}
