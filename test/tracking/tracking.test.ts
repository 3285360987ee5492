import { afterAll, beforeAll, describe, expect, jest } from '@jest/globals'
import { join } from 'node:path'
import { itWithLibraries } from '../kit/jest'
import { pythonFor } from '../kit/libraries'
import { testFolder } from '../support/folders'
import { packRunner } from '../support/runner-program'
import { CASES, prove } from './cases'
import { startMlflow, type MlflowServer } from './mlflow-server'

jest.setTimeout(300_000)

// `npm run proof -- tracking` proves all of them.
describe('a job that moves', () => {
  let server: MlflowServer | undefined
  let runner: string
  beforeAll(async () => {
    runner = join(testFolder('tracking'), 'runner.pyz')
    await packRunner(runner)
    const found = pythonFor({ check: 'import mlflow' })
    if ('python' in found) server = await startMlflow(found.python, testFolder('mlflow'))
  })
  afterAll(() => server?.stop())

  for (const name of ['mlflow-loop', 'mlflow-params', 'wandb-loop']) {
    const one = CASES.find((each) => each.name === name)!
    itWithLibraries(`keeps the runs of its trackers: ${name}`, one, async (python) =>
      expect(await prove(one, { python, runner, server })).toEqual([]),
    )
  }
})
