import type { NamedPath } from './kept'
import { median } from './moments'
import { isNamed, type Resume } from './resumes'
import {
  attemptAfter,
  isDone,
  lastOf,
  type RehearsedAttempt,
  type RehearsedCheckpoint,
  type RehearsalFacts,
} from './seen'
import { countOf, templateOf } from './words'

const LOSSES_LEAST = 2
const LOSSES_COMPARED = 5
/**
 * Tolerance for a loss after a resume: fractions of the range of all losses and of the loss, and a multiple of its change per
 * step.
 */
const RANGE_PART = 0.1
const OWN_PART = 0.02
const NOISE_TIMES = 4

/** Null if too little was seen to decide. */
export function isLossContinued(
  { undisturbed, interrupted }: RehearsalFacts,
  { attempt, kind }: Resume,
): { isContinued: boolean; step: number; found: number; expected: number } | null {
  if (kind !== 'right') return null
  const reference = lossesOf(undisturbed.attempts[0])
  const next = attemptAfter(interrupted, attempt)
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

interface RehearsedLoss {
  step: number
  loss: number
  atMs: number
}

function lossesOf(attempt: RehearsedAttempt | undefined): RehearsedLoss[] {
  return (attempt?.steps ?? []).flatMap(({ step, loss, atMs }) =>
    loss === null ? [] : [{ step, loss, atMs }],
  )
}

function interpolated(reference: readonly RehearsedLoss[], step: number): number | undefined {
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
 * Compares the interrupted job's results after its resumes with the undisturbed one's: the saved files, otherwise the losses.
 * Only results that are equal in two uninterrupted stretches count: others contain a time, or are random.
 */
export function compareLives(seen: RehearsalFacts, resumes: readonly Resume[]): Comparison {
  const { attempts } = seen.interrupted
  const goneOn = new Set(
    resumes
      .filter(({ kind }) => kind === 'right')
      .map(({ attempt }) => attemptAfter(seen.interrupted, attempt)?.number),
  )
  const resumed = attempts.filter(({ number }) => goneOn.has(number))
  const fresh = attempts.filter(({ number, restores }) => !goneOn.has(number) && restores.length === 0)
  return (
    compareFiles(seen, fresh, resumed) ??
    compareOutputs(seen) ??
    compareLosses(seen, fresh, resumed) ?? {
      kind: 'unknown',
      text: 'not judged: no checkpoint of the same step was saved in both runs',
    }
  )
}

function compareFiles(
  { undisturbed }: RehearsalFacts,
  fresh: readonly RehearsedAttempt[],
  resumed: readonly RehearsedAttempt[],
): Comparison | undefined {
  const reference = undisturbed.attempts.flatMap(({ saved }) => saved)
  const before = pairs(reference, fresh)
  const after = pairs(reference, resumed)
  const steady = new Set(before.filter(({ isEqual }) => isEqual).map(({ kind }) => kind))
  for (const { kind, isEqual, isNamed } of before) if (!isEqual && isNamed) steady.delete(kind)
  const equal = after.filter(({ isEqual }) => isEqual)
  const others = after.filter(({ kind, isEqual, isWhole }) => !isEqual && isWhole && steady.has(kind))
  const unequal = others.find(({ kind, isNamed }) => {
    // A file without a step in its name may not have been seen at the same steps in both runs, so one difference is chance.
    const isOfKind = (each: Pair): boolean => each.kind === kind
    const steps = new Set(others.filter(isOfKind).map(({ step }) => step))
    return isNamed || (!equal.some(isOfKind) && steps.size >= UNNAMED_LEAST)
  })
  if (unequal !== undefined) {
    const { path, step } = unequal
    return {
      kind: 'differs',
      text: `${path} of step ${step} differs from the undisturbed run's after a resume`,
    }
  }
  if (equal.length === 0) return undefined
  const files = `${countOf(equal.length, 'file')} saved after a resume`
  return {
    kind: 'same',
    text: `${files} ${equal.length === 1 ? 'is' : 'are'} identical to the undisturbed run's`,
  }
}

/** Least number of different unnamed files: with fewer, they may be of saves that the undisturbed run made unseen. */
const UNNAMED_LEAST = 2

/** Equal losses at fewer steps may be chance. */
const SAME_LOSSES_LEAST = 3

function compareLosses(
  { undisturbed }: RehearsalFacts,
  fresh: readonly RehearsedAttempt[],
  resumed: readonly RehearsedAttempt[],
): Comparison | undefined {
  const reference = new Map(lossesOf(undisturbed.attempts[0]).map(({ step, loss }) => [step, loss]))
  const common = (attempts: readonly RehearsedAttempt[]): RehearsedLoss[] =>
    attempts.flatMap((attempt) => lossesOf(attempt).filter(({ step }) => reference.has(step)))
  const differs = ({ step, loss }: RehearsedLoss): boolean => reference.get(step) !== loss
  const before = common(fresh)
  const after = common(resumed)
  if (before.some(differs))
    return {
      kind: 'unknown',
      text: 'not judged: the losses of two undisturbed stretches differ, so the program is not deterministic',
    }
  if (before.length < SAME_LOSSES_LEAST || after.length < SAME_LOSSES_LEAST) return undefined
  const other = after.find(differs)
  if (other === undefined)
    return {
      kind: 'same',
      text: `the losses of ${after.length} steps after a resume match the undisturbed run`,
    }
  const { step, loss } = other
  const text = `the loss of step ${step} is ${loss} after a resume, but ${reference.get(step)!} without one`
  return { kind: 'differs', text }
}

interface Pair {
  kind: string
  path: string
  step: number
  isEqual: boolean
  isNamed: boolean
  /** Complete, without gaps. */
  isWhole: boolean
}

/** Files that the undisturbed run must have too: of the same step if their names contain it, otherwise of any. */
function pairs(reference: readonly RehearsedCheckpoint[], attempts: readonly RehearsedAttempt[]): Pair[] {
  const known = new Map<string, Set<string>>()
  for (const { path, digest } of reference.flatMap(({ files }) => files))
    known.set(templateOf(path), (known.get(templateOf(path)) ?? new Set()).add(digest))
  const highest = Math.max(...reference.map(({ step }) => step))
  return attempts.flatMap(({ saved }) =>
    saved.flatMap((checkpoint): Pair[] => {
      const { step, files } = checkpoint
      const isOfStep = isNamed(checkpoint)
      const twin = reference.find((each) => each.step === step)
      if (isOfStep ? twin === undefined : step >= highest) return []
      const isWhole = checkpoint.state === 'complete'
      return files.flatMap(({ path, digest }) => {
        const kind = templateOf(path)
        const own = twin?.files.find((each) => each.path === path)
        if (isOfStep && own === undefined) return []
        const isEqual = isOfStep ? own!.digest === digest : known.get(kind)?.has(digest) === true
        return [{ kind, path, step, isEqual, isNamed: isOfStep, isWhole }]
      })
    }),
  )
}

function compareOutputs({ undisturbed, interrupted }: RehearsalFacts): Comparison | undefined {
  if (!isDone(undisturbed) || !isDone(interrupted) || lastOf(interrupted)?.restores.length === 0)
    return undefined
  const names = Object.keys(undisturbed.outputs)
  const areEqual = names.every((name) => undisturbed.outputs[name] === interrupted.outputs[name])
  if (names.length === 0 || !areEqual) return undefined
  const text = `${countOf(names.length, 'output')} identical to the undisturbed run`
  return { kind: 'same', text }
}

/** Parts of names that differ from run to run: numbers, and what may be a hash. */
const VARYING = /[0-9a-f]{6,}|\d+/gi

/**
 * Compares the final content of the checkpoint directory with the undisturbed run's. `undefined` if nothing is wrong, or if not both
 * programs ran to their end where their directories can be read.
 */
export function lackOfFiles({ undisturbed, interrupted }: RehearsalFacts): string | undefined {
  const [before, after] = [undisturbed.kept, interrupted.kept]
  if (before === undefined || after === undefined || !isDone(undisturbed) || !isDone(interrupted))
    return undefined
  const kindOf = (path: string): string => path.replace(VARYING, '*')
  const counts = new Map<string, number>()
  for (const path of after.paths) counts.set(kindOf(path), (counts.get(kindOf(path)) ?? 0) + 1)
  const there = new Set(after.paths)
  const lacking = before.paths.filter((path) => {
    const ofKind = before.paths.filter((each) => kindOf(each) === kindOf(path)).length
    return !there.has(path) && (counts.get(kindOf(path)) ?? 0) < ofKind
  })
  if (lacking.length === 0) return undefined
  const more = lacking.length > 1 ? ` and ${countOf(lacking.length - 1, 'other file')}` : ''
  return `after interruptions it ends without ${lacking[0]!}${more}, which the undisturbed run keeps`
}

/** Returns a file that the undisturbed run had deleted and that the interrupted one still has at its end. */
export function returnedFile({ undisturbed, interrupted }: RehearsalFacts): string | undefined {
  const [before, after] = [undisturbed.kept, interrupted.kept]
  if (before === undefined || after === undefined || !isDone(undisturbed) || !isDone(interrupted))
    return undefined
  const saved = new Set(
    undisturbed.attempts.flatMap((attempt) =>
      attempt.saved.flatMap(({ files }) => files.map(({ path }) => path)),
    ),
  )
  const kept = new Set(before.paths)
  return after.paths.find((path) => saved.has(path) && !kept.has(path))
}

/** Returns a path that the program has stored, that exists without interruptions, and that leads nowhere after one. */
export function deadPath({ undisturbed, interrupted }: RehearsalFacts): NamedPath | undefined {
  if (interrupted.kept === undefined || lastOf(interrupted)?.restores.length === 0) return undefined
  const kindOf = ({ file, inner }: NamedPath): string => `${file}\0${inner}`.replace(VARYING, '*')
  const alike = undisturbed.kept?.named.filter(({ exists }) => !exists) ?? []
  const usual = new Set(alike.map(kindOf))
  return interrupted.kept.named.find((each) => !each.exists && !usual.has(kindOf(each)))
}
