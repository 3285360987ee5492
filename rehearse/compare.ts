import { median } from './moments'
import {
  isDone,
  lastOf,
  stepOf,
  type AttemptSeen,
  type CheckpointSeen,
  type LifeSeen,
  type RestoreSeen,
  type Seen,
  type Strike,
} from './seen'
import { templateOf } from './words'

/** What followed an interruption. */
export interface Resume extends Strike {
  /** The attempt that was interrupted. */
  attempt: number
  isAtMoment: boolean
  /**
   * `right`: it went on where its checkpoint ends. `ignored`: it was given a checkpoint and began earlier. `fresh`: there was no
   * checkpoint. `lost`: it began from the beginning although a complete one was there. `unknown`: no step was seen.
   */
  kind: 'right' | 'ignored' | 'fresh' | 'lost' | 'unknown'
  restoredStep: number | null
  restoredState: CheckpointSeen['state'] | null
  firstStep: number | null
  hasGoneOn: boolean
  /** Checkpoints on which the program failed before that. */
  stepsBack: number
  /** What was missing of the restored checkpoint; null where nothing was. */
  torn: string | null
  lostSteps: number | null
  lostMs: number | null
}

/** One for each interruption after which another machine was started. */
export function resumesOf(seen: Seen): Resume[] {
  const { attempts } = seen.interrupted
  return attempts.slice(0, -1).flatMap((attempt, index) => {
    const next = attempts[index + 1]!
    return attempt.strike === null ? [] : [resumeOf(seen, attempt, next)]
  })
}

function resumeOf(seen: Seen, attempt: AttemptSeen, next: AttemptSeen): Resume {
  const { moment, manner, isAtMoment } = attempt.strike!
  const life = seen.interrupted
  const tried = next.restores.filter(({ outcome }) => outcome === 'failed').length
  // One that failed for good was the last one tried.
  const inUse = next.restores.at(-1)
  const restore = inUse?.outcome === 'failed' ? undefined : inUse
  const restoredStep = restore === undefined ? null : stepOf(restore.checkpoint, life)
  const steps = next.steps.filter(({ atMs }) => restore === undefined || atMs >= restore.atMs)
  const firstStep = steps[0]?.step ?? null
  const had = attempts(life, next.number).flatMap(({ saved }) => saved)
  const kind =
    restore === undefined
      ? had.some(({ state }) => state === 'complete')
        ? 'lost'
        : 'fresh'
      : kindOf({ restoredStep, firstStep, next, life })
  return {
    ...{ attempt: attempt.number, moment, manner, isAtMoment, kind, restoredStep, firstStep },
    restoredState: restore?.checkpoint.state ?? null,
    hasGoneOn: steps.length > 0 || restore?.outcome === 'went-on' || next.saved.length > 0,
    stepsBack: tried,
    torn: restore === undefined || restore.outcome === 'failed' ? null : tornIn(seen, restore),
    ...lossOf(attempt, { restore, kind, restoredStep, firstStep }),
  }
}

function attempts(life: LifeSeen, before: number): AttemptSeen[] {
  return life.attempts.filter(({ number }) => number < before)
}

function kindOf(facts: {
  restoredStep: number | null
  firstStep: number | null
  next: AttemptSeen
  life: LifeSeen
}): Resume['kind'] {
  const { restoredStep, firstStep, next, life } = facts
  if (restoredStep === null) return 'unknown'
  if (firstStep !== null) return firstStep < restoredStep - strideOf(life) ? 'ignored' : 'right'
  const named = next.saved.filter(isNamed)[0]
  if (named === undefined) return 'unknown'
  return named.step <= restoredStep ? 'ignored' : 'right'
}

/** How far apart steps are seen: what is printed, and looked at, now and then only. */
function strideOf({ attempts }: LifeSeen): number {
  const gaps = attempts.flatMap(({ steps }) =>
    steps.slice(1).map(({ step }, index) => Math.abs(step - steps[index]!.step)),
  )
  return Math.max(1, median(gaps) ?? 1)
}

/** Whether the step of a checkpoint is in the names of its files, rather than the one that was printed when it was seen. */
function isNamed({ isStepKnown, step, files }: CheckpointSeen): boolean {
  const number = new RegExp(`(?<!\\d)0*${step}(?!\\d)`)
  return isStepKnown !== false && files.some(({ path }) => number.test(path))
}

