import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from '@jest/globals'
import { startDevCloud } from '../../../cli/dev/cloud'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'crucible-dev-cloud-'))
})
afterEach(() => rmSync(home, { recursive: true }))

it('a small cloud with an invalid world does not start, and leaves no folder of machines', async () => {
  const link = join(home, 'machines')
  const environment = { ...process.env }
  const started = startDevCloud({
    world: { regions: { 'us-east-1': { zones: [] } }, nothing: 1 } as never,
    storeDirectory: join(home, 'store'),
    machines: { link },
    server: {} as never,
  })
  await expect(started).rejects.toMatchObject({ kind: 'usage', hint: expect.stringContaining('README') })
  expect(existsSync(readlinkSync(link))).toBe(false)
  expect(readdirSync(home)).toEqual(['machines'])
  expect(process.env).toEqual(environment)
})
