import type { Diagnosis } from '../../core/documents'
import { Gaps, readDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import { attemptsOf } from './logs'

/**
 * Returns the diagnosis of an attempt's machine; undefined if its runner left a result, or nothing is known. Throws a `StoreError` for a
 * damaged one.
 */
export async function readDiagnosis(
  store: ObjectStore,
  jobId: string,
  attempt: number,
): Promise<Diagnosis | undefined> {
  return readDocument(store, layout.diagnosis(jobId, attempt), parseDiagnosis)
}

/** Only our own activities write this document. */
function parseDiagnosis(text: string): Diagnosis {
  const diagnosis = JSON.parse(text) as Partial<Diagnosis> | null
  if (typeof diagnosis?.atMs === 'number' && typeof diagnosis.text === 'string') return diagnosis as Diagnosis
  throw new Error('it is not a diagnosis')
}

/** The output of a machine that started no runner, for a job without a log of its own: its newest attempt with a diagnosis. */
export async function readMachineOutput(
  store: ObjectStore,
  jobId: string,
): Promise<{ attempt: number; machine: string; lines: string[] } | undefined> {
  for (const attempt of (await attemptsOf(store, jobId)).reverse()) {
    const diagnosis = await new Gaps().read('', () => readDiagnosis(store, jobId, attempt))
    if (diagnosis === undefined) continue
    const lines = diagnosis.text.split('\n').filter((line) => line.trim() !== '')
    return { attempt, machine: diagnosis.machine, lines: lines.slice(-LINES_MAX) }
  }
  return undefined
}

const LINES_MAX = 10
