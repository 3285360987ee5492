import { formatDuration } from '../time/time'

/** Request that takes back the machine of a rehearsal's attempt. */
export interface InterruptInput {
  jobId: string
  attempt: number
  /** From the notice to the end of the machine; null for none. */
  noticeMs: number | null
  recordSeq: number
}

/** How the machine of a rehearsal ends; null for no notice. */
export function interruptionInWords(noticeMs: number | null): string {
  return noticeMs === null
    ? 'is taken back without notice'
    : `got notice that it ends in ${formatDuration(noticeMs)}`
}
