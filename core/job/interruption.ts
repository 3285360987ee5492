import { formatDuration } from '../time/time'

/** Request that takes back the machine of a rehearsal's attempt. */
export interface InterruptInput {
  jobId: string
  attempt: number
  /** Time from the notice to the end of the machine; null without a notice. */
  noticeMs: number | null
  recordSeq: number
}

/** Describes how the machine of a rehearsal ends; null for no notice. */
export function interruptionInWords(noticeMs: number | null): string {
  return noticeMs === null
    ? 'is taken back without notice'
    : `got notice that it ends in ${formatDuration(noticeMs)}`
}