function lossOf(
  { steps, saved, strike, beganAtMs }: AttemptSeen,
  given: {
    restore: RestoreSeen | undefined
    kind: Resume['kind']
    restoredStep: number | null
    firstStep: number | null
  },
): Pick<Resume, 'lostSteps' | 'lostMs'> {
  const { restore, kind, restoredStep, firstStep } = given
  const last = steps.at(-1)
  const isUsed = restore !== undefined && kind !== 'ignored'
  const own = isUsed ? saved.find(({ id }) => id === restore.checkpoint.id) : undefined
  const fromMs = own?.savedAtMs ?? steps[0]?.atMs ?? beganAtMs
  const toMs = last?.atMs ?? strike!.atMs
  const from = isUsed ? restoredStep : firstStep === null ? null : Math.max(0, firstStep - 1)
  return {
    lostSteps: last === undefined || from === null ? null : Math.max(0, last.step - from),
    lostMs: Math.max(0, toMs - fromMs),
  }
}

/** Sizes of one kind of file that differ by no more than this are of files that always have one size. */
const SIZE_SLACK = 0.05

/** What a restored checkpoint lacks of what all complete ones of the undisturbed run have. */
function tornIn({ undisturbed }: Seen, { checkpoint }: RestoreSeen): string | null {
  const whole = undisturbed.attempts.flatMap(({ saved }) => saved.filter(({ state }) => state === 'complete'))
  if (whole.length < 2) return null
  const kinds = whole.map(({ files }) => sizesOf(files))
  for (const [kind, size] of kinds[0]!) {
    const sizes = kinds.map((each) => each.get(kind))
    if (sizes.some((each) => each === undefined)) continue
    const found = sizesOf(checkpoint.files).get(kind)
    if (found === undefined) return `${kind} was missing`
    const least = Math.min(...(sizes as number[]))
    const isSteady = Math.max(...(sizes as number[])) - least <= size * SIZE_SLACK
    if (isSteady && found < least * (1 - SIZE_SLACK)) return `${kind} had ${found} of ${least} bytes`
  }
  return null
}

function sizesOf(files: CheckpointSeen['files']): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const { path, sizeBytes } of files)
    sizes.set(templateOf(path), (sizes.get(templateOf(path)) ?? 0) + sizeBytes)
  return sizes
}

const LOSSES_LEAST = 2
const LOSSES_COMPARED = 5
/** How much a loss after a resume may differ: parts of the range of all losses, of itself, and times what it changes from step to step. */
const RANGE_PART = 0.1
const OWN_PART = 0.02
const NOISE_TIMES = 4

/** Null where too little was seen to tell. */
export function isLossContinued(
  { undisturbed, interrupted }: Seen,
  { attempt, kind }: Resume,
): { isContinued: boolean; step: number; found: number; expected: number } | null {
  if (kind !== 'right') return null
  const reference = lossesOf(undisturbed.attempts[0])
  const next = interrupted.attempts.find(({ number }) => number === attempt + 1)
  const restoredAtMs = next?.restores.at(-1)?.atMs ?? 0
  const after = lossesOf(next)
    .filter(({ atMs }) => atMs >= restoredAtMs)
    .flatMap(({ step, loss }) => {
      const expected = interpolated(reference, step)
      return expected === undefined ? [] : [{ step, loss, expected }]
    })
    .slice(0, LOSSES_COMPARED)
  if (after.length < LOSSES_LEAST) return null
  const found = mean(after.map(({ loss }) => loss))
  const expected = mean(after.map((each) => each.expected))
  const losses = reference.map(({ loss }) => loss)
  const range = Math.max(...losses) - Math.min(...losses)
  const noise = median(losses.slice(1).map((loss, index) => Math.abs(loss - losses[index]!))) ?? 0
  const slack = Math.max(RANGE_PART * range, OWN_PART * Math.abs(expected), NOISE_TIMES * noise)
  return { isContinued: Math.abs(found - expected) <= slack, step: after[0]!.step, found, expected }
}

interface LossSeen {
  step: number
  loss: number
  atMs: number
}

function lossesOf(attempt: AttemptSeen | undefined): LossSeen[] {
  return (attempt?.steps ?? []).flatMap(({ step, loss, atMs }) =>
    loss === null ? [] : [{ step, loss, atMs }],
  )
}

