import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  checkDataFileVersion,
  lockDataFile,
  recordDataFileVersion,
} from '../../../../cli/dev/temporal/data-file'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible-data-'))
  path = join(folder, 'temporal.db')
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('lockDataFile', () => {
  it('makes the folder, and says what to do where it cannot', async () => {
    const nested = join(folder, 'not yet', 'there', 'temporal.db')
    ;(await lockDataFile(nested)).release()
    writeFileSync(path, 'a file, no folder')
    await expect(lockDataFile(join(path, 'temporal.db'))).rejects.toMatchObject({
      code: 'data-file',
      message: expect.stringMatching(/cannot keep its data in .*ENOTDIR.*CRUCIBLE_HOME/),
    })
  })
})

const current = { version: '1.9.1', serverVersion: '1.32.0' }

describe('checkDataFileVersion', () => {
  it.each([
    ['1.32.0', true],
    ['1.32.5', true],
    ['1.31.2', false],
    ['1.33.0', false],
    ['2.32.0', false],
  ])('a file of server %s may be used by 1.32.0: %s', (serverVersion, isUsable) => {
    writeFileSync(path, '')
    recordDataFileVersion(path, { version: '7.7.7', serverVersion })
    const check = expect(() => checkDataFileVersion(path, current))
    if (isUsable) check.not.toThrow()
    else
      check.toThrow(expect.objectContaining({ code: 'data-file', message: expect.stringContaining('7.7.7') }))
  })

  it('accepts a missing file and a file without a version', () => {
    recordDataFileVersion(path, { version: '1', serverVersion: '1.1.1' })
    expect(() => checkDataFileVersion(path, current)).not.toThrow()
    writeFileSync(path, '')
    writeFileSync(`${path}.version.json`, '')
    expect(() => checkDataFileVersion(path, current)).not.toThrow()
  })
})
