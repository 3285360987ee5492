import { median } from './moments'
import {
  stepOf,
  type RehearsedAttempt,
  type RehearsedCheckpoint,
  type RehearsedLife,
  type RehearsalFacts,
  type Strike,
} from './seen'
import { templateOf } from './words'

/** Observations after an interruption. */
export interface Resume extends Strike {
  /** The attempt that was interrupted. */
  attempt: number
  isAtMoment: boolean
  /**
   * `right`: resumed where its checkpoint ends. `behind`: resumed where the one before ends, its own being perhaps damaged. `ignored`:
   * given a checkpoint, but began earlier. `fresh`: no checkpoint existed. `lost`: started over although a complete one existed.
   * `unknown`: no step was seen, for example on a machine that was interrupted before its program began.
   */
  kind: 'right' | 'behind' | 'ignored' | 'fresh' | 'lost' | 'unknown'
  restoredStep: number | null
  restoredState: RehearsedCheckpoint['state'] | null
  firstStep: number | null
  hasGoneOn: boolean
  /** Checkpoints on which the program failed first. */
  stepsBack: number
  /** Part that the restored checkpoint lacked; null if complete. */
  torn: string | null
  lostSteps: number | null
  /** Work done again; null if nothing showed when the work began. */
  lostMs: number | null
}

/** Returns one resume for each interruption that another machine followed. */
export function resumesOf(seen: RehearsalFacts): Resume[] {
  const { attempts } = seen.interrupted
  return attempts.slice(0, -1).flatMap((attempt, index) => {
    const next = attempts[index + 1]!
    return attempt.strike === null ? [] : [resumeOf(seen, attempt, next)]
  })
}

/** Error of a program that was never seen to resume from a checkpoint; empty without a message. */
export function failureOnRestore(life: RehearsedLife, resumes: readonly Resume[]): string | undefined {
  if (resumes.some(({ restoredState, hasGoneOn }) => restoredState !== null && hasGoneOn)) return undefined
  const restores = life.attempts.flatMap((attempt) => attempt.restores)
  const failed = restores.findLast(({ outcome }) => outcome === 'failed')
  return failed === undefined ? undefined : (failed.message ?? '').replace(/\.$/, '')
}

function resumeOf(seen: RehearsalFacts, attempt: RehearsedAttempt, next: RehearsedAttempt): Resume {
  const { moment, manner, isAtMoment } = attempt.strike!
  const life = seen.interrupted
  const tried = next.restores.filter(({ outcome }) => outcome === 'failed').length
  // The last tried restore is the one that finally failed.
  const inUse = next.restores.at(-1)
  const restore = inUse?.outcome === 'failed' ? undefined : inUse
  const steps = next.steps.filter(({ atMs }) => restore === undefined || atMs >= restore.atMs)
  const firstStep = steps[0]?.step ?? null
  const had = attempts(life, next.number).flatMap(({ saved }) => saved)
  const whole = had.filter((each) => each.state === 'complete' && tornIn(seen, each) === null)
  const kindFrom = (restored: RehearsedCheckpoint): Resume['kind'] =>
    kindOf({ restored, restoredStep: stepOf(restored, life), firstStep, next, seen })
  const given = restore?.checkpoint
  // A program that finds its newest checkpoint torn, and resumes from the previous one, is correct.
  const isPassedOver =
    given !== undefined && tornIn(seen, given) !== null && ['ignored', 'behind'].includes(kindFrom(given))
  const used = isPassedOver ? whole.findLast(({ id }) => id !== given.id) : given
  const hasBegun = steps.length > 0 || next.saved.length > 0
  const kind =
    used !== undefined ? kindFrom(used) : whole.length === 0 ? 'fresh' : hasBegun ? 'lost' : 'unknown'
  const restoredStep = used === undefined ? null : stepOf(used, life)
  return {
    attempt: attempt.number,
    moment,
    manner,
    isAtMoment,
    kind,
    restoredStep,
    firstStep,
    restoredState: used?.state ?? null,
    hasGoneOn: steps.length > 0 || restore?.outcome === 'went-on' || next.saved.length > 0,
    stepsBack: tried,
    torn: used === undefined ? null : tornIn(seen, used),
    ...lossOf(attempt, { used, kind, restoredStep, firstStep }),
  }
}

