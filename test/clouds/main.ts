/** `npm run clouds -- [--from SEED] [--count N] [--at-once N] [--each] [--only NAME] [--story]` (docs/clouds.md). */
import { parseArgs } from 'node:util'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers } from '../support/temporal'
import { FAULT_KINDS } from './faults'
import { summarise, tell, type Outcome } from '../worlds/telling'
import { liveThrough } from './run'
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
  const reports: Outcome[] = []
  try {
    const coming = [...liveThrough(at, wanted, Number(values['at-once'])).values()]
    await Promise.all(
      coming.map(async (report) => {
        const { name, lastedMs, ...outcome } = await report
        reports.push(outcome)
        tell(`${name}, ${(lastedMs / 1_000).toFixed(1)} s`, outcome, values.story)
      }),
    )
  } finally {
    await at.close()
    await tearDown()
  }
  summarise(reports)
}

void main()
