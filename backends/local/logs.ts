import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineHandle } from '../../core/handle'
import type { LogPage } from '../backend'
import { hasCode, invalid } from './errors'
import type { Host } from './host'
import { FILES, isMachineId } from './records'

const PAGE_BYTES = 64 * 1024
const LAST_WORDS_BYTES = 4 * 1024

/** Returns the runner's own output with its last line; the cursor is a byte offset. Empty when the machine's directory is gone. */
export async function logs(host: Host, { id }: MachineHandle, cursor: string | undefined): Promise<LogPage> {
  const offset = Number(cursor ?? '0')
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw invalid(`"${cursor}" is not a cursor of these logs`, 'Start without a cursor.')
  }
  if (!isMachineId(id)) return { text: '' }
  try {
    const file = await open(join(host.paths.machine(id), FILES.console), 'r')
    try {
      const lastWords = await lastLineOf(file)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(PAGE_BYTES), 0, PAGE_BYTES, offset)
      if (bytesRead < PAGE_BYTES) return { text: buffer.toString('utf8', 0, bytesRead), lastWords }
      // A full page ends with its last whole line, so that no character is cut in two.
      const end = buffer.lastIndexOf('\n') + 1 || bytesRead
      return { text: buffer.toString('utf8', 0, end), next: String(offset + end), lastWords }
    } finally {
      await file.close()
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { text: '' }
    throw error
  }
}

async function lastLineOf(file: FileHandle): Promise<string | undefined> {
  const { size } = await file.stat()
  const end = await file.read(
    Buffer.alloc(LAST_WORDS_BYTES),
    0,
    LAST_WORDS_BYTES,
    Math.max(0, size - LAST_WORDS_BYTES),
  )
  const lines = end.buffer.toString('utf8', 0, end.bytesRead).split('\n')
  return lines.findLast((line) => line.trim() !== '')?.trim()
}
