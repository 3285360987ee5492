import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from '@jest/globals'

const ROOT = join(__dirname, '..', '..')

it('made the speeds in the tree, whose ranges hold models that they were not made from as often as they say', () => {
  const args = [join(ROOT, 'tools', 'gen-speeds.mjs'), '--check']
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  const [, held, all] = /^(\d+) of (\d+) models/.exec(stdout) ?? []
  expect(Number(all)).toBeGreaterThan(100)
  expect(Number(held) / Number(all)).toBeGreaterThanOrEqual(0.85)
  expect(Number(held) / Number(all)).toBeLessThanOrEqual(0.95)
})
