import { closeSync, openSync, readFileSync } from 'node:fs'
import { hasCode } from '../errors'

/** The output of one unit, in a file next to the machine's disk. */
export class Journal {
  constructor(private readonly file: string) {}

  /** Gives a descriptor to a caller that starts a process with it. */
  write<T>(use: (descriptor: number) => T): T {
    const descriptor = openSync(this.file, 'a')
    try {
      return use(descriptor)
    } finally {
      closeSync(descriptor)
    }
  }

  tail(lines: number): string[] {
    try {
      const text = readFileSync(this.file, 'utf8')
      return text.replace(/\n$/, '').split('\n').slice(-lines).filter(Boolean)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return []
      throw error
    }
  }
}
