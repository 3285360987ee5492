import type { Backend } from '../../backends/backend'
import type { Diagnosis } from '../../core/documents'
import type { Failure } from '../../core/failure'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/plan'
import { SECOND_MS } from '../../core/time'
import { putDocumentIfAbsent, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'

export interface DiagnosisDeps {
  backend: Backend
  store: ObjectStore
  now: () => number
  /** Puts `***` in the place of every value of the job's secrets. */
  maskSecrets: (jobId: string, text: string) => Promise<string>
}

/** A machine that nobody can speak to is not kept for the sake of its last words. */
const LIMIT_MS = 25 * SECOND_MS
const TEXT_CHARS_MAX = 32_000
const LAST_WORDS_CHARS_MAX = 300
/** Colours, and all else by which a text commands a terminal. */
// eslint-disable-next-line no-control-regex -- these are the ones that are meant
const CONTROLS = /\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g
/** Rather nothing than a secret. */
const WITHHELD = 'withheld: the secrets of the job, which may be in it, cannot be opened here'

/**
 * Puts on record, once, what can be learned of a machine whose runner left no result: before it is ended, for then nobody can ask it
 * any more. Whatever goes wrong is part of the diagnosis.
 */
export async function diagnose(
  { backend, store, now, maskSecrets }: DiagnosisDeps,
  { jobId, attempt }: Order,
  { handle, signal }: { handle: MachineHandle; signal: AbortSignal },
): Promise<Diagnosis | undefined> {
  if (backend.logs === undefined) return undefined
  const key = layout.diagnosis(jobId, attempt)
  // Of our own writing.
  const earlier = await readDocument(store, key, (text) => JSON.parse(text) as Diagnosis)
  if (earlier !== undefined) return earlier
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), LIMIT_MS)
  const page = await backend
    .logs(handle, undefined, { signal: AbortSignal.any([signal, limit.signal]) })
    .catch((error: unknown) => ({ text: `Nothing could be learned: ${(error as Error).message}` }))
    .finally(() => clearTimeout(timer))
  if (page.text === '') return undefined
  const masked = async (text: string, charsMax: number): Promise<string> => {
    const clean = await maskSecrets(jobId, text).catch(() => WITHHELD)
    return clean.replace(CONTROLS, '').slice(-charsMax)
  }
  const diagnosis: Diagnosis = {
    atMs: now(),
    machine: handle.id,
    text: await masked(page.text, TEXT_CHARS_MAX),
    ...('lastWords' in page && { lastWords: await masked(page.lastWords, LAST_WORDS_CHARS_MAX) }),
  }
  await putDocumentIfAbsent(store, key, diagnosis)
  return diagnosis
}

/** The failure with what its machine said last. */
export function withLastWords(failure: Failure, diagnosis: Diagnosis | undefined): Failure {
  if (diagnosis?.lastWords === undefined) return failure
  const words = `Its machine said last: "${diagnosis.lastWords}" (more: crucible events).`
  return { ...failure, hint: failure.hint === undefined ? words : `${failure.hint} ${words}` }
}
