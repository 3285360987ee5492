import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { readOptions } from './options'

const PROGRAM = {
  name: 'weather',
  about: 'Makes weather.',
  options: {
    from: { default: 1, min: 0, means: 'the first seed' },
    count: { default: 20, means: 'how many seeds' },
    only: { default: '', as: 'KIND', means: 'only this kind' },
    keep: { default: false, means: 'keeps it' },
  },
}

const USAGE = `npm run weather -- [options]

Makes weather.

  --from N     the first seed (1)
  --count N    how many seeds (20)
  --only KIND  only this kind
  --keep       keeps it
`

let out: string
let err: string

beforeEach(() => {
  // Another file of this process may have left one.
  process.exitCode = undefined
  out = ''
  err = ''
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean((out += String(text))))
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean((err += String(text))))
})
afterEach(() => {
  jest.restoreAllMocks()
  process.exitCode = undefined
})

describe('the options of a program', () => {
  it('are the given ones, or the defaults', () => {
    expect(readOptions(PROGRAM, [])).toEqual({ from: 1, count: 20, only: '', keep: false })
    expect(readOptions(PROGRAM, ['--from', '0', '--count=3', '--only', 'rain', '--keep'])).toEqual({
      from: 0,
      count: 3,
      only: 'rain',
      keep: true,
    })
    expect([out, err, process.exitCode]).toEqual(['', '', undefined])
  })

  it.each(['--help', '-h'])('are printed when asked for: %s', (option) => {
    expect(readOptions(PROGRAM, ['--from', '7', option])).toBeUndefined()
    expect([out, err, process.exitCode]).toEqual([USAGE, '', undefined])
  })

  it('are printed with the word that chose among several programs', () => {
    readOptions({ ...PROGRAM, word: 'rain' }, ['--help'])
    expect(out).toMatch(/^npm run weather -- rain \[options\]\n/)
  })

  it.each([
    [['--form', '1'], /Unknown option '--form'/],
    [['seven'], /Unexpected argument 'seven'/],
    [['--count', '0'], /--count takes a whole number from 1 on, not "0"\./],
    [['--from', 'one'], /--from takes a whole number from 0 on, not "one"\./],
    [['--count', ''], /--count takes a whole number/],
    [['--count'], /--count <value>' argument missing/],
    [['--keep=yes'], /'--keep' does not take an argument/],
  ])('are printed for wrong arguments, with the problem: %j', (args, words) => {
    expect(readOptions(PROGRAM, args)).toBeUndefined()
    expect([out, process.exitCode]).toEqual(['', 2])
    expect(err).toMatch(words)
    expect(err.endsWith(USAGE)).toBe(true)
  })

  it.each([
    ['--help', 0],
    ['--seeds', 2],
  ])(
    'reach a program as npm starts it: %s',
    async (option, code) => {
      const root = join(__dirname, '..', '..')
      const run = promisify(execFile)('npm', ['run', '--silent', 'proof', '--', 'torn', option], {
        cwd: root,
      })
      const ended = await run.then(
        ({ stdout }) => ({ code: 0, words: stdout }),
        ({ code: failed, stderr }: { code: number; stderr: string }) => ({ code: failed, words: stderr }),
      )
      expect(ended).toEqual({
        code,
        words: expect.stringContaining('npm run proof -- torn [options]') as unknown,
      })
    },
    60_000,
  )
})
