import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from '@jest/globals'

const ROOT = join(__dirname, '..', '..')
const LEFT_OUT = JSON.parse(readFileSync(join(ROOT, 'tools/only-in-all.json'), 'utf8')) as Record<
  string,
  string[]
>

it.each(Object.entries(LEFT_OUT))('tests that npm test runs keep the promises of %s', (file, keepers) => {
  expect(existsSync(join(ROOT, file))).toBe(true)
  expect(keepers).not.toEqual([])
  for (const keeper of keepers) {
    const [path, title] = keeper.split(/: (.*)/, 2) as [string, string]
    expect(LEFT_OUT[path]).toBeUndefined()
    const lines = readFileSync(join(ROOT, path), 'utf8').split('\n')
    const at = lines.findIndex((line) => line.includes(title))
    expect([keeper, at]).not.toEqual([keeper, -1])
    expect(lines.slice(Math.max(0, at - 1), at + 1).join('\n')).not.toMatch(/InAll/)
  }
})
