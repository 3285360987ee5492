import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { hasOpenBracket, parseGlob } from '../../core/glob'

interface Case {
  glob: string
  /** Paths that match in a checkpoint directory and under `outputs`. */
  both: string[]
  /** Paths that match only in a checkpoint directory. */
  checkpoint?: string[]
  none?: string[]
}

/** The runner's tests read the same cases (test/runner/python/test_globs.py). */
const { cases, malformed, unclosed } = JSON.parse(
  readFileSync(join(__dirname, '..', 'runner', 'globs.json'), 'utf8'),
) as {
  cases: Case[]
  malformed: { glob: string; message: string }[]
  unclosed: Case[]
}

function matching(glob: string, paths: readonly string[], isHiddenMatched: boolean): string[] {
  const read = parseGlob(glob, { isHiddenMatched })
  if ('message' in read) throw new Error(read.message)
  return paths.filter((path) => read.matches(path))
}

describe('a glob', () => {
  it.each([...cases, ...unclosed])(
    'matches what the shared cases say: $glob',
    ({ glob, both, checkpoint = [], none = [] }) => {
      const paths = [...both, ...checkpoint, ...none]
      expect(matching(glob, paths, true)).toEqual([...both, ...checkpoint])
      expect(matching(glob, paths, false)).toEqual(both)
    },
  )

  it.each(malformed)('is refused with the reason: $glob', ({ glob, message }) => {
    expect(parseGlob(glob)).toEqual({ message })
  })

  it('with an open bracket is known', () => {
    expect(unclosed.filter(({ glob }) => !hasOpenBracket(glob))).toEqual([])
    expect(cases.filter(({ glob }) => hasOpenBracket(glob))).toEqual([])
  })

  it('takes no time that explodes', () => {
    const began = performance.now()
    const globs = [
      `${'*a'.repeat(120)}b`,
      `${'a*'.repeat(120)}b`,
      `${'**/'.repeat(100)}b`,
      `${'**a'.repeat(8)}b`,
    ]
    for (const glob of globs)
      expect(matching(glob, ['a'.repeat(255), Array(250).fill('a').join('/')], true)).toEqual([])
    expect(performance.now() - began).toBeLessThan(5_000)
  })
})
