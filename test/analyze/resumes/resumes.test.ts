import { beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { PythonParser } from '../../../packages/analyzer/src/analyze'
import { itWithLibraries } from '../../kit/jest'
import { testFolder } from '../../support/folders'
import { parser } from '../corpus'
import { prove, suggestedCases, type Case } from './cases'

jest.setTimeout(300_000)

/** `npm run proof -- resumes` proves all of them, and the labels of scripts as they are. */
const PROVED = [
  { name: 'torch-epochs', check: 'import torch' },
  { name: 'sklearn-batches', check: 'import sklearn.linear_model' },
]

describe('a script with the suggested change', () => {
  let python: PythonParser
  const caseOf = (name: string): Case => suggestedCases(python).find((each) => each.name === name)!
  beforeAll(async () => {
    python = await parser()
  })

  it.each(PROVED)('checks for what it uses ($name)', ({ name, check }) => {
    expect(caseOf(name).check).toBe(check)
  })

  for (const one of PROVED)
    itWithLibraries(`resumes with the same weights after a kill: ${one.name}`, one, async (path) => {
      const work = testFolder('resumes')
      const { outcome, wrong } = await prove(caseOf(one.name), { python: path, work, seed: 3 })
      expect(wrong).toEqual([])
      expect(outcome.killedAt).toBeLessThan(1)
    })
})
