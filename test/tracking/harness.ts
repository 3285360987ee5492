import { join } from 'node:path'
import { withFolder } from '../kit/folder'
import { harness, type Case as ProofCase, type Report } from '../kit/harness'
import { obstacleOf } from '../kit/libraries'
import { packRunner } from '../support/runner-program'
import { CASES, prove, type Case, type Place } from './cases'
import { startMlflow } from './mlflow-server'

/** Jobs that log to experiment trackers under the real libraries: killed, they continue the same runs. */
export const TRACKING = harness({
  jobs: 1,
  options: {
    python: {
      default: 'python3',
      as: 'PATH',
      means: 'a Python with mlflow, wandb, torch, transformers, accelerate',
    },
  },
  around: ({ python }, use) =>
    withFolder('tracking', async (folder) => {
      const runner = join(folder, 'runner.pyz')
      await packRunner(runner)
      const isMlflow = obstacleOf({ check: 'import mlflow' }, python) === undefined
      const server = isMlflow ? await startMlflow(python, folder) : undefined
      try {
        return await use({ python, runner, server })
      } finally {
        await server?.stop()
      }
    }),
  draw: () => CASES.map((one) => ({ ...one, again: ['--only', one.name] })),
  live: async (one: Case & ProofCase, place: Place): Promise<Report> => {
    const obstacle = obstacleOf(one, place.python)
    if (obstacle !== undefined) return { state: `skipped: ${obstacle}`, breaches: [], story: [] }
    const wrong = await prove(one, place)
    return { state: wrong.length === 0 ? 'as it should' : 'otherwise', breaches: wrong, story: [] }
  },
})
