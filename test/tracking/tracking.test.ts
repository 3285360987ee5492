import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { join } from 'node:path'
import { testFolder } from '../support/folders'
import { packRunner } from '../support/runner-program'
import { CASES, obstacleOf, prove } from './cases'
import { startMlflow, type MlflowServer } from './mlflow-server'

jest.setTimeout(300_000)

const PYTHONS = [process.env['CRUCIBLE_TUTORIALS_PYTHON'], 'python3', '/usr/bin/python3'].filter(
  (python) => python !== undefined,
)
const why = (check: string): string | undefined => {
  const obstacles = PYTHONS.map((python) => obstacleOf({ check }, python))
  return obstacles.includes(undefined) ? undefined : obstacles[0]
}
const pythonWith = (check: string): string =>
  PYTHONS.find((python) => obstacleOf({ check }, python) === undefined)!

// `npm run tracking` proves all of them.
describe('a job that moves', () => {
  let server: MlflowServer | undefined
  const runner = join(testFolder('tracking'), 'runner.pyz')
  beforeAll(async () => {
    await packRunner(runner)
    if (why('import mlflow') === undefined)
      server = await startMlflow(pythonWith('import mlflow'), testFolder('mlflow'))
  })
  afterAll(() => server?.stop())

  for (const name of ['mlflow-loop', 'mlflow-params', 'wandb-loop']) {
    const one = CASES.find((each) => each.name === name)!
    const obstacle = why(one.check)
    const title = `keeps the runs of its trackers: ${name}`
    ;(obstacle === undefined ? it : it.skip)(
      obstacle === undefined ? title : `${title} (skipped: ${obstacle})`,
      async () => {
        expect(await prove(one, { python: pythonWith(one.check), runner, server })).toEqual([])
      },
    )
  }
})
