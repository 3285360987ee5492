/** `npm run worlds -- --help`. */
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { readOptions } from '../support/options'
import { connectTo, quietWorkers } from '../support/temporal'
import { runWorld, type WorldReport } from './run'
import { summarise, tell } from './telling'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'worlds',
    about: 'Lives through seeded worlds with a scripted provider, and says what broke.',
    options: {
      from: { default: 1, min: 0, means: 'the first seed' },
      count: { default: 100, means: 'how many seeds' },
      'at-once': { default: 6, means: 'worlds at a time' },
    },
  })
  if (values === undefined) return
  const seeds = Array.from({ length: values.count }, (_, index) => values.from + index)
  await setUp()
  quietWorkers()
  const at = await connectTo()
  const reports: WorldReport[] = []
  const next = async (): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const report = await runWorld(at, seed).catch((error: Error) => crashed(seed, error))
      reports.push(report)
      tell(`seed ${seed}`, report)
    }
  }
  try {
    await Promise.all(Array.from({ length: values['at-once'] }, next))
  } finally {
    await at.close()
    await tearDown()
  }
  summarise(reports)
}

function crashed(seed: number, error: Error): WorldReport {
  return { seed, state: 'crashed', attempts: 0, breaches: [error.stack ?? error.message], story: [] }
}

void main()
