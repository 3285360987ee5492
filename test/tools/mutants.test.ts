import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { chosen, itInAll } from '../support/selection'

const ROOT = join(__dirname, '..', '..')
const mutants = (...args: string[]) =>
  spawnSync(process.execPath, [join(ROOT, 'tools', 'mutants', 'main.mjs'), ...args], { encoding: 'utf8' })

const REFUSED: [string[], string][] = [
  [['--sample', 'many'], '--sample takes a whole number, not many.'],
  [['--part', '3/2'], '--part takes N/M, such as 1/4, not 3/2.'],
  [['planer'], "There is no planer. Name files or folders from the repository's root."],
]

describe('npm run mutants', () => {
  it('lists the mutants of one file, with their lines', () => {
    const { stdout, status } = mutants('--list', 'core/money/money.ts')
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /core\/money\/money\.ts:\d+ ArithmeticOperator\n {4}- usd \* MICRO_USD_PER_USD\n {4}\+ usd \//,
    )
    expect(stdout).not.toMatch(/StringLiteral/)
  })

  itInAll('draws the same sample with the same seed, and shares it without overlap', () => {
    const drawn = (...args: string[]): string[] =>
      mutants('--list', 'core/money/money.ts', '--sample', '6', ...args)
        .stdout.split('\n')
        .filter((line) => !line.startsWith('npm'))
    const all = drawn()
    expect(all.filter((line) => line.startsWith('core/'))).toHaveLength(6)
    expect(drawn('--seed', '2')).not.toEqual(all)
    const shares = ['1/2', '2/2'].map((part) =>
      drawn('--part', part).filter((line) => line.startsWith('core/')),
    )
    expect(shares.map((share) => share.length)).toEqual([3, 3])
    expect(shares.flat().sort()).toEqual(all.filter((line) => line.startsWith('core/')).sort())
  })

  itInAll('runs a mutant in a copy of the tree, and prints which test caught it and the score', () => {
    const { stdout, status } = mutants('core/job/steps-lost.ts', '--sample', '1', '--seed', '2')
    expect(stdout).toMatch(/^1\/1 ✓ caught core\/job\/steps-lost\.ts:\d+/)
    expect(stdout).toMatch(/^core +1 +0 +100\.0 % +0$/m)
    expect(status).toBe(0)
  })

  it.each(chosen(REFUSED, REFUSED.slice(-1)))('refuses %j in words', (args, words) => {
    const { stderr, status } = mutants(...args)
    expect([stderr.trim(), status]).toEqual([words, 2])
  })
})
