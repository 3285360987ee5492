import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { THREATS } from './threats'
import { rowsOf, verdictOf } from './verdicts'

const ROOT = join(__dirname, '..', '..')

/** The literal beginnings of the texts in a test file, which its names are made of. */
function beginningsIn(text: string): string[] {
  const literals = [...text.matchAll(/\(\s*(?:'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`),/g)]
  return literals.map(([, ...of]) => of.find((each) => each !== undefined)!.split(/%|\$\{/)[0]!)
}

function isBeginningOf(literal: string, tests: string): boolean {
  return literal.startsWith(tests) || (literal !== '' && tests.startsWith(literal))
}

describe('docs/guides/security.md', () => {
  it('has the table of the threats that are tried', () => {
    const page = readFileSync(join(ROOT, 'docs', 'guides', 'security.md'), 'utf8')
    expect(page).toContain(rowsOf(THREATS).join('\n'))
  })

  it.each(THREATS.map(({ proof }) => proof))('names tests that exist: %j', (proof) => {
    const file = 'file' in proof ? proof.file : `test/runner/python/${proof.python}.py`
    const text = readFileSync(join(ROOT, file), 'utf8')
    expect(text).toMatch(/\bit(?:Holds)?\b|def test_/)
    const begins =
      'file' in proof ? beginningsIn(text).some((each) => isBeginningOf(each, proof.tests)) : true
    expect(begins).toBe(true)
  })
})

describe('verdictOf', () => {
  it('takes no threat for held that no test has tried', () => {
    const [passed, failed, pending] = ['passed', 'failed', 'pending'].map((status) => ({ name: 'x', status }))
    expect(verdictOf([])).toBe('missing')
    expect(verdictOf([passed!, passed!])).toBe('held')
    expect(verdictOf([passed!, failed!])).toBe('GOT THROUGH')
    expect(verdictOf([passed!, pending!])).toBe('skipped')
  })
})
