/** `npm run clouds -- --help` (docs/design/clouds.md). */
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { readOptions } from '../support/options'
import { connectTo, quietWorkers } from '../support/temporal'
import { lonelyFault, worseFaults } from './alone'
import { FAULT_KINDS } from './faults'
import { summarise, tell, type Outcome } from '../worlds/telling'
import { liveThrough } from './run'
import { seededCloud } from './world'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'clouds',
    about: 'Lets whole jobs live in seeded small clouds, and says what broke (docs/design/clouds.md).',
    options: {
      from: { default: 1, min: 0, means: 'the first seed' },
      count: { default: 100, means: 'how many seeds' },
      'at-once': { default: 6, means: 'clouds at a time' },
      each: { default: false, means: 'every kind of fault by itself, and those that are worse together' },
      only: { default: '', as: 'NAME', means: 'only the clouds whose names begin so' },
      story: { default: false, means: 'the story of every cloud, not only of the broken ones' },
    },
  })
  if (values === undefined) return
  const seeds = Array.from({ length: values.count }, (_, index) => values.from + index)
  const worlds = values.each
    ? [...seeds.flatMap((seed) => FAULT_KINDS.map((kind) => lonelyFault(kind, seed))), ...worseFaults()]
    : seeds.map(seededCloud)
  const wanted = worlds.filter(({ name }) => name.startsWith(values.only))
  await setUp()
  quietWorkers()
  const at = await connectTo()
  const reports: Outcome[] = []
  try {
    const coming = [...liveThrough(at, wanted, values['at-once']).values()]
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
