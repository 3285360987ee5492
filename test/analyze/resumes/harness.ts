import { homedir } from 'node:os'
import { join } from 'node:path'
import { getEnvironment, type EnvironmentName } from '../../habits/environments'
import { withFolder } from '../../kit/folder'
import { harness, type Case as ProofCase, type Drawn, type Report } from '../../kit/harness'
import { obstacleOf } from '../../kit/libraries'
import { parser } from '../corpus'
import { labelledCases, prove, suggestedCases, type Case } from './cases'

const OPTIONS = {
  moment: { default: 1, min: 0, means: 'decides when the scripts are killed' },
  'cuda-torch': { default: false, means: 'may download PyTorch with CUDA, some 5 GB' },
  python: {
    default: '',
    as: 'NAME=PATH,...',
    means: 'runs the scripts of an environment (torch, plain) with another Python',
  },
}

/** The labelled scripts, and those with a suggested change: each is killed and resumed, and ends as its label says. */
export const RESUMES = harness({
  jobs: 1,
  options: OPTIONS,
  around: (_, use) => withFolder('resumes', use),
  draw: async () =>
    [...labelledCases(), ...suggestedCases(await parser())].map((one) => ({
      ...one,
      again: ['--only', one.name],
    })),
  live: async (one: Case & ProofCase, work: string, values: Drawn<typeof OPTIONS>): Promise<Report> => {
    const python = pythonOf(one.environment, values)
    const obstacle = obstacleOf(one, python)
    if (obstacle !== undefined) return { state: `skipped: ${obstacle}`, breaches: [], story: [] }
    const { outcome, wrong } = await prove(one, { python, work, seed: values.moment })
    const killed = `killed at ${Math.round(outcome.killedAt * 100)} %`
    return { state: wrong.length === 0 ? 'as its label says' : 'otherwise', breaches: wrong, story: [killed] }
  },
})

function pythonOf(
  name: EnvironmentName,
  { python, 'cuda-torch': isCudaTorchAllowed }: Drawn<typeof OPTIONS>,
): string {
  const given = python.split(',').find((each) => each.startsWith(`${name}=`))
  if (given !== undefined) return given.slice(name.length + 1)
  const home = process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible')
  const say = (words: string): boolean => process.stdout.write(`${words}\n`)
  return getEnvironment(name, { home, isCudaTorchAllowed, say }).python
}
