// A copy of the working tree with all mutants in it, so that the tree itself is never changed.
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

export class Checkout {
  constructor(instrumented) {
    this.root = mkdtempSync(join(tmpdir(), 'crucible-mutants-'))
    const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    for (const file of listed.split('\n').filter((name) => name !== '' && existsSync(join(ROOT, name)))) {
      mkdirSync(join(this.root, dirname(file)), { recursive: true })
      cpSync(join(ROOT, file), join(this.root, file))
    }
    for (const { name, content } of instrumented) writeFileSync(join(this.root, name), content)
    // Packages are shared. The cache is separate, because builds of mutants are useless elsewhere.
    mkdirSync(join(this.root, 'node_modules'))
    for (const name of readdirSync(join(ROOT, 'node_modules')).filter((name) => name !== '.cache'))
      symlinkSync(join(ROOT, 'node_modules', name), join(this.root, 'node_modules', name))
  }

  remove() {
    rmSync(this.root, { recursive: true, force: true })
  }
}
