/** `npm run clouds -- [--from SEED] [--count N] [--at-once N] [--each] [--only NAME] [--story]` (docs/clouds.md). */
import { parseArgs } from 'node:util'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers } from '../support/temporal'
import { FAULT_KINDS } from './faults'
import { liveThrough, type CloudReport } from './run'
import { lonelyFault, seededCloud, worseFaults } from './world'

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
  const worlds = values.each
    ? [...seeds.flatMap((seed) => FAULT_KINDS.map((kind) => lonelyFault(kind, seed))), ...worseFaults()]
    : seeds.map(seededCloud)
  const wanted = worlds.filter(({ name }) => name.startsWith(values.only))
  await setUp()
  quietWorkers()
  const at = await connectTo()
  const reports: CloudReport[] = []
  try {
    const coming = [...liveThrough(at, wanted, Number(values['at-once'])).values()]
    await Promise.all(
      coming.map(async (report) => {
        reports.push(await report)
        tell(await report, values.story)
      }),
    )
  } finally {
    await at.close()
    await tearDown()
  }
  summarise(reports)
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
