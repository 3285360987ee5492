import { formatDuration } from './time'

/** What takes the machine of a rehearsal's attempt back. */
export interface InterruptInput {
  jobId: string
  attempt: number
  /** From the notice to the end of the machine; null for none. */
  noticeMs: number | null
  recordSeq: number
}

/** What becomes of a machine that a rehearsal takes back; null for no notice. */
export function interruptionInWords(noticeMs: number | null): string {
  return noticeMs === null
    ? 'is taken back without notice'
    : `got notice that it ends in ${formatDuration(noticeMs)}`
}
