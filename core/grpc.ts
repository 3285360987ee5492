/** Codes of answers of the Temporal server, from https://grpc.github.io/grpc/core/md_doc_statuscodes.html. */
export const GRPC = {
  cancelled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  failedPrecondition: 9,
  unavailable: 14,
  unauthenticated: 16,
} as const
