/** `npm run worlds -- [--from SEED] [--count N] [--at-once N]`: lives through seeded worlds and prints what broke. */
import { parseArgs } from 'node:util'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers } from '../support/temporal'
import { runWorld, type WorldReport } from './run'
import { summarise, tell } from './telling'

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      from: { type: 'string', default: '1' },
      count: { type: 'string', default: '100' },
      'at-once': { type: 'string', default: '6' },
    },
  })
  const first = Number(values.from)
  const seeds = Array.from({ length: Number(values.count) }, (_, index) => first + index)
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
    await Promise.all(Array.from({ length: Number(values['at-once']) }, next))
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
