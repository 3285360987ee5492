import type { Note } from './notes'
import type { Struck } from './strikes'

export const BREACHES = ['torn', 'failed', 'scratch', 'lost', 'deleted', 'window', 'silent', 'stuck'] as const

/**
 * What must not happen.
 *
 * - `torn`: a program went on from a state that it has never saved: a mixture of two saves, or a part of one.
 * - `failed`: the job failed for good although its program can continue from a whole checkpoint: it was given something else, or what
 *   it was given kept it from beginning anew. A program that fails at a torn checkpoint and is then given the one before is no
 *   breach: what counts is the life of the job.
 * - `scratch`: a program began at the beginning although a complete checkpoint existed.
 * - `lost`: a program went on from a checkpoint although two or more newer complete ones existed.
 * - `deleted`: the newest whole save that the store held, or the one that the program last went on from, is gone from it.
 * - `window`: a program that saves at regular times was warned of the end of its machine, its next save was due in the first half of the
 *   window and could have arrived before the end of it, and it was ended before it could save.
 * - `silent`: a program saves where it is not looked for, or never, and no word was said of it.
 * - `stuck`: nothing came of an attempt in a long time.
 *
 * A complete checkpoint existed when the program's own note says that a save was finished at least `settleMs` before the end of its
 * machine.
 */
type BreachKind = (typeof BREACHES)[number]

export interface Breach {
  kind: BreachKind
  attempt: number
  words: string
}

export interface LifeFacts {
  notes: readonly Note[]
  struck: readonly Struck[]
  /** Why the job ended, if not by the success of its program. */
  failure?: { attempt: number; words: string } | undefined
  /** The program saves where Crucible is not told to look. */
  isSavedElsewhere?: boolean
}

export interface Judgement {
  breaches: Breach[]
  /** The most complete checkpoints that were skipped in one resume. */
  savesLostMax: number
  resumes: number
}

interface Save {
  step: number
  atMs: number
}

/** The program's part of one start: from `started` to the next one. */
interface Episode {
  attempt: number
  notes: Note[]
}

/** Judges one life by what its program noted and what was done to it. Pure. */
export function judgeLife(facts: LifeFacts): Judgement {
  const breaches: Breach[] = []
  const states = new Map<number, Set<string>>()
  /** The complete checkpoints of the job's present past, by step. */
  let known: number[] = []
  let savesLostMax = 0
  let resumes = 0
  const episodes = episodesOf(facts.notes)
  for (const { attempt, notes } of episodes) {
    const safeUntilMs = safeUntil(facts, episodes, notes)
    for (const note of notes) {
      switch (note.event) {
        case 'saving':
          states.set(note.step, (states.get(note.step) ?? new Set()).add(note.state))
          break
        case 'saved':
          if (facts.isSavedElsewhere !== true && note.atMs <= safeUntilMs && !known.includes(note.step))
            known.push(note.step)
          break
        case 'resumed': {
          resumes += 1
          if (states.get(note.step)?.has(note.state) !== true)
            breaches.push({ kind: 'torn', attempt, words: `went on from a mixture at step ${note.step}` })
          const passed = known.filter((step) => step > note.step)
          savesLostMax = Math.max(savesLostMax, passed.length)
          if (passed.length > 1) {
            const words = `went on from step ${note.step} although ${passed.join(', ')} were complete`
            breaches.push({ kind: 'lost', attempt, words })
          }
          known = [...known.filter((step) => step < note.step), note.step]
          break
        }
        case 'fresh':
          if (known.length > 0) {
            const words = `began at the beginning although ${known.join(', ')} were complete`
            breaches.push({ kind: 'scratch', attempt, words })
            savesLostMax = Math.max(savesLostMax, known.length)
          }
          known = []
          break
        case 'started':
        case 'step':
        case 'save-failed':
        case 'crashed':
        case 'finished':
          break
      }
    }
  }
  if (facts.failure !== undefined) breaches.push({ kind: 'failed', ...facts.failure })
  breaches.push(...windowsWasted(facts, episodes))
  return { breaches, savesLostMax, resumes }
}

function episodesOf(notes: readonly Note[]): Episode[] {
  const episodes: Episode[] = []
  for (const note of notes) {
    if (note.event === 'started') episodes.push({ attempt: note.attempt, notes: [] })
    episodes.at(-1)?.notes.push(note)
  }
  return episodes
}

/** By this time a save of this episode must be finished to count: forever if nothing was done to it, because it then had time. */
function safeUntil({ struck }: LifeFacts, episodes: readonly Episode[], notes: readonly Note[]): number {
  const { attempt } = notes[0]!
  const isLast = episodes.findLast((episode) => episode.attempt === attempt)?.notes === notes
  const blow = struck.find((each) => each.attempt === attempt)
  return blow === undefined || !isLast ? Infinity : blow.untilMs - blow.settleMs
}

/** By how much a program may be later than it was before, and its save still have been due. */
const PUNCTUALITY = 1.25
/** Less work than this is not worth a wait; and a save that is only just over may be taken for the one that was waited for. */
const WORTH_SAVING_MS = 700

function windowsWasted({ struck, isSavedElsewhere }: LifeFacts, episodes: readonly Episode[]): Breach[] {
  if (isSavedElsewhere === true) return []
  return struck.flatMap((blow): Breach[] => {
    const episode = episodes.findLast(({ attempt }) => attempt === blow.attempt)
    if (blow.manner === 'kill' || episode === undefined) return []
    const saves = savesOf(episode)
    const before = saves.filter(({ atMs }) => atMs <= blow.atMs)
    const gaps = gapsOf(before)
    const last = before.at(-1)
    const isRegular = gaps.length > 0 && Math.max(...gaps) < Math.min(...gaps) * PUNCTUALITY
    if (last === undefined || !isRegular || blow.atMs - last.atMs < WORTH_SAVING_MS) return []
    const dueAtMs = last.atMs + Math.max(...gaps) * PUNCTUALITY
    const windowMs = blow.untilMs - blow.atMs
    // The runner, too, waits only for a save that can still arrive: on a busy machine that takes longer.
    const isDue = dueAtMs > blow.atMs && dueAtMs < blow.untilMs - Math.max(windowMs / 2, blow.settleMs)
    if (!isDue || saves.length > before.length) return []
    const dueMs = Math.round(dueAtMs - blow.atMs)
    const words = `was ended although it was to save within ${dueMs} ms of ${Math.round(windowMs)} ms`
    return [{ kind: 'window', attempt: blow.attempt, words }]
  })
}

function savesOf({ notes }: Episode): Save[] {
  return notes.flatMap((note) => (note.event === 'saved' ? [{ step: note.step, atMs: note.atMs }] : []))
}

function gapsOf(saves: readonly Save[]): number[] {
  return saves.slice(1).map(({ atMs }, index) => atMs - saves[index]!.atMs)
}
