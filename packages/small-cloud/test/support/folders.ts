import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from '@jest/globals'

const folders: string[] = []

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A new folder, gone after the last test of the file. */
export function testFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `small-cloud-${name}-`))
  folders.push(folder)
  return folder
}