function interpolated(reference: readonly LossSeen[], step: number): number | undefined {
  const above = reference.findIndex((each) => each.step >= step)
  if (above < 0) return undefined
  const right = reference[above]!
  const left = reference[above - 1]
  if (left === undefined || right.step === step) return right.step === step ? right.loss : undefined
  return left.loss + ((right.loss - left.loss) * (step - left.step)) / (right.step - left.step)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length
}

export interface Comparison {
  kind: 'same' | 'differs' | 'unknown'
  text: string
}

/**
 * Compares what the interrupted job saved after its resumes with what the undisturbed one saved. Only files count that come out
 * equal in two stretches without an interruption: the others hold a time, or are not deterministic.
 */
export function compareLives(seen: Seen): Comparison {
  const { undisturbed, interrupted } = seen
  const reference = undisturbed.attempts.flatMap(({ saved }) => saved)
  const isFresh = ({ restores }: AttemptSeen): boolean => restores.length === 0
  const fresh = pairs(reference, interrupted.attempts.filter(isFresh))
  const resumed = pairs(
    reference,
    interrupted.attempts.filter((attempt) => !isFresh(attempt)),
  )
  const steady = new Set(fresh.filter(({ isEqual }) => isEqual).map(({ kind }) => kind))
  for (const { kind, isEqual, isNamed } of fresh) if (!isEqual && isNamed) steady.delete(kind)
  const equal = resumed.filter(({ isEqual }) => isEqual)
  const judged = resumed.filter(({ kind }) => steady.has(kind))
  const unequal = judged.filter(({ kind, isEqual, isNamed }) => {
    // Without a step in its name a file need not have been seen at the same steps in both runs.
    return !isEqual && (isNamed || !equal.some((each) => each.kind === kind))
  })
  if (unequal.length > 0) {
    const { path, step } = unequal[0]!
    return {
      kind: 'differs',
      text: `${path} of step ${step} differs from the undisturbed run's after a resume`,
    }
  }
  if (equal.length > 0)
    return {
      kind: 'same',
      text: `${equal.length} files saved after a resume are identical to the undisturbed run's`,
    }
  const outputs = equalOutputs(seen)
  if (outputs > 0) return { kind: 'same', text: `${outputs} outputs are identical to the undisturbed run's` }
  if (fresh.length > 0 && steady.size === 0)
    return {
      kind: 'unknown',
      text: 'not judged: two undisturbed stretches differ, so the program is not deterministic',
    }
  return { kind: 'unknown', text: 'not judged: no checkpoint of the same step was saved in both runs' }
}

interface Pair {
  kind: string
  path: string
  step: number
  isEqual: boolean
  isNamed: boolean
}

/** Files that the undisturbed run must have, too: of the same step where it is in their names, else of any. */
function pairs(reference: readonly CheckpointSeen[], attempts: readonly AttemptSeen[]): Pair[] {
  const known = new Map<string, Set<string>>()
  for (const { path, digest } of reference.flatMap(({ files }) => files))
    known.set(templateOf(path), (known.get(templateOf(path)) ?? new Set()).add(digest))
  const highest = Math.max(...reference.map(({ step }) => step))
  return attempts.flatMap(({ saved }) =>
    saved.flatMap((checkpoint): Pair[] => {
      const { step, files } = checkpoint
      const isOfStep = isNamed(checkpoint)
      const twin = reference.find((each) => each.step === step)
      if (checkpoint.state !== 'complete' || (isOfStep ? twin === undefined : step >= highest)) return []
      return files.flatMap(({ path, digest }) => {
        const kind = templateOf(path)
        const own = twin?.files.find((each) => each.path === path)
        if (isOfStep && own === undefined) return []
        const isEqual = isOfStep ? own!.digest === digest : known.get(kind)?.has(digest) === true
        return [{ kind, path, step, isEqual, isNamed: isOfStep }]
      })
    }),
  )
}

function equalOutputs({ undisturbed, interrupted }: Seen): number {
  if (!isDone(undisturbed) || !isDone(interrupted) || lastOf(interrupted)?.restores.length === 0) return 0
  const names = Object.keys(undisturbed.outputs)
  return names.every((name) => undisturbed.outputs[name] === interrupted.outputs[name]) ? names.length : 0
}
