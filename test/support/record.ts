import type { RecordEntryOf, RecordKind } from '../../core/job/record'

/** An entry with as much of its data as a test needs. */
export function partialEntry<Kind extends RecordKind>(
  entry: Omit<RecordEntryOf<Kind>, 'data'> & { data: unknown },
): RecordEntryOf<Kind> {
  return entry as RecordEntryOf<Kind>
}
