/** A refusal of Modal's control plane; `code` is the name of a gRPC status. */
export class ModalRefusal extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}
