import { describe, expect, it } from '@jest/globals'
import { analyze } from '../../packages/analyzer/src/analyze'
import { patient } from '../support/patience'
import { parser, project } from './corpus'

const doubled = (first: string, again: string): string => `${first}\n${`${again}\n`.repeat(60)}`
const nested = (open: string, inner: string, close: string): string =>
  `x = ${open.repeat(3_000)}${inner}${close.repeat(3_000)}\n`

/** Programs that are made to exhaust time, memory or stack. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'an attribute of attributes': `x = a${'.b'.repeat(500)}\n`,
  'a call of calls': `x = a${'.b()'.repeat(800)}\n`,
  'a doubled text': doubled("s = 'ab'", 's = s + s'),
  'a doubled format': doubled("s = '{}'", "s = '{}{}'.format(s, s)"),
  'a doubled template': doubled("s = 'a'", 's = f"{s}{s}"'),
  'a doubled percentage': doubled("s = '%s'", "s = '%s%s' % (s, s)"),
  'a doubled path': doubled("import os\np = 'a'", 'p = os.path.join(p, p)'),
  'a doubled replacement': doubled("s = 'a'", "s = s.replace('a', 'aa')"),
  'a doubled list': doubled('l = [1]', 'l = l + l'),
  'a doubled dictionary': doubled('d = {}', 'd = {**d, "a": d, "b": d}'),
  'a long text': "s = 'ab' * 10 ** 9\nl = [0] * 10 ** 9\n",
  'a large number': `x = ${'9'.repeat(60_000)}\ny = 9 ** 9 ** 9 ** 9\nz = 1 << 10 ** 9\n`,
  'many branches': `if x == 0:\n  y = 0\n${Array.from({ length: 6_000 }, (_, at) => `elif x == ${at}:\n  y = ${at}\n`).join('')}`,
  'many handlers': `try:\n  x\n${'except A:\n  y = 1\n'.repeat(3_000)}`,
  parentheses: nested('(', '1', ')'),
  brackets: nested('[', '1', ']'),
  calls: nested('f(', '1', ')'),
  choices: nested('1 if a else ', '2', ''),
  sums: nested('1 + ', '1', ''),
  blocks: `${Array.from({ length: 450 }, (_, at) => `${' '.repeat(at)}with a as b:\n`).join('')}${' '.repeat(450)}pass\n`,
  classes: `${Array.from({ length: 2_000 }, (_, at) => `class C${at}(C${at - 1}):\n  pass\n`).join('')}C1999().fit()\n`,
  recursion: 'def f(n):\n  return f(n - 1) + f(n - 2)\nf(100)\n',
}

const SCRIPTS: Readonly<Record<string, string>> = {
  'a doubled variable': doubled('A=ab', 'A=$A$A'),
  'a doubled array': doubled('A=(a b)', 'A=(${A[@]} ${A[@]})'),
  'a doubled addition': doubled('A=a', 'A+=$A'),
  'one word of many variables': `A=${'a'.repeat(90_000)}\nB=${'$A'.repeat(30_000)}\n`,
}

/** Ten times what the slowest one takes on an idle machine. */
const LIMIT_MS = patient(10_000)

describe('the analysis of a hostile program', () => {
  it.each(Object.entries(PROGRAMS))('ends soon, without an error: %s', async (_, text) => {
    const files = project({ 'train.py': `import torch\n${text}` })
    const began = performance.now()
    expect(analyze(await parser(), { files, command: 'python train.py' }).version).toBe(1)
    expect(performance.now() - began).toBeLessThan(LIMIT_MS)
  })

  it('ends soon for a Makefile that starts itself', async () => {
    const files = project({
      Makefile: `all:\n${'\tmake\n'.repeat(2_000)}\tpython train.py\n`,
      'train.py': 'import torch\n',
    })
    const began = performance.now()
    expect(analyze(await parser(), { files, command: 'make' }).entry).toBe('train.py')
    expect(performance.now() - began).toBeLessThan(LIMIT_MS)
  })

  it.each(Object.entries(SCRIPTS))('ends soon for a shell script: %s', async (_, text) => {
    const files = project({ 'run.sh': `${text}python train.py $A\n`, 'train.py': 'import torch\n' })
    const began = performance.now()
    expect(analyze(await parser(), { files, command: 'bash run.sh' }).entry).toBe('train.py')
    expect(performance.now() - began).toBeLessThan(LIMIT_MS)
  })
})
