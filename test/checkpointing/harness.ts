import { join } from 'node:path'
import { withFolder } from '../kit/folder'
import { harness, type Case as ProofCase, type Report } from '../kit/harness'
import { pythonFor } from '../kit/libraries'
import { packRunner } from '../support/runner-program'
import { CASES, prove, type Case } from './cases'

/** Programs with the helpers of `crucible.checkpoint` under their real libraries: interrupted with and without notice, their ends are compared. */
export const CHECKPOINTING = harness({
  jobs: 1,
  options: {
    python: {
      default: 'python3',
      as: 'PATH,...',
      means: 'Pythons; each program takes the first that has its library',
    },
  },
  around: (_, use) =>
    withFolder('checkpointing', async (folder) => {
      const runner = join(folder, 'runner.pyz')
      await packRunner(runner)
      return use(runner)
    }),
  draw: () => CASES.map((one) => ({ ...one, again: ['--only', one.name] })),
  live: async (one: Case & ProofCase, runner: string, values: { python: string }): Promise<Report> => {
    const found = pythonFor(one, values.python.split(','))
    if ('obstacle' in found) return { state: `skipped: ${found.obstacle}`, breaches: [], story: [] }
    const wrong = await prove(one, { python: found.python, runner })
    return { state: wrong.length === 0 ? 'as it should' : 'otherwise', breaches: wrong, story: [] }
  },
})
