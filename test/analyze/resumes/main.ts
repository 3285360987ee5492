/** `npm run resumes`: kills and resumes the labelled scripts, and those with a suggested diff, under their real libraries. */
import { homedir, tmpdir } from 'node:os'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { getEnvironment, type Environment, type EnvironmentName } from '../../habits/environments'
import { parser } from '../corpus'
import { labelledCases, obstacleOf, prove, suggestedCases } from './cases'

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      seed: { type: 'string', default: '1' },
      'cuda-torch': { type: 'boolean', default: false },
      // `torch=/path/to/python` runs the scripts of an environment with another Python.
      python: { type: 'string', multiple: true, default: [] },
    },
  })
  const say = (words: string): boolean => process.stdout.write(`${words}\n`)
  const made = new Map<EnvironmentName, Environment>()
  const given = new Map(values.python.map((each) => each.split('=') as [string, string]))
  const pythonOf = (name: EnvironmentName): string => {
    if (given.has(name)) return given.get(name)!
    const home = process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible')
    const options = { home, isCudaTorchAllowed: values['cuda-torch'], say }
    if (!made.has(name)) made.set(name, getEnvironment(name, options))
    return made.get(name)!.python
  }
  const work = mkdtempSync(join(tmpdir(), 'crucible-resumes-'))
  const all = [...labelledCases(), ...suggestedCases(await parser())]
  let [right, wrongs, skipped] = [0, 0, 0]
  for (const each of all) {
    if (values.only.length > 0 && !values.only.includes(each.name)) continue
    const python = pythonOf(each.environment)
    const obstacle = obstacleOf(each, python)
    if (obstacle !== undefined) {
      skipped += 1
      say(`${each.name}: skipped: ${obstacle}`)
      continue
    }
    const { outcome, wrong } = await prove(each, { python, work, seed: Number(values.seed) }).catch(
      (error: unknown) => ({
        outcome: undefined,
        wrong: [String(error)],
      }),
    )
    const at = outcome === undefined ? '' : ` (killed at ${Math.round(outcome.killedAt * 100)} %)`
    if (wrong.length === 0) right += 1
    else wrongs += 1
    say(`${each.name}: ${wrong.length === 0 ? 'as its label says' : wrong.join('; ')}${at}`)
  }
  say(`${right} right, ${wrongs} wrong, ${skipped} skipped`)
  process.exitCode = wrongs > 0 ? 1 : 0
}

void main()
