/** Reports the progress of long steps. */
export interface Progress {
  /** A permanent line: a step began, ended, or was skipped. */
  note(line: string): void
  /** Progress of the current step; replaced by the next update. */
  update(line: string): void
}

/** Interval of updates without a terminal, where each one becomes a separate line. */
const PLAIN_UPDATE_EVERY_MS = 15_000

interface Output {
  isTTY?: boolean | undefined
  columns?: number | undefined
  write(text: string): unknown
}

/** Progress on a stream: one rewritten line at a terminal, occasional plain lines elsewhere. `now` is in milliseconds. */
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

/** The message for a server that ended unexpectedly and is being restarted. */
export function noteRestart(progress: Progress): (reason: string) => void {
  return (reason) => progress.note(`${reason}\nRestarting it.`)
}
