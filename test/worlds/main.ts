/** `npm run worlds -- [--from SEED] [--count N] [--at-once N]`: lives through seeded worlds and prints what broke. */
import { parseArgs } from 'node:util'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers } from '../support/temporal'
import { runWorld, type WorldReport } from './run'

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
      tell(report)
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

function tell({ seed, state, attempts, breaches, story }: WorldReport): void {
  process.stdout.write(
    `seed ${seed}: ${state}, ${attempts} attempts${breaches.length === 0 ? '' : ', BROKEN'}\n`,
  )
  if (breaches.length === 0) return
  for (const line of [...breaches.map((breach) => `! ${breach}`), ...story])
    process.stdout.write(`    ${line}\n`)
}

function summarise(reports: WorldReport[]): void {
  const ends = new Map<string, number>()
  for (const { state } of reports) ends.set(state, (ends.get(state) ?? 0) + 1)
  const broken = reports.filter(({ breaches }) => breaches.length > 0)
  for (const [state, count] of [...ends].sort(([, a], [, b]) => b - a))
    process.stdout.write(`${count} x ${state}\n`)
  process.stdout.write(`${reports.length} worlds, ${broken.length} broken\n`)
  process.exitCode = broken.length === 0 ? 0 : 1
}

void main()
