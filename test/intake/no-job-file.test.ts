import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseJobFile } from '../../intake/job-file'
import { checkJobSpec } from '../../intake/job-spec'
import type { Problem } from '../../intake/problem'
import { complaints, NOW, problems } from './reading'

describe('a text that is no job file', () => {
  it.each([
    ['', '1:1: the file is empty. Write at least script: train.py, or run: and a command.'],
    ['# nothing\n', '1:1: the file is empty. Write at least script: train.py, or run: and a command.'],
    [
      '- a\n',
      '1:1: the file is not a mapping of fields to values. Write at least script: train.py, or run: and a command.',
    ],
    [
      'import torch\n',
      '1:1: the file is not a mapping of fields to values. Write at least script: train.py, or run: and a command.',
    ],
    ['run: a\nrun: b\n', '2:1: run appears twice. Remove one of the two.'],
    ['run:\n\t- a\n', '2:1: a tab indents this line. Indent with spaces.'],
    ['run: a\n---\nrun: b\n', '2:1: a second document begins after ---. Write one file per job.'],
    ['run: !!python/object:os.system x\n', '1:6: tags (!...) are not supported. Remove it.'],
    [
      'run: x\nname: *n\n',
      '2:7: *n refers to nothing. Put &n before what it should repeat, or quotes around a text that begins with *.',
    ],
    [
      `run: x\nretries: ${'9'.repeat(60_000)}\n`,
      '2:10: the number has 60000 characters of at most 64. Correct it, or put quotes around a text of digits.',
    ],
    ['run: x\0\n', '1:7: the file is not a text in UTF-8. Name the job file, or save it as UTF-8.'],
    [
      '\u0089PNG\r\n\u001a\n',
      '1:1: the file is not a text in UTF-8. Name the job file, or save it as UTF-8.',
    ],
    [
      'run: x\nname: caf\uFFFD\n',
      '2:10: the file is not a text in UTF-8. Name the job file, or save it as UTF-8.',
    ],
  ])('such as %j', (text, complaint) => {
    expect(complaints(text)).toEqual([complaint])
  })

  it.each(['run: "x\n', 'a: [1,\n', 'a: b: c\n', 'run: x\n  name: y\n', '@x: y\n', '}\n', '"'])(
    'such as %j, with the line',
    (text) => {
      const [first] = problems(text)
      expect(first).toMatchObject({
        file: 'job.yaml',
        path: '',
        line: expect.any(Number),
        column: expect.any(Number),
      })
      expect(first!.message).toMatch(/^the file is not /)
    },
  )

  it('is refused for its size before it is looked at', () => {
    expect(complaints('x'.repeat(1_000_000))).toEqual([
      '1:1: the file has 1000000 bytes, but a job file may have at most 65536. Name the job file; data belongs under inputs or in the working directory.',
    ])
  })

  it.each([
    ['lists', `a: ${'['.repeat(60_000)}`],
    ['mappings', '{a: '.repeat(16_000)],
    ['lists in lists', `${'- '.repeat(30_000)}x`],
    ['keys', '? '.repeat(30_000)],
    ['closed lists', `a: ${'['.repeat(100)}${']'.repeat(100)}`],
  ])('is refused for %s without end', (_, text) => {
    expect(complaints(text)).toEqual([
      '1:1: lists and mappings are nested too deeply. Stay within 32 levels.',
    ])
  })

  it('is read as deep as indentation goes within its size', () => {
    const lists = Array.from({ length: 340 }, (_, i) => `${' '.repeat(i)}-`).join('\n')
    expect(problems(lists)[0]?.message).toBe('the file is not a mapping of fields to values')
  })

  it('is refused for anchors that repeat each other', () => {
    const letters = 'abcdefghij'.split('')
    const lines = letters.map(
      (name, i) =>
        `${name}: &${name} [${Array(9)
          .fill(i === 0 ? 'x' : `*${letters[i - 1]}`)
          .join(', ')}]`,
    )
    expect(complaints(`run: x\n${lines.join('\n')}\n`)).toEqual([
      '1:1: anchors repeat each other too often. Write it out.',
    ])
  })

  it('is never more than a list of problems, whatever it is', () => {
    const token = fc.constantFrom(
      'run',
      'script',
      'resources',
      'gpus',
      'inputs',
      'env',
      'deadline',
      ': ',
      ':',
      '\n',
      '\n  ',
      '- ',
      '[',
      ']',
      '{',
      '}',
      ', ',
      '"',
      "'",
      '|',
      '>',
      '&a ',
      '*a',
      '!t ',
      '?',
      '#',
      '---',
      '%',
      '@',
      'x',
      '1',
      'true',
      'null',
      '..',
      '\t',
      '<<',
    )
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.array(token, { maxLength: 40 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(text, (input) => {
        const result = parseJobFile(input, { fileName: 'f', nowMs: NOW })
        if ('job' in result) {
          expect(checkJobSpec(result.job.spec)).toEqual({ spec: result.job.spec })
          return
        }
        const isTold = ({ line = 0, column = 0, message, remedy }: Problem): boolean =>
          line > 0 && column > 0 && message !== '' && remedy !== ''
        expect(result.problems.length > 0 && result.problems.every(isTold)).toBe(true)
      }),
      { numRuns: 800 },
    )
  })
})
