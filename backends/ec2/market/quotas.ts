import type { QuotaRequest } from '../sdk/api'

/** Whether AWS still has to decide. */
export function isOpen({ status }: Pick<QuotaRequest, 'status'>): boolean {
  return ['PENDING', 'CASE_OPENED'].includes(status)
}

/** Whether AWS refused the request or closed it undecided; a granted quota may take a while to show. */
export function isRefused({ status }: Pick<QuotaRequest, 'status'>): boolean {
  return ['DENIED', 'NOT_APPROVED', 'CASE_CLOSED', 'INVALID_REQUEST'].includes(status)
}

const STATUS_WORDS: Readonly<Record<string, string>> = {
  PENDING: 'pending',
  CASE_OPENED: 'with AWS support',
  APPROVED: 'granted',
  DENIED: 'refused',
  CASE_CLOSED: 'closed by AWS support',
  NOT_APPROVED: 'refused',
  INVALID_REQUEST: 'not taken',
}

/** `8 vCPUs were requested on 2026-11-22: pending` */
export function requestInWords({ wanted, status, askedAtMs }: QuotaRequest): string {
  const day = new Date(askedAtMs).toISOString().slice(0, 10)
  return `${wanted} vCPUs were asked for on ${day}: ${STATUS_WORDS[status] ?? status}`
}
