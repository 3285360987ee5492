import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { COMMANDS } from '../../cli/program'
import { referenceParts, type ReferencePart } from '../../cli/kit/reference'

const read = (page: string): string =>
  readFileSync(join(__dirname, '..', '..', 'docs', 'reference', page), 'utf8')

describe('the pages of the command line', () => {
  let parts: ReferencePart[]

  beforeAll(async () => {
    parts = await referenceParts()
  })

  it('have the exit codes and the help of the code', () => {
    const how = 'run `node tools/gen-cli-docs.mjs`'
    const written = parts.map(({ page, name }) => {
      const [, text] =
        new RegExp(`<!-- ${name} -->\\n\\n([^]*)\\n\\n<!-- /${name} -->`).exec(read(page)) ?? []
      return { page, name, text, how }
    })
    expect(written).toEqual(parts.map((part) => ({ ...part, how })))
  })

  it('have every command once, with each of its options in one place', () => {
    const all = parts.map(({ text }) => text).join('\n')
    for (const { name } of COMMANDS) expect(all.split(`\n## crucible ${name}\n`.slice(1))).toHaveLength(2)
    expect(all.split('--gpu-memory <size>')).toHaveLength(2)
    expect(all).toContain('--max-interruptions <count>')
  })

  it('document the JSON of every command', () => {
    const rows = [...read('cli.md').matchAll(/^\| `([\w-]+)` \| .*`/gm)].map(([, name]) => name)
    expect(rows.filter((name) => COMMANDS.some((command) => command.name === name))).toEqual(
      COMMANDS.map(({ name }) => name),
    )
  })
})
