import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from '@jest/globals'
import { readUserData } from '../../../../backends/ec2/launch/template'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible-boot-'))
  mkdirSync(join(folder, 'bin'))
  for (const name of ['systemd-run', 'systemctl']) {
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\necho "${name} $*" >>"$LOG"\n`)
    chmodSync(join(folder, 'bin', name), 0o755)
  }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the script of the first boot on a machine whose folder for apt is in the test's. */
function boot(): string[] {
  const script = join(folder, 'user-data')
  writeFileSync(script, readUserData().replaceAll('/etc/apt/', `${folder}/apt/`))
  const LOG = join(folder, 'log')
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    STATE_DIRECTORY: join(folder, 'state'),
    LOG,
  }
  expect(spawnSync('sh', [script], { env, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  return existsSync(LOG) ? readFileSync(LOG, 'utf8').trim().split('\n') : []
}

it('a machine lets apt-get wait for a running upgrade, and begins none under a job', () => {
  mkdirSync(join(folder, 'apt/apt.conf.d'), { recursive: true })
  expect(boot()).toContain('systemctl stop apt-daily.timer apt-daily-upgrade.timer apt-daily.service')
  expect(readFileSync(join(folder, 'apt/apt.conf.d/99crucible'), 'utf8')).toBe('DPkg::Lock::Timeout "600";\n')
})

it('a machine without apt is left as it is', () => {
  expect(boot().filter((line) => line.startsWith('systemctl'))).toEqual([])
})
