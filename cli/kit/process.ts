import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { EXIT_CODES } from '../../client/errors'
import { wordsOfFileError } from '../../core/file-error'
import { SECOND_MS } from '../../core/time/time'
import type { Outside } from '../cli'
import type { CliConfig } from './config'

/** The outside of a command line that has this process to itself. */
export function outsideOfProcess(config: CliConfig): Outside {
  return {
    config,
    stdout: process.stdout,
    stderr: process.stderr,
    signals: process,
    exit: (code) => process.exit(code),
    ask: process.stdin.isTTY && process.stderr.isTTY ? askTerminal : undefined,
    now: Date.now,
  }
}

/** Returns an empty text when a signal aborts it. */
async function askTerminal(question: string, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  // While it reads, Ctrl-C arrives here and not at the process.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    return await lines.question(question, { signal })
  } catch {
    return ''
  } finally {
    lines.close()
  }
}

/**
 * Flushes the output and ends the process: a worker's runtime that was installed but not used would keep it alive. An answer that could not
 * be written is a failure, which may show only in the last write.
 */
export function endWith(exitCode: number): void {
  process.stdout.write('', (error) => {
    if (error != null) return endOf(process.stdout, error)
    process.stderr.write('', () => void endOnceRead(exitCode))
  })
}

/** Requests to a disk end within this time, unless its file server is away. */
const READ_LIMIT_MS = SECOND_MS
const LOOK_MS = 20

/**
 * A process cannot exit while a thread of its own waits for a file server that is away. It becomes another program that exits, or kills
 * itself where Node cannot do that (before 22.15).
 */
async function endOnceRead(exitCode: number): Promise<void> {
  const isReading = (): boolean => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))
  const endMs = performance.now() + READ_LIMIT_MS
  while (isReading() && performance.now() < endMs) await sleep(LOOK_MS)
  if (!isReading()) process.exit(exitCode)
  const { execve } = process as { execve?: (file: string, args: string[], env: object) => void }
  execve?.('/bin/sh', ['sh', '-c', `exit ${exitCode}`], {})
  process.kill(process.pid, 'SIGKILL')
}

export function endOnBrokenOutput(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => endOf(stream, error))
}

/** Ends the process because a stream takes no more. */
function endOf(stream: NodeJS.WriteStream, error: NodeJS.ErrnoException): void {
  // The reader may stop early (`crucible logs | head`).
  if (error.code === 'EPIPE') process.exit(0)
  if (stream === process.stdout)
    process.stderr.write(`error: The output cannot be written: ${wordsOfFileError(error)}.\n`)
  process.exit(EXIT_CODES.failed)
}
