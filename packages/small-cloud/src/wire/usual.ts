/** HTTP statuses of error codes; the default is 400. */
const STATUSES: Readonly<Record<string, number>> = {
  InsufficientInstanceCapacity: 500,
  InsufficientVolumeCapacity: 500,
  InternalError: 500,
  InternalFailure: 500,
  InternalServerError: 500,
  RequestLimitExceeded: 503,
  ServiceUnavailable: 503,
  Unavailable: 503,
  UnauthorizedOperation: 403,
  AccessDenied: 403,
  OptInRequired: 403,
  PendingVerification: 403,
  Blocked: 403,
  AuthFailure: 401,
}

/** Returns the HTTP status of an error code. */
export function usualStatus(code: string): number {
  return STATUSES[code] ?? 400
}

/** Returns the default message of a world's fault. */
export function usualMessage(code: string): string {
  return `${code}, because the world says so.`
}
