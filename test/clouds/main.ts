/** `npm run clouds -- [--from SEED] [--count N] [--at-once N] [--each] [--story]` (docs/clouds.md). */
import { parseArgs } from 'node:util'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers } from '../support/temporal'
import { FAULT_KINDS } from './faults'
import { runCloud, type CloudReport } from './run'
import { lonelyFault, seededCloud, type CloudWorld } from './world'

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      from: { type: 'string', default: '1' },
      count: { type: 'string', default: '100' },
      'at-once': { type: 'string', default: '6' },
      each: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      story: { type: 'boolean', default: false },
    },
  })
  const first = Number(values.from)
  const seeds = Array.from({ length: Number(values.count) }, (_, index) => first + index)
  const worlds = seeds.flatMap((seed) =>
    values.each
      ? FAULT_KINDS.filter((kind) => values.only === '' || values.only === kind).map((kind) =>
          lonelyFault(kind, seed),
        )
      : [seededCloud(seed)],
  )
  await setUp()
  quietWorkers()
  const at = await connectTo()
  const reports: CloudReport[] = []
  const next = async (): Promise<void> => {
    for (let world = worlds.shift(); world !== undefined; world = worlds.shift()) {
      const report = await runCloud(at, world).catch((error: Error) => crashed(world!, error))
      reports.push(report)
      tell(report, values.story)
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

function crashed({ name, story }: CloudWorld, error: Error): CloudReport {
  return { name, state: 'crashed', attempts: 0, breaches: [error.stack ?? error.message], story, lastedMs: 0 }
}

function tell(
  { name, state, attempts, breaches, story, lastedMs }: CloudReport,
  isStoryWanted: boolean,
): void {
  const seconds = (lastedMs / 1_000).toFixed(1)
  process.stdout.write(
    `${name}: ${state}, ${attempts} attempts, ${seconds} s${breaches.length === 0 ? '' : ', BROKEN'}\n`,
  )
  if (breaches.length === 0 && !isStoryWanted) return
  for (const line of [...breaches.map((breach) => `! ${breach}`), ...story])
    process.stdout.write(`    ${line}\n`)
}

function summarise(reports: CloudReport[]): void {
  const ends = new Map<string, number>()
  for (const { state } of reports) ends.set(state, (ends.get(state) ?? 0) + 1)
  const broken = reports.filter(({ breaches }) => breaches.length > 0)
  for (const [state, count] of [...ends].sort(([, a], [, b]) => b - a))
    process.stdout.write(`${count} x ${state}\n`)
  process.stdout.write(`${reports.length} worlds, ${broken.length} broken\n`)
  process.exitCode = broken.length === 0 ? 0 : 1
}

void main()
