import { describe, expect, it } from '@jest/globals'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closeHome, homeOf } from '../../storage/home'

const onLinux = process.platform === 'linux' ? it : it.skip

describe('the folder of a home', () => {
  it('is made with those above it, closed to others, also twice', () => {
    const folder = mkdtempSync(join(tmpdir(), 'crucible-home-'))
    const home = homeOf({ CRUCIBLE_HOME: join(folder, 'a', 'b') })
    closeHome(home, process.getuid?.())
    closeHome(home, process.getuid?.())
    expect(statSync(home.directory).mode & 0o777).toBe(0o700)
    rmSync(folder, { recursive: true })
  })

  onLinux('is refused at once by a file system that takes no folders', () => {
    expect(() => closeHome(homeOf({ CRUCIBLE_HOME: '/proc/x/home' }), 0)).toThrow('ENOENT')
  })
})
