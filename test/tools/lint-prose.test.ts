import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, it, describe } from '@jest/globals'
import { testFolder } from '../support/folders'

const LINTER = join(__dirname, '..', '..', 'tools', 'lint-prose.mjs')

/** Lines that the linter refuses in a file of this text, and its exit code. */
function lint(name: string, text: string): { lines: string[]; code: number | null } {
  const folder = testFolder('prose')
  writeFileSync(join(folder, name), text)
  const { stderr, status } = spawnSync(process.execPath, [LINTER, name], { cwd: folder, encoding: 'utf8' })
  return {
    lines: all(stderr).map((line) => line.slice(line.indexOf(basename(name)))),
    code: status,
  }
}

const all = (text: string): string[] => text.split('\n').filter((line) => line.includes('=>'))

describe('the prose linter', () => {
  it('refuses phrases of its list in Markdown, with line and suggestion', () => {
    const page = [
      '# Title',
      '',
      'The machine',
      'that nobody owns is ended.', // prose-ok
    ]
    const { lines, code } = lint('page.md', page.join('\n'))
    expect(lines).toEqual(['page.md:4: nobody => name who or what']) // prose-ok
    expect(code).toBe(1)
  })

  it('passes over code, generated parts and lines that are marked', () => {
    const page = [
      '`nobody` and', // prose-ok
      '```',
      'hardly', // prose-ok
      '```',
      '<!-- commands -->',
      'It goes on.', // prose-ok
      '<!-- /commands -->',
      'whoever <!-- prose-ok -->',
    ]
    expect(lint('page.md', page.join('\n'))).toEqual({ lines: [], code: 0 })
  })

  it('checks strings, templates and comments of TypeScript, not names', () => {
    const code = [
      '/** nobody */', // prose-ok
      "const nobody = 'a key: nobody'", // prose-ok
      'const two = `first ${nobody}', // prose-ok
      'and whoever comes`', // prose-ok
      "const one = 'hardly'", // prose-ok
    ]
    expect(lint('messages.ts', code.join('\n')).lines).toEqual([
      'messages.ts:1: nobody => name who or what', // prose-ok
      'messages.ts:2: nobody => name who or what', // prose-ok
      'messages.ts:4: whoever => anyone who, or name the role', // prose-ok
    ])
  })
})
