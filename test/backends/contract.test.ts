import { expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

it('the head comment of the contract lists exactly its tests, in order', () => {
  const source = readFileSync(join(__dirname, 'contract.ts'), 'utf8')
  const end = source.indexOf('*/')
  const listed = [...source.slice(0, end).matchAll(/^ \* {4}(.+)$/gm)].map((match) => match[1])
  const tested = [...source.slice(end).matchAll(/^ +(?:it|where\('\w+'\))\(\s*'(.+)',\s+async/gm)].map(
    (match) => match[1],
  )
  expect(tested.length).toBeGreaterThan(20)
  expect(listed).toEqual(tested)
})
