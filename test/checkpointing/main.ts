/** `npm run checkpointing`: interrupts programs with the helpers of `crucible.checkpoint` under their real libraries. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions } from '../support/options'
import { packRunner } from '../support/runner-program'
import { CASES, obstacleOf, prove } from './cases'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'checkpointing',
    about:
      'Interrupts programs with the helpers of crucible.checkpoint, with and without notice, and compares their ends.',
    options: {
      only: { default: '', as: 'NAME,...', means: 'only these programs' },
      python: {
        default: 'python3',
        as: 'PATH,...',
        means: 'Pythons; each program takes the first that has its library',
      },
    },
  })
  if (values === undefined) return
  const say = (words: string): boolean => process.stdout.write(`${words}\n`)
  const folder = mkdtempSync(join(tmpdir(), 'crucible-checkpointing-'))
  const runner = join(folder, 'runner.pyz')
  await packRunner(runner)
  let [right, wrongs, skipped] = [0, 0, 0]
  for (const one of CASES) {
    if (values.only !== '' && !values.only.split(',').includes(one.name)) continue
    const pythons = values.python.split(',')
    const python = pythons.find((each) => obstacleOf(one, each) === undefined)
    if (python === undefined) {
      skipped += 1
      say(`${one.name}: skipped: ${obstacleOf(one, pythons[0]!)}`)
      continue
    }
    const wrong = await prove(one, { python, runner }).catch((error: unknown) => [String(error)])
    if (wrong.length === 0) right += 1
    else wrongs += 1
    say(`${one.name}: ${wrong.length === 0 ? 'as it should' : wrong.join('\n  ')}`)
  }
  rmSync(folder, { recursive: true, force: true })
  say(`${right} right, ${wrongs} wrong, ${skipped} skipped`)
  process.exitCode = wrongs > 0 ? 1 : 0
}

void main()
