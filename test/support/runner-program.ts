import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { COMPILE_RUNNER } from '../../backends/local/compile-runner'

const ZIP = join(__dirname, '..', '..', 'tools', 'runner-zip.mjs')

/** Packs the runner with compiled modules, as the local backend starts it: tests start it hundreds of times. */
export function packRunner(path: string): void {
  const plain = `${path}.plain`
  execFileSync(process.execPath, [ZIP, plain])
  execFileSync('python3', ['-I', '-c', COMPILE_RUNNER, plain, path])
  rmSync(plain)
}
