import { execFileSync } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { COMPILE_RUNNER } from '../../backends/local/compile-runner'
import { cachedBuild } from './cached-build'

/** Another Python ignores the modules that this one compiled, and is slower. */
const SOURCES = [
  'runner',
  'bindings/python/crucible/src/crucible/checkpoint',
  'tools/runner-zip.mjs',
  'backends/local/compile-runner.ts',
]
const ZIP = join(__dirname, '..', '..', 'tools', 'runner-zip.mjs')

/** Packs the runner with compiled modules, as the local backend starts it: tests start it hundreds of times. */
export async function packRunner(path: string): Promise<void> {
  copyFileSync(await cachedBuild({ name: 'runner.pyz', sources: SOURCES, build }), path)
}

function build(path: string): void {
  const plain = `${path}.plain`
  execFileSync(process.execPath, [ZIP, plain])
  execFileSync('python3', ['-IS', '-c', COMPILE_RUNNER, plain, path])
  rmSync(plain)
}
