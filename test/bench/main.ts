/** `npm run bench -- [--only NAME,...] [--jobs N] [--fleet N] [--mib N] [--recoveries N] [--queue N] [--json]`. */
import { parseArgs } from 'node:util'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { checkpoint } from './checkpoint'
import { coldStart } from './cold-start'
import { fleet } from './fleet'
import { history } from './history'
import { isMissed, lineOf, type Measure } from './measure'
import { queue } from './queue'
import { recovery } from './recovery'
import { throughput } from './throughput'

interface Sizes {
  /** At once in a round of `throughput`. */
  jobs: number
  /** Running at once in `fleet`. */
  fleet: number
  /** Size of the checkpoint in `checkpoint`. */
  mib: number
  /** Of each kind in `recovery`. */
  recoveries: number
  /** Short jobs in `queue`. */
  queue: number
}

const BENCHES: Readonly<Record<string, (at: TestConnection, sizes: Sizes) => Promise<Measure[]>>> = {
  history,
  throughput: (at, { jobs }) => throughput(at, jobs),
  'cold-start': coldStart,
  fleet: (at, sizes) => fleet(at, sizes.fleet),
  checkpoint: (_, { mib }) => checkpoint(mib),
  recovery: (at, { recoveries }) => recovery(at, recoveries),
  queue: (at, sizes) => queue(at, sizes.queue),
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: Object.keys(BENCHES).join(',') },
      jobs: { type: 'string', default: '100' },
      fleet: { type: 'string', default: '2000' },
      mib: { type: 'string', default: '2048' },
      recoveries: { type: 'string', default: '10' },
      queue: { type: 'string', default: '50' },
      json: { type: 'boolean', default: false },
    },
  })
  const names = values.only.split(',').map((name) => name.trim())
  const unknown = names.filter((name) => !(name in BENCHES))
  if (unknown.length > 0)
    throw new Error(
      `There is no benchmark ${unknown.join(', ')}: choose from ${Object.keys(BENCHES).join(', ')}.`,
    )
  const sizes = {
    jobs: Number(values.jobs),
    fleet: Number(values.fleet),
    mib: Number(values.mib),
    recoveries: Number(values.recoveries),
    queue: Number(values.queue),
  }
  await setUp()
  quietWorkers()
  const at = await connectTo()
  const measures: Measure[] = []
  try {
    for (const name of names) {
      process.stderr.write(`${name} ...\n`)
      const found = await BENCHES[name]!(at, sizes)
      measures.push(...found)
      if (!values.json) for (const measure of found) process.stdout.write(`${lineOf(measure)}\n`)
    }
  } finally {
    await at.close()
    await tearDown()
  }
  const missed = measures.filter(isMissed).length
  if (values.json) process.stdout.write(`${JSON.stringify({ measures, missed }, null, 2)}\n`)
  process.exitCode = missed === 0 ? 0 : 1
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
