/** `npm run proof -- NAME`; `npm run proof` alone lists the names. */
import { CALLED_WRONGLY } from '../support/options'
import { HARNESSES } from './names'
import { prove } from '../kit/proof'

// Started with `node -e`, which leaves no path of a program.
const [name, ...args] = process.argv.slice(1)

function list(): string {
  const width = Math.max(...Object.keys(HARNESSES).map((each) => each.length))
  const lines = Object.entries(HARNESSES).map(([each, { about }]) => `  ${each.padEnd(width)}  ${about}`)
  return ['npm run proof -- NAME [options]; --help lists the options of a name', '', ...lines, ''].join('\n')
}

async function main(): Promise<void> {
  if (name === undefined || name === '--help') return void process.stdout.write(list())
  const found = HARNESSES[name]
  if (found !== undefined) return prove({ name, about: found.about }, found.load(), args)
  process.stderr.write(`Nothing is named ${name}.\n\n${list()}`)
  process.exitCode = CALLED_WRONGLY
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
