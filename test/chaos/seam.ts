import { appendFileSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Verbs of a backend that can be disturbed. */
export const DISTURBED_VERBS = ['offers', 'launch', 'find', 'observe', 'terminate'] as const
export type DisturbedVerb = (typeof DISTURBED_VERBS)[number]

/**
 * What befalls one call of a verb. `slow-request` and `slow-answer` take `ms` before or after the effect; `lost-request` never
 * reaches the provider, `lost-answer` does, and no reply arrives.
 */
export const DISTURBANCES = ['slow-request', 'slow-answer', 'lost-request', 'lost-answer'] as const
export interface Disturbance {
  verb: DisturbedVerb
  kind: (typeof DISTURBANCES)[number]
  ms: number
}

/** A disturbance that has met its call. */
export interface TakenDisturbance extends Disturbance {
  /** The attempts that the call was about; none for a call about all. */
  attemptIds: string[]
  atMs: number
}

/**
 * The way of disturbances from the run to the backend's worker: one file each, which the next call of its verb takes by removing
 * it, whichever process makes that call.
 */
export class Seam {
  private armed = 0

  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true })
  }

  arm(disturbance: Disturbance): void {
    this.armed += 1
    writeFileSync(join(this.folder, `${disturbance.verb}.${this.armed}`), JSON.stringify(disturbance))
  }

  take(verb: DisturbedVerb, attemptIds: string[]): Disturbance | undefined {
    const name = readdirSync(this.folder).find((each) => each.startsWith(`${verb}.`))
    if (name === undefined) return undefined
    const path = join(this.folder, name)
    const disturbance = JSON.parse(readFileSync(path, 'utf8')) as Disturbance
    unlinkSync(path)
    const taken: TakenDisturbance = { ...disturbance, attemptIds, atMs: Date.now() }
    appendFileSync(join(this.folder, TAKEN), `${JSON.stringify(taken)}\n`)
    return disturbance
  }

  taken(): TakenDisturbance[] {
    return readLinesOf<TakenDisturbance>(join(this.folder, TAKEN))
  }
}

const TAKEN = 'taken.ndjson'

/** The whole lines of a file of JSON lines; none when it is not there. */
export function readLinesOf<T>(path: string): T[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return []
  }
  // What follows the last newline is a line still being written.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T)
}
