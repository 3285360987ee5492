import type { BackendAnswer } from './job/plan'
import type { BackendName } from './offer'

/** One reading of a backend's offers: the digest of its document in `market/`, and its instants. */
export interface MarketReading {
  backend: BackendName
  /** Digest of the document, and its name. */
  sha256: string
  /** The document counts its instants from 0; these are the instants, in that order. */
  instantsMs: number[]
}

/**
 * Returns an answer without its instants. The text is canonical, so readings of equal offers and prices give equal texts. Each
 * `observedAtMs` in it is the index of one of the instants.
 */
export function withoutInstants(answer: BackendAnswer): { text: string; instantsMs: number[] } {
  const numbers = new Map<number, number>()
  const numbered = replaceInstants(answer, (atMs) => {
    const number = numbers.get(atMs) ?? numbers.size
    numbers.set(atMs, number)
    return number
  })
  return { text: canonicalJson(numbered), instantsMs: [...numbers.keys()] }
}

/** The answer that `withoutInstants` took apart. */
export function withInstants(text: string, instantsMs: readonly number[]): BackendAnswer {
  const restored = replaceInstants(JSON.parse(text), (number) => {
    const atMs = instantsMs[number]
    if (atMs === undefined) throw new Error(`it has no instant ${number}`)
    return atMs
  })
  // Only `withoutInstants` writes such a text, and the digest in its name proves that it is unchanged.
  return restored as BackendAnswer
}

/** JSON with sorted keys: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (isObject(part) ? sorted(part) : part))
}

/** A copy in which every number under the key `observedAtMs` is replaced. */
function replaceInstants(value: unknown, replace: (instant: number) => number): unknown {
  if (Array.isArray(value)) return value.map((part) => replaceInstants(part, replace))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => {
        const part = value[key]
        const isInstant = key === 'observedAtMs' && typeof part === 'number'
        return [key, isInstant ? replace(part) : replaceInstants(part, replace)]
      }),
  )
}

function sorted(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, value[key]]),
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
