import { execFileSync } from 'node:child_process'
import { closeSync, cpSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Room enough for a run, and filled in a moment. */
const SIZE = '48m'
const BLOCKS = [1 << 20, 1 << 16, 1 << 12]
const TOP_UP_EVERY_MS = 20

/** A folder that is a disk of its own, in memory, so that it can really be full. */
export class SmallDisk {
  private constructor(readonly folder: string) {}

  /** `undefined` where this user may not mount. */
  static mount(folder: string): SmallDisk | undefined {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=700`, 'crucible-chaos', folder], {
        stdio: 'ignore',
      })
      return new SmallDisk(folder)
    } catch {
      return undefined
    }
  }

  /** Fills the disk to its last byte at once, and keeps it so, whatever others free meanwhile, until the signal. */
  async fill(signal: AbortSignal): Promise<void> {
    const ballast = join(this.folder, '.ballast')
    const file = openSync(ballast, 'w')
    try {
      while (!signal.aborted) {
        for (const size of BLOCKS) writeUntilFull(file, Buffer.alloc(size))
        await sleep(TOP_UP_EVERY_MS, undefined, { signal }).catch(() => undefined)
      }
    } finally {
      closeSync(file)
      rmSync(ballast, { force: true })
    }
  }

  /** Copies its contents into a folder next to it, for a person to read. */
  keep(): void {
    cpSync(this.folder, `${this.folder}.kept`, { recursive: true })
  }

  unmount(): void {
    execFileSync('umount', ['--lazy', this.folder], { stdio: 'ignore' })
  }
}

function writeUntilFull(file: number, block: Buffer): void {
  try {
    for (;;) {
      writeSync(file, block)
      fsyncSync(file)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
