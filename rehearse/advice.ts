import { SAVED_WITHIN_MS } from '../core/job/saving'
import { formatDuration } from '../core/time/time'
import { failureOnRestore, type Resume } from './resumes'
import type { Check, CheckpointSummary } from './judge'
import { lastOf, type RehearsedCheckpoint, type RehearsalFacts } from './seen'
import { templateOf } from './words'

interface Judged {
  checks: readonly Check[]
  checkpoint: CheckpointSummary | null
  resumes: readonly Resume[]
}

/** A suggested change. */
export interface Change {
  /** Text in one or more sentences. */
  text: string
  /** Addition to the job file; null if the program must be changed. */
  yaml: string | null
  /** The related line of the program, such as `train.py:8`; null if uncertain. */
  line: string | null
}

/** Changes to the job file or the program, most important first. */
export function advise(seen: RehearsalFacts, judged: Judged): Change[] {
  const { undisturbed } = seen
  if (lastOf(undisturbed)?.end?.outcome === 'failed')
    return [
      inProgram(
        `Make the program run on ${seen.sight === 'store' ? 'that backend' : 'this machine'} first; then rehearse again.`,
      ),
    ]
  const found: Change[] = [
    ...whereToSave(seen, judged),
    ...afterFailure(seen, judged),
    ...howToResume(judged),
    ...howToProve(seen, judged),
    ...onNotice(judged),
  ]
  return found.filter(({ text }, index) => found.findIndex((each) => each.text === text) === index)
}

function inProgram(text: string): Change {
  return { text, yaml: null, line: null }
}

function inJobFile(text: string, key: string, value: string): Change {
  // Every plain YAML scalar that is a path is also a JSON string, when quoted.
  const plain = /^[A-Za-z_][\w./-]*$/.test(value) ? value : JSON.stringify(value)
  return { text, yaml: `checkpoint:\n  ${key}: ${plain}`, line: null }
}

function whereToSave(
  { outside, directory, undisturbed, interrupted, tookMs }: RehearsalFacts,
  { checkpoint }: Judged,
): Change[] {
  if (checkpoint !== null) return []
  const where = directory === null ? 'the folder in CRUCIBLE_CHECKPOINT_DIR' : `${directory}/`
  const [file] = outside
  if (file !== undefined) {
    const line = file.line ?? null
    const seenAt = `Your program saved to ./${file.path}${line === null ? '' : ` (${line})`}, outside ${where}.`
    if (!file.path.includes('/'))
      return [
        {
          ...inJobFile(
            `${seenAt} Save into a separate folder, such as checkpoints/.`,
            'directory',
            'checkpoints',
          ),
          line,
        },
      ]
    const folder = file.path.slice(0, file.path.lastIndexOf('/'))
    return [{ ...inJobFile(seenAt, 'directory', folder), line }]
  }
  const warnings = [...undisturbed.attempts, ...interrupted.attempts].flatMap(({ warning }) => warning ?? [])
  return [
    ...warnings.slice(-1).map(inProgram),
    inProgram(
      `Nothing was saved to ${where} within ${formatDuration(tookMs)}. Save a checkpoint there regularly, and load the newest one at the start. ` +
        'If the program saves less often, rehearse longer: `--for 1h`.',
    ),
  ]
}

/** A program that fails on the checkpoint that it was given, or on files in its checkpoint directory. */
function afterFailure({ interrupted, undisturbed }: RehearsalFacts, { resumes }: Judged): Change[] {
  const last = lastOf(interrupted)
  const hasFailed = last?.end?.outcome === 'failed' || failureOnRestore(interrupted, resumes) !== undefined
  if (!hasFailed) return []
  const given = last?.restores.at(-1)?.checkpoint
  const whole = undisturbed.attempts
    .flatMap(({ saved }) => saved)
    .findLast(({ state }) => state === 'complete')
  const missing = given === undefined || whole === undefined ? [] : lacking(given, whole)
  if (given !== undefined && whole !== undefined && missing.length > 0) {
    const early = given.files.map(({ path }) => path).join(', ')
    return [
      inJobFile(
        `The program got ${early} without ${missing.join(', ')}. Set checkpoint.complete to the file that makes a checkpoint complete.`,
        'complete',
        globOf(missing[0]!),
      ),
    ]
  }
  return [
    inProgram(
      'Make the program start from the folder in CRUCIBLE_RESUME_FROM, or from a checkpoint directory that is not empty.',
    ),
  ]
}

