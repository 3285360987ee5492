/** Where long steps tell how far they are. */
export interface Progress {
  /** A line that stays: a step began, ended, or was passed over. */
  note(line: string): void
  /** How far the present step is; replaced by the next one. */
  update(line: string): void
}

/** Without a terminal an update becomes a line of its own, so it comes only this often. */
const PLAIN_UPDATE_EVERY_MS = 15_000

interface Output {
  isTTY?: boolean | undefined
  columns?: number | undefined
  write(text: string): unknown
}

/** Progress on a stream: one rewritten line at a terminal, now and then a plain line elsewhere. `now` is in milliseconds. */
export function progressOn(output: Output, now: () => number): Progress {
  let isLineOpen = false
  let updatedAtMs = now()
  return {
    note(line) {
      output.write(`${isLineOpen ? '\r\u001b[K' : ''}${line}\n`)
      isLineOpen = false
      updatedAtMs = now()
    },
    update(line) {
      if (output.isTTY === true) {
        output.write(`\r\u001b[K${line.slice(0, (output.columns ?? 80) - 1)}`)
        isLineOpen = true
      } else if (now() - updatedAtMs >= PLAIN_UPDATE_EVERY_MS) {
        output.write(`${line}\n`)
        updatedAtMs = now()
      }
    },
  }
}

/** What is told when a server has ended by itself and is being started again. */
export function noteRestart(progress: Progress): (reason: string) => void {
  return (reason) => progress.note(`${reason}\nStarting it again.`)
}
