import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { patient } from '../support/patience'

const ROOT = join(__dirname, '..', '..')

describe('the lint of regular expressions', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'patterns-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const judged = (name: string, text: string): { status: number | null; stdout: string } => {
    writeFileSync(join(folder, name), text)
    return spawnSync('node', [join(ROOT, 'tools', 'lint-patterns.mjs'), join(folder, name)], {
      encoding: 'utf8',
    })
  }

  it.each([
    ['a literal', 'a.ts', 'export const BAD = /(a|a)*b/\n'],
    ['a constant in two parts', 'b.ts', "const A = '(a+)+'\nnew RegExp(`^${A}$`)\n"],
    ['a text that only a run knows', 'c.ts', 'export const made = (text: string) => new RegExp(text)\n'],
    ['a line that ends in blanks', 'd.ts', 'export const BAD = /\\s+$/\n'],
    ['Python with constants', 'e.py', 'import re\nA = r"(a+)+"\nB = re.compile("^%s$" % A)\n'],
    [
      'Python with a function between',
      'f.py',
      'import re\ndef known(form):\n    return re.compile(form)\nknown(r"(a*)*b")\n',
    ],
    [
      'Python over several lines',
      'g.py',
      'import re\nre.search(r"""^(a | # one\n a)*b""", "", re.VERBOSE)\n',
    ],
  ])(
    'refuses %s',
    (_, name, text) => {
      const { status, stdout } = judged(name, text)
      expect(status).toBe(1)
      expect(stdout).toMatch(new RegExp(`${name}:\\d+ /`))
    },
    patient(60_000),
  )

  it(
    'accepts what takes linear time',
    () => {
      expect(judged('h.ts', 'export const GOOD = /^[a-z]+$/\n').status).toBe(0)
      expect(judged('i.py', 'import re\nGOOD = re.compile(r"^[a-z]+$")\n').status).toBe(0)
    },
    patient(60_000),
  )
})
