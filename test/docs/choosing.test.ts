import { readFileSync } from 'node:fs'
import { expect, it } from '@jest/globals'
import { CHOOSING_PAGE, choosingPage } from './choosing/page'

it('docs/guides/choosing-a-backend.md is what the price lists and the planner give: npm run choosing', async () => {
  const text = await choosingPage()
  expect(text).not.toMatch(/undefined|NaN/)
  expect(readFileSync(CHOOSING_PAGE, 'utf8')).toBe(text)
})
