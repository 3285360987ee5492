import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { patiently } from '../harness'
import { LocalHarness } from './harness'
import { useRealRunner } from './runners'

const realRunner = useRealRunner()

/** A Python whose modules for compiling are missing, as in some small distributions. */
const WITHOUT_COMPILER = `#!/bin/sh
case "$*" in
  *compileall*) exit 1 ;;
  *sys.executable*) echo 3.11; echo "$0" ;;
  *) exec python3 "$@" ;;
esac
`

describe('the runner program on this host', () => {
  let h: LocalHarness
  beforeEach(async () => {
    h = await LocalHarness.make(realRunner(), { slots: 3 })
  })
  afterEach(() => h.dispose())

  async function launched(): Promise<string> {
    const outcome = await h.backend.launch(await h.order(), patiently())
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    return join(h.root, 'machines', outcome.handle.id, 'runner.pyz')
  }

  it('has compiled modules next to its sources, and starts', async () => {
    const program = await launched()
    const names = execFileSync('python3', ['-m', 'zipfile', '-l', program], { encoding: 'utf8' })
    expect(names).toMatch(/crucible_runner\/runner\.py /)
    expect(names).toMatch(/crucible_runner\/runner\.pyc /)
    const help = execFileSync('python3', ['-IS', program, 'run', '--help'], { encoding: 'utf8' })
    expect(help).toContain('--store')
  })

  it('is the same for every machine, whatever a job does to its own copy', async () => {
    const first = await launched()
    const compiled = readFileSync(first)
    writeFileSync(first, 'changed by the job')
    expect(readFileSync(await launched()).equals(compiled)).toBe(true)
    expect(readdirSync(join(h.root, 'staging'))).toEqual([])
  })

  it('stays as it is if it cannot be compiled', async () => {
    const python = join(h.directory, 'python-without-compiler')
    writeFileSync(python, WITHOUT_COMPILER, { mode: 0o755 })
    h.backend = await h.reopen({ python })
    expect(readFileSync(await launched()).equals(readFileSync(realRunner()))).toBe(true)
  })
})
