/** `npm run tracking`: kills jobs that log to MLflow and Weights & Biases, under the real libraries and a real MLflow server. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions } from '../support/options'
import { packRunner } from '../support/runner-program'
import { CASES, obstacleOf, prove } from './cases'
import { startMlflow } from './mlflow-server'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'tracking',
    about: 'Kills jobs that log to experiment trackers, and looks whether they continue the same runs.',
    options: {
      only: { default: '', as: 'NAME,...', means: 'only these programs' },
      python: {
        default: 'python3',
        as: 'PATH',
        means: 'a Python with mlflow, wandb, torch, transformers, accelerate',
      },
    },
  })
  if (values === undefined) return
  const { only, python } = values
  const say = (words: string): boolean => process.stdout.write(`${words}\n`)
  const folder = mkdtempSync(join(tmpdir(), 'crucible-tracking-'))
  const runner = join(folder, 'runner.pyz')
  await packRunner(runner)
  const isMlflow = obstacleOf({ check: 'import mlflow' }, python) === undefined
  const server = isMlflow ? await startMlflow(python, folder) : undefined
  let [right, wrongs, skipped] = [0, 0, 0]
  try {
    for (const one of CASES) {
      if (only !== '' && !only.split(',').includes(one.name)) continue
      const obstacle = obstacleOf(one, python)
      if (obstacle !== undefined) {
        skipped += 1
        say(`${one.name}: skipped: ${obstacle}`)
        continue
      }
      const wrong = await prove(one, { python, runner, server }).catch((error: unknown) => [String(error)])
      if (wrong.length === 0) right += 1
      else wrongs += 1
      say(`${one.name}: ${wrong.length === 0 ? 'as it should' : wrong.join('\n  ')}`)
    }
  } finally {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  say(`${right} right, ${wrongs} wrong, ${skipped} skipped`)
  process.exitCode = wrongs > 0 ? 1 : 0
}

void main()