function attempts(life: RehearsedLife, before: number): RehearsedAttempt[] {
  return life.attempts.filter(({ number }) => number < before)
}

function kindOf(facts: {
  restored: RehearsedCheckpoint
  restoredStep: number | null
  firstStep: number | null
  next: RehearsedAttempt
  seen: RehearsalFacts
}): Resume['kind'] {
  const { restored, restoredStep, firstStep, next, seen } = facts
  const life = seen.interrupted
  if (restoredStep === null) return 'unknown'
  if (firstStep !== null) {
    const isExact = isNamed(restored) && restored.state === 'complete' && restored.evidence.kind !== 'next'
    if (isExact) return firstStep < restoredStep - strideOf(life) ? 'ignored' : 'right'
    return kindOfUncertain({ restored, restoredStep, firstStep, seen })
  }
  const named = next.saved.filter(isNamed)[0]
  if (named === undefined) return 'unknown'
  return named.step <= restoredStep ? 'ignored' : 'right'
}

/**
 * Judges a resume from a checkpoint whose own step is uncertain. A background save contains an earlier step than the printed one at the
 * time of its file, by less than half a save interval. Only an incomplete checkpoint may be damaged, and make a program use the previous
 * one.
 */
function kindOfUncertain({ restored, restoredStep, firstStep, seen }: Restored): Resume['kind'] {
  const { undisturbed, interrupted: life } = seen
  const apart = saveStrideOf([undisturbed, life])
  const begun = life.attempts[0]?.steps[0]?.step ?? 0
  if (apart === null) return firstStep < Math.min(restoredStep, begun + 1) ? 'ignored' : 'right'
  const isFrom = (step: number): boolean => firstStep >= Math.max(begun + 1, step - apart / 2)
  if (isFrom(restoredStep)) return 'right'
  if (restored.state === 'complete') return 'ignored'
  const earlier = life.attempts
    .flatMap(({ saved }) => saved.map((each) => stepOf(each, life)))
    .filter((step) => step !== null && step <= restoredStep - apart / 2) as number[]
  return isFrom(Math.max(...earlier, begun)) ? 'behind' : 'ignored'
}

interface Restored {
  restored: RehearsedCheckpoint
  restoredStep: number
  firstStep: number
  seen: RehearsalFacts
}

/**
 * Steps between two saves of one attempt; null if fewer than two were seen. A save shortly after another may be missed: the
 * shorter distances are the right ones, except for an early save on a notice.
 */
function saveStrideOf(lives: readonly RehearsedLife[]): number | null {
  const strides = lives.flatMap((life) =>
    life.attempts.flatMap(({ saved }) => {
      const steps = saved.flatMap((each) => stepOf(each, life) ?? [])
      return steps.slice(1).flatMap((step, index) => (step > steps[index]! ? [step - steps[index]!] : []))
    }),
  )
  const usual = median(strides)
  return usual === null ? null : Math.min(...strides.filter((stride) => stride >= usual / 2))
}

/** Distance between visible steps: programs print, and we poll, only now and then. */
function strideOf({ attempts }: RehearsedLife): number {
  const gaps = attempts.flatMap(({ steps }) =>
    steps.slice(1).map(({ step }, index) => Math.abs(step - steps[index]!.step)),
  )
  return Math.max(1, median(gaps) ?? 1)
}

/** Whether the step of a checkpoint comes from its file names, not from the output at the time of its observation. */
export function isNamed({ isStepKnown, step, files }: RehearsedCheckpoint): boolean {
  const number = new RegExp(`(?<!\\d)0*${step}(?!\\d)`)
  return isStepKnown !== false && files.some(({ path }) => number.test(path))
}

