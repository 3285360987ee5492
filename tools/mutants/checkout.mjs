// A copy of the working tree for mutants, so that the tree itself is never changed.
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT } from '../content.mjs'
import { TestProcess } from './test-process.mjs'

export class Checkout {
  constructor() {
    this.root = mkdtempSync(join(tmpdir(), 'crucible-mutants-'))
    this.process = new TestProcess(this.root)
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

  /** Runs test files with a mutant in place of its original; returns `passed`, `failed` or `late`, and the failed tests. */
  async testWith(mutant, project, tests) {
    if (mutant !== undefined) writeFileSync(join(this.root, mutant.file), mutant.text)
    try {
      return await this.process.run(project, tests)
    } finally {
      if (mutant !== undefined) writeFileSync(join(this.root, mutant.file), mutant.original)
      rmSync(join(this.root, 'node_modules', '.cache', 'crucible'), { recursive: true, force: true })
    }
  }

  remove() {
    this.process.stop()
    rmSync(this.root, { recursive: true, force: true })
  }
}
