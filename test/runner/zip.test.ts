import { describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(__dirname, '..', '..')

describe('the runner program', () => {
  it('is the same bytes wherever and whenever it is packed, without tests and caches', () => {
    const folder = mkdtempSync(join(tmpdir(), 'crucible-zip-'))
    try {
      const here = join(folder, 'here.pyz')
      execFileSync(process.execPath, [join(ROOT, 'tools/runner-zip.mjs'), here])
      const copy = join(folder, 'elsewhere')
      for (const part of ['runner', 'bindings/python/crucible/src/crucible/checkpoint'])
        cpSync(join(ROOT, part), join(copy, part), { recursive: true })
      cpSync(join(ROOT, 'tools/runner-zip.mjs'), join(copy, 'tools/runner-zip.mjs'))
      symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
      writeFileSync(join(copy, 'runner/crucible_runner/cli.pyc'), 'a cache')
      utimesSync(join(copy, 'runner/__main__.py'), 1, 1)
      const there = join(folder, 'there.pyz')
      execFileSync(process.execPath, [join(copy, 'tools/runner-zip.mjs'), there], {
        env: { ...process.env, TZ: 'Pacific/Auckland' },
      })
      expect(readFileSync(there).equals(readFileSync(here))).toBe(true)
      const names = execFileSync('python3', ['-m', 'zipfile', '-l', here]).toString()
      expect(names).toContain('helpers/crucible_job.py')
      expect(names).toContain('helpers/crucible/checkpoint/pytorch.py')
      expect(names).not.toContain('_crucible_job.py')
      expect(names).not.toMatch(/pyc|test/)
      expect(execFileSync(here, ['run', '--help']).toString()).toContain('--notice-kill')
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