function lossOf(
  { steps, saved, strike }: RehearsedAttempt,
  given: {
    used: RehearsedCheckpoint | undefined
    kind: Resume['kind']
    restoredStep: number | null
    firstStep: number | null
  },
): Pick<Resume, 'lostSteps' | 'lostMs'> {
  const { used, kind, restoredStep, firstStep } = given
  const last = steps.at(-1)
  const isUsed = used !== undefined && kind !== 'ignored'
  const own = isUsed ? saved.find(({ id }) => id === used.id) : undefined
  // Without a step or a save to begin at, the time since the start would count the time to load.
  const fromMs = own?.savedAtMs ?? steps[0]?.atMs
  const toMs = last?.atMs ?? strike!.atMs
  const from = isUsed ? restoredStep : firstStep === null ? null : Math.max(0, firstStep - 1)
  return {
    lostSteps: last === undefined || from === null ? null : Math.max(0, last.step - from),
    lostMs: fromMs === undefined ? null : Math.max(0, toMs - fromMs),
  }
}

/** As `is_database` of the runner, which copies a database whole at any moment: it grows page by page, and an earlier copy is smaller. */
const DATABASE = /\.(?:db|sqlite3?)$/i

/** File sizes of one kind that differ by at most this much count as one constant size. */
const SIZE_SLACK = 0.05
/** Numbers in a small text have more or fewer digits from save to save. */
const SIZE_SLACK_BYTES = 64

/**
 * Returns the parts that a restored checkpoint lacks compared with all complete ones of the undisturbed run, from the step at which they
 * have them.
 */
function tornIn(seen: RehearsalFacts, checkpoint: RehearsedCheckpoint): string | null {
  const { undisturbed } = seen
  const whole = undisturbed.attempts.flatMap(({ saved }) => saved.filter(({ state }) => state === 'complete'))
  if (whole.length < 2) return null
  const kinds = whole.map(({ files }) => sizesOf(files))
  const mayBeMissing = !isDue(checkpoint, whole, seen)
  for (const [kind, size] of kinds[0]!) {
    const sizes = kinds.map((each) => each.get(kind))
    if (sizes.some((each) => each === undefined)) continue
    const found = sizesOf(checkpoint.files).get(kind)
    if (found === undefined && !mayBeMissing) return `${kind} was missing`
    if (found === undefined || DATABASE.test(kind)) continue
    const least = Math.min(...(sizes as number[]))
    const isSteady = Math.max(...(sizes as number[])) - least <= size * SIZE_SLACK
    if (isSteady && found < least * (1 - SIZE_SLACK) - SIZE_SLACK_BYTES)
      return `${kind} had ${found} of ${least} bytes`
  }
  return null
}

/**
 * Whether the undisturbed run had a complete checkpoint by that step, or after that time. Files that take turns appear one by one, and a
 * database may exist before the first save: the first checkpoint of such a program legitimately has fewer files.
 */
function isDue(
  checkpoint: RehearsedCheckpoint,
  whole: readonly RehearsedCheckpoint[],
  seen: RehearsalFacts,
): boolean {
  const step = stepOf(checkpoint, seen.interrupted)
  const steps = whole.map((each) => stepOf(each, seen.undisturbed))
  if (step !== null && steps.every((each) => each !== null)) return steps.some((each) => each <= step)
  const afterMs = msFromScratch(checkpoint, seen.interrupted)
  return whole.some((each) => (msFromScratch(each, seen.undisturbed) ?? 0) <= (afterMs ?? Infinity))
}

/** Returns how long its program had been running; null for one that had resumed from another checkpoint. */
function msFromScratch(
  { attempt, savedAtMs }: RehearsedCheckpoint,
  { attempts }: RehearsedLife,
): number | null {
  const own = attempts.find(({ number }) => number === attempt)
  return own === undefined || own.restores.length > 0 ? null : savedAtMs - own.beganAtMs
}

function sizesOf(files: RehearsedCheckpoint['files']): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const { path, sizeBytes } of files)
    sizes.set(templateOf(path), (sizes.get(templateOf(path)) ?? 0) + sizeBytes)
  return sizes
}
