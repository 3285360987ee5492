import { beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { PythonParser } from '../../../intake/analyze/analyze'
import { testFolder } from '../../support/folders'
import { parser } from '../corpus'
import { obstacleOf, prove, suggestedCases, type Case } from './cases'

jest.setTimeout(300_000)

/** `npm run resumes` proves all of them, and the labels of scripts as they are. */
const PROVED = [
  { name: 'torch-epochs', check: 'import torch' },
  { name: 'sklearn-batches', check: 'import sklearn.linear_model' },
]
const PYTHONS = [process.env['CRUCIBLE_TUTORIALS_PYTHON'], 'python3', '/usr/bin/python3'].filter(
  (python) => python !== undefined,
)

describe('a script with the suggested change', () => {
  let python: PythonParser
  const caseOf = (name: string): Case => suggestedCases(python).find((each) => each.name === name)!
  beforeAll(async () => {
    python = await parser()
  })

  it.each(PROVED)('checks for what it uses ($name)', ({ name, check }) => {
    expect(caseOf(name).check).toBe(check)
  })

  for (const { name, check } of PROVED) {
    const obstacles = PYTHONS.map((each) => ({ python: each, why: obstacleOf({ check }, each) }))
    const usable = obstacles.find(({ why }) => why === undefined)
    const title = `resumes with the same weights after a kill: ${name}`
    ;(usable === undefined ? it.skip : it)(
      usable === undefined ? `${title} (skipped: ${obstacles[0]!.why})` : title,
      async () => {
        const work = testFolder('resumes')
        const { outcome, wrong } = await prove(caseOf(name), { python: usable!.python, work, seed: 3 })
        expect(wrong).toEqual([])
        expect(outcome.killedAt).toBeLessThan(1)
      },
    )
  }
})
