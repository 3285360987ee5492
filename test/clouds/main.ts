/** `npm run clouds -- --help` (docs/design/clouds.md). */
import { printOutcome, summarise } from '../kit/outcome'
import { seedOptions, seedsOf, withConnection } from '../kit/runs'
import { readOptions } from '../support/options'
import { lonelyFault, worseFaults } from './alone'
import { kindsOf } from './faults'
import type { CloudProvider } from './provider'
import { PROVIDER_NAMES, providersNamed } from './providers'
import { EC2 } from './providers/ec2'
import { liveThrough } from './run'
import { seededCloud, type CloudWorld } from './world'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'clouds',
    about: 'Lets whole jobs live in seeded small clouds, and says what broke (docs/design/clouds.md).',
    options: {
      ...seedOptions(100),
      provider: {
        default: 'all',
        as: 'NAME',
        means: `${PROVIDER_NAMES.join(', ')}, or all: the seeds take turns`,
      },
      'at-once': { default: 6, means: 'clouds at a time' },
      each: { default: false, means: 'every kind of fault alone, and those that are worse together' },
      only: { default: '', as: 'NAME', means: 'only the clouds whose names begin so' },
      story: { default: false, means: 'the story of every cloud, not only of the broken ones' },
    },
  })
  if (values === undefined) return
  const seeds = seedsOf(values)
  const providers = providersNamed(values.provider)
  const worlds = values.each
    ? [
        ...seeds.flatMap((seed) => providers.flatMap((provider) => allAlone(provider, seed))),
        ...(providers.includes(EC2) ? worseFaults() : []),
      ]
    : seeds.map((seed) => seededCloud(seed, providers[seed % providers.length]!))
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

function allAlone(provider: CloudProvider, seed: number): CloudWorld[] {
  return kindsOf(provider.faults).map((kind) => lonelyFault(kind, seed, provider))
}

void main()
