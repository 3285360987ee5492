/** What a run leaves in the store, fabricated, for the tests of those who judge runs by it. */
import type { LogLine } from '../../core/documents'
import type { RecordEntry, RecordKind } from '../../core/job/record'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'

interface FabricatedLog {
  jobId: string
  attempt: number
  /** The number of the first line. */
  from: number
  lines: readonly Partial<LogLine>[]
}

/** Puts one file of an attempt's log, as a runner uploads it. */
export async function putLog(
  store: ObjectStore,
  { jobId, attempt, from, lines }: FabricatedLog,
): Promise<void> {
  const digits = (n: number): string => String(n).padStart(12, '0')
  const numbered = lines.map((line, index) => ({ n: from + index, t: 1, s: 'out', m: 'line', ...line }))
  const key = `${layout.logs(jobId, attempt)}${digits(from)}-${digits(numbered.at(-1)!.n)}.ndjson`
  await store.put(key, numbered.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

/** The steps by which every attempt is explained. */
const EXPLAINING: readonly RecordKind[] = ['planned', 'settled', 'decided']

/** The key of the entry that explains one step of an attempt. */
export function recordOf(jobId: string, attempt: number, kind: RecordKind): string {
  return layout.record(jobId, attempt * 10 + EXPLAINING.indexOf(kind))
}

/** Entries that explain attempts, with no more in them than that. */
export function explanations(attempts: readonly number[]): RecordEntry[] {
  return attempts.flatMap((attempt) =>
    EXPLAINING.map(
      (kind, index) =>
        ({
          seq: attempt * 10 + index,
          kind,
          attempt,
          atMs: 0,
          summary: '',
          data: {},
        }) as unknown as RecordEntry,
    ),
  )
}

export async function putExplanations(
  store: ObjectStore,
  jobId: string,
  attempts: readonly number[],
): Promise<void> {
  for (const entry of explanations(attempts))
    await store.put(recordOf(jobId, entry.attempt!, entry.kind), JSON.stringify(entry))
}