function lacking(given: RehearsedCheckpoint, whole: RehearsedCheckpoint): string[] {
  const kinds = given.files.map(({ path }) => templateOf(path))
  return whole.files.map(({ path }) => templateOf(path)).filter((kind) => !kinds.includes(kind))
}

function globOf(template: string): string {
  return template.split('/').at(-1)!
}

function howToResume({ checks, resumes }: Judged): Change[] {
  const is = (name: string, outcome: Check['outcome']): boolean =>
    checks.some((check) => check.name === name && check.outcome === outcome)
  const found: Change[] = []
  if (is('Right step', 'bad') && resumes.some(({ kind }) => kind === 'ignored' || kind === 'behind'))
    found.push(
      inProgram(
        'The program did not load its checkpoint. At its start, load CRUCIBLE_RESUME_FROM and continue after its step.',
      ),
    )
  if (is('Loss continues', 'bad'))
    found.push(
      inProgram('Load the weights and the state of the optimizer before the first step after a resume.'),
    )
  if (is('Same results', 'warning'))
    found.push(
      inProgram(
        'For identical results, also save and restore the random number generators, the optimizer, the scheduler and the position in the data.',
      ),
    )
  return found
}

function howToProve({ undisturbed, interrupted }: RehearsalFacts, { checkpoint, resumes }: Judged): Change[] {
  const isTorn = resumes.some(({ torn }) => torn !== null)
  if (
    checkpoint === null ||
    (checkpoint.state === 'complete' && !isTorn && resumes.every(({ stepsBack }) => stepsBack === 0))
  )
    return []
  const saved = [...undisturbed.attempts, ...interrupted.attempts].flatMap((attempt) => attempt.saved)
  const whole = saved.findLast(({ files }) => files.length > 1)
  const last = whole === undefined ? undefined : lastWritten(whole)
  if (last !== undefined)
    return [
      inJobFile(
        'Set checkpoint.complete to the file that the program writes last.',
        'complete',
        globOf(templateOf(last)),
      ),
    ]
  return [
    inProgram(
      'Write each checkpoint under a temporary name and rename it when it is complete (`os.replace(tmp, path)`), or call `crucible_job.checkpoint_saved(path, step)` after each save.',
    ),
  ]
}

function lastWritten({ files }: RehearsedCheckpoint): string | undefined {
  const dated = files.filter(({ modifiedAtMs }) => modifiedAtMs !== undefined)
  return dated.sort((a, b) => b.modifiedAtMs! - a.modifiedAtMs!)[0]?.path
}

/** Losing less work than this does not justify a signal handler. */
const WORTH_SAVING_MS = 1_000
const INTERVAL_PART = 0.1

function onNotice({ resumes, checkpoint }: Judged): Change[] {
  const found: Change[] = []
  if (checkpoint === null) return found
  const least = Math.max(WORTH_SAVING_MS, INTERVAL_PART * (checkpoint.intervalMs ?? 0))
  if (resumes.some(({ manner, lostMs }) => manner === 'notice' && lostMs !== null && lostMs > least))
    found.push(
      inProgram(
        'To lose nothing after a notice, save and exit on SIGTERM, or set `checkpoint.signal: SIGUSR1` if the program saves on that.',
      ),
    )
  if (checkpoint.saveMs !== null && checkpoint.saveMs > SAVED_WITHIN_MS)
    found.push(
      inProgram(
        `A save takes ${formatDuration(checkpoint.saveMs)}, longer than a notice allows: save more often than every ${formatDuration(checkpoint.saveMs)} is worth.`,
      ),
    )
  return found
}
