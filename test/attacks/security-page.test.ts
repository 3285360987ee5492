import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { THREATS } from './threats'
import { rowsOf, verdictOf } from './verdicts'

const ROOT = join(__dirname, '..', '..')

describe('docs/guides/security.md', () => {
  it('has the table of the threats that are tried', () => {
    const page = readFileSync(join(ROOT, 'docs', 'guides', 'security.md'), 'utf8')
    expect(page).toContain(rowsOf(THREATS).join('\n'))
  })

  it.each(
    THREATS.map(({ proof }) => ('file' in proof ? proof.file : `test/runner/python/${proof.python}.py`)),
  )('names tests that are there: %s', (file) => {
    expect(readFileSync(join(ROOT, file), 'utf8')).toMatch(/\bit(?:Holds)?\b|def test_/)
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
