/** `npm run worlds -- --help`. */
import { printOutcome, summarise } from '../kit/outcome'
import { inLanes, seedOptions, seedsOf, withConnection } from '../kit/runs'
import { readOptions } from '../support/options'
import { runWorld, type WorldReport } from './run'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'worlds',
    about: 'Lives through seeded worlds with a scripted provider, and says what broke.',
    options: {
      ...seedOptions(100),
      'at-once': { default: 6, means: 'worlds at a time' },
    },
  })
  if (values === undefined) return
  const reports = await withConnection((at) =>
    inLanes(seedsOf(values), { atOnce: values['at-once'] }, async (seed) => {
      const report = await runWorld(at, seed).catch((error: Error) => crashed(seed, error))
      printOutcome(`seed ${seed}`, report)
      return report
    }),
  )
  summarise(reports)
}

function crashed(seed: number, error: Error): WorldReport {
  return { seed, state: 'crashed', attempts: 0, breaches: [error.stack ?? error.message], story: [] }
}

void main()
