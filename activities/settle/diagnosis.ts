import type { Backend, LogPage } from '../../backends/backend'
import type { Diagnosis } from '../../core/documents'
import type { Failure } from '../../core/failure'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/job/plan'
import { SECOND_MS } from '../../core/time/time'
import { putDocumentIfAbsent, readDocument } from '../../storage/json'
import { readLastWords } from '../../storage/last-words'
import { layout } from '../../storage/layout'
import type { SendingDeps } from '../machine/sending'

export interface DiagnosisDeps extends SendingDeps {
  /** For durations: it never steps. */
  monotonicMs: () => number
  /** Replaces every value of the job's secrets by `***`. */
  maskSecrets: (jobId: string, text: string) => Promise<string>
}

/** An unreachable machine is not kept running for its diagnosis. */
const LIMIT_MS = 25 * SECOND_MS
const TEXT_CHARS_MAX = 32_000
const LAST_WORDS_CHARS_MAX = 300
/** Colours and other control sequences. */
// eslint-disable-next-line no-control-regex -- the pattern searches for control characters
const CONTROLS = /\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g
/** Withhold the text if it might contain a secret. */
const WITHHELD = 'withheld: it may contain secrets of the job, which cannot be decrypted here'

/**
 * Records once all available facts about a machine whose runner left no result, before the machine is ended and cannot be asked. Errors
 * become part of the diagnosis.
 */
export async function diagnose(
  { backend, store, now, maskSecrets }: DiagnosisDeps,
  { jobId, attempt }: Order,
  { handle, signal }: { handle: MachineHandle; signal: AbortSignal },
): Promise<Diagnosis | undefined> {
  const key = layout.diagnosis(jobId, attempt)
  // The control plane writes this document, so its form is trusted.
  const earlier = await readDocument(store, key, (text) => JSON.parse(text) as Diagnosis)
  if (earlier !== undefined) return earlier
  const reported = await readLastWords(store, { jobId, attempt }).catch(() => undefined)
  const page = await logsOf(backend, handle, signal)
  const text = [...(reported === undefined ? [] : [`# The start\n${reported}`]), page.text]
    .join('\n\n')
    .trim()
  if (text === '') return undefined
  const masked = async (text: string, charsMax: number): Promise<string> => {
    const clean = await maskSecrets(jobId, text).catch(() => WITHHELD)
    return clean.replace(CONTROLS, '').slice(-charsMax)
  }
  const lastWords = reported ?? page.lastWords
  const diagnosis: Diagnosis = {
    atMs: now(),
    machine: handle.id,
    text: await masked(text, TEXT_CHARS_MAX),
    lastWords: lastWords && (await masked(lastWords, LAST_WORDS_CHARS_MAX)),
  }
  await putDocumentIfAbsent(store, key, diagnosis)
  return diagnosis
}

/** The provider's output of a machine, or why it cannot be read; empty if the provider keeps none. */
async function logsOf(
  backend: Pick<Backend, 'logs'>,
  handle: MachineHandle,
  signal: AbortSignal,
): Promise<LogPage> {
  if (backend.logs === undefined) return { text: '' }
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), LIMIT_MS)
  return backend
    .logs(handle, undefined, { signal: AbortSignal.any([signal, limit.signal]) })
    .catch((error: unknown) => ({ text: `No diagnosis: ${(error as Error).message}` }))
    .finally(() => clearTimeout(timer))
}

/** The failure with the machine's last output. */
export function withLastWords(failure: Failure, diagnosis: Diagnosis | undefined): Failure {
  if (diagnosis?.lastWords === undefined || failure.message.includes(diagnosis.lastWords)) return failure
  const words = `Last output of the machine: "${diagnosis.lastWords}" (more: crucible events).`
  return { ...failure, hint: failure.hint === undefined ? words : `${failure.hint} ${words}` }
}
