/** HTTP statuses of error codes; 400 where nothing else is known. */
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

/** The HTTP status that a code comes with. */
export function usualStatus(code: string): number {
  return STATUSES[code] ?? 400
}

/** What a fault of the world says where the world has no words for it. */
export function usualMessage(code: string): string {
  return `${code}, because the world says so.`
}
