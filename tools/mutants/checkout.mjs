// A copy of the working tree for mutants, so that the tree itself is never changed.
import { execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { ROOT } from '../content.mjs'

/** Time limit of one test run: a mutant can make a loop endless. */
const RUN_MAX_MS = 15 * 60_000

export class Checkout {
  constructor() {
    this.root = mkdtempSync(join(tmpdir(), 'crucible-mutants-'))
    const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    for (const file of listed.split('\n').filter((name) => name !== '' && existsSync(join(ROOT, name)))) {
      mkdirSync(join(this.root, dirname(file)), { recursive: true })
      cpSync(join(ROOT, file), join(this.root, file))
    }
    // Packages are shared. The cache is separate, because each mutant leaves a bundle of its workflows there.
    mkdirSync(join(this.root, 'node_modules'))
    for (const name of readdirSync(join(ROOT, 'node_modules')).filter((name) => name !== '.cache'))
      symlinkSync(join(ROOT, 'node_modules', name), join(this.root, 'node_modules', name))
  }

  /** Runs test files with a mutant in place of its original; returns `passed`, `failed` or `late`, and the output. */
  async testWith(mutant, project, tests) {
    if (mutant !== undefined) writeFileSync(join(this.root, mutant.file), mutant.text)
    try {
      return await this.test(project, tests)
    } finally {
      if (mutant !== undefined)
        writeFileSync(join(this.root, mutant.file), readFileSync(join(ROOT, mutant.file)))
      rmSync(join(this.root, 'node_modules', '.cache', 'crucible'), { recursive: true, force: true })
    }
  }

  test(project, tests) {
    const jest = join(this.root, 'node_modules', 'jest', 'bin', 'jest.js')
    const sequencer = join(this.root, 'tools', 'mutants', 'sequencer.js')
    const args = [
      ...[jest, '--selectProjects', project, '--runInBand', '--bail', '--testSequencer', sequencer],
      ...['--runTestsByPath', ...tests],
    ]
    const child = spawn(process.execPath, args, {
      ...{ cwd: this.root, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
      env: { ...process.env, FORCE_COLOR: '0' },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output = (output + text).slice(-100_000)))
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        process.kill(-child.pid, 'SIGKILL')
      }, RUN_MAX_MS)
      child.on('error', reject)
      child.on('close', (code) => {
        clearTimeout(timer)
        resolve({ verdict: isLate ? 'late' : code === 0 ? 'passed' : 'failed', output })
      })
    })
  }

  remove() {
    rmSync(this.root, { recursive: true, force: true })
  }
}
