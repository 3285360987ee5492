/** `npm run bench -- --help` (docs/design/benchmarks.md). */
import { withConnection } from '../kit/server'
import { onSignal } from '../kit/signals'
import { named, readOptions } from '../support/options'
import { isMissed, lineOf, type Measure } from './measure'
import { measure, PARTS, SIZES, sizesOf } from './parts'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'bench',
    about: `Measures ${Object.keys(PARTS).join(', ')} against their goals.`,
    options: {
      only: { default: '', as: 'NAME,...', means: 'only these' },
      tiny: { default: false, means: 'with the least sizes, which show only that each of them works' },
      json: { default: false, means: 'prints the figures as JSON' },
      ...SIZES,
    },
  })
  if (values === undefined) return
  const { only, tiny, json } = values
  const sizes = tiny ? sizesOf('tiny') : values
  const parts = named(
    Object.keys(PARTS).map((name) => ({ name })),
    only,
  )
  const measures: Measure[] = []
  await withConnection(async (at) => {
    for (const { name } of parts) {
      process.stderr.write(`${name} ...\n`)
      const found = await measure(name, at, { sizes })
      measures.push(...found)
      if (!json) for (const one of found) process.stdout.write(`${lineOf(one)}\n`)
    }
  })
  const missed = measures.filter(isMissed).length
  if (json) process.stdout.write(`${JSON.stringify({ measures, missed }, null, 2)}\n`)
  process.exitCode = missed === 0 ? 0 : 1
}

onSignal((exitCode) => process.exit(exitCode))
main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  // Workers of a benchmark that has failed may still be at work.
  process.exit(1)
})
