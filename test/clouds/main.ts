/** `npm run clouds -- --help` (docs/design/clouds.md). */
import { printOutcome, summarise } from '../kit/outcome'
import { seedOptions, seedsOf, withConnection } from '../kit/runs'
import { readOptions } from '../support/options'
import { lonelyFault, worseFaults } from './alone'
import { FAULT_KINDS } from './faults'
import { liveThrough } from './run'
import { seededCloud } from './world'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'clouds',
    about: 'Lets whole jobs live in seeded small clouds, and says what broke (docs/design/clouds.md).',
    options: {
      ...seedOptions(100),
      'at-once': { default: 6, means: 'clouds at a time' },
      each: { default: false, means: 'every kind of fault alone, and those that are worse together' },
      only: { default: '', as: 'NAME', means: 'only the clouds whose names begin so' },
      story: { default: false, means: 'the story of every cloud, not only of the broken ones' },
    },
  })
  if (values === undefined) return
  const seeds = seedsOf(values)
  const worlds = values.each
    ? [...seeds.flatMap((seed) => FAULT_KINDS.map((kind) => lonelyFault(kind, seed))), ...worseFaults()]
    : seeds.map(seededCloud)
  const wanted = worlds.filter(({ name }) => name.startsWith(values.only))
  const reports = await withConnection((at) =>
    Promise.all(
      [...liveThrough(at, wanted, values['at-once']).values()].map(async (coming) => {
        const { name, lastedMs, ...outcome } = await coming
        printOutcome(`${name}, ${(lastedMs / 1_000).toFixed(1)} s`, outcome, values.story)
        return outcome
      }),
    ),
  )
  summarise(reports)
}

void main()
