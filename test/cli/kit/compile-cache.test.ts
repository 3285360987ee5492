import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { testFolder } from '../../support/folders'
import { build } from '../process'

const DIST = join(__dirname, '..', '..', '..', 'dist')

describe('compiled code that Node keeps for the next start', () => {
  beforeAll(build, 120_000)

  it.each(['cli/main.js', 'cli/truffle/main.js'])('is in a folder of the user of %s', (program) => {
    const folder = testFolder('compile-cache')
    const home = join(folder, 'home')
    mkdirSync(home)
    const asked = join(folder, 'asked')
    const spy = join(folder, 'spy.cjs')
    // Takes the place of the function of Node 22.8 and later, so that the test is the same on each version.
    writeFileSync(
      spy,
      `require('node:module').enableCompileCache = (at) => require('node:fs').writeFileSync(${JSON.stringify(asked)}, String(at))`,
    )
    execFileSync(process.execPath, ['-r', spy, join(DIST, program), '--version'], {
      env: { HOME: home, TMPDIR: folder, PATH: process.env['PATH'] },
    })
    expect(readFileSync(asked, 'utf8').startsWith(`${home}/`)).toBe(true)
  })
})
