/** The machine is off, or went off during the request. */
export class MachineDead extends Error {
  constructor(id: string) {
    super(`machine ${id} is off`)
    this.name = 'MachineDead'
  }
}

/** A program of the machine was called incorrectly: it ends with an exit code and a message on stderr. */
export class ProgramError extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message)
    this.name = 'ProgramError'
  }
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes(String((error as NodeJS.ErrnoException | undefined)?.code))
}
