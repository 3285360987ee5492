import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { COMMANDS } from '../../cli/program'
import { referenceParts } from '../../cli/reference'

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'cli.md'), 'utf8')

describe('docs/cli.md', () => {
  it.each(['exit-codes', 'commands'] as const)('has the %s of the code', async (name) => {
    const [, text] = new RegExp(`<!-- ${name} -->\\n\\n([^]*)\\n\\n<!-- /${name} -->`).exec(page) ?? []
    const how = 'run `node tools/gen-cli-docs.mjs`'
    expect({ text, how }).toEqual({ text: (await referenceParts())[name], how })
  })

  it('tells the JSON of every command', () => {
    const rows = [...page.matchAll(/^\| `([\w-]+)` \| .*`/gm)].map(([, name]) => name)
    expect(rows.filter((name) => COMMANDS.some((command) => command.name === name))).toEqual(
      COMMANDS.map(({ name }) => name),
    )
  })
})
