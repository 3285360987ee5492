/** The exit codes of a program that a signal has ended. */
const ENDED = { SIGINT: 130, SIGTERM: 143 } as const

/** Ends a program that is interrupted or asked to end; Temporal's runtime, which listens too, only stops its workers. */
export function onSignal(end: (exitCode: number) => void): void {
  for (const [name, code] of Object.entries(ENDED)) process.once(name, () => end(code))
}
