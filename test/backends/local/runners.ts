import { afterAll, beforeAll } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A few lines of Python that do the least that a runner does for its machine. */
export const STAND_IN = join(__dirname, 'stand-in-runner.py')

const ZIP = join(__dirname, '..', '..', '..', 'tools', 'runner-zip.mjs')

/** Packs the real runner for the tests of a file, and answers where it will lie. */
export function useRealRunner(): () => string {
  let folder: string
  const path = (): string => join(folder, 'crucible-runner.pyz')
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'crucible-packed-'))
    execFileSync(process.execPath, [ZIP, path()])
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return path
}
