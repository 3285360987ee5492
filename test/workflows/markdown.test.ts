import { describe, expect, it } from '@jest/globals'
import { headline, money, sentence, warningLines } from '../../workflows/markdown'

describe('the headline of a page', () => {
  it.each([
    [{ state: 'running', reason: 'training', text: 'Training.' }, '**running**: Training.'],
    [{ state: 'running', reason: 'under-way', text: '' }, '**running** (under-way)'],
    [{ state: 'failed', reason: 'quota', text: 'No quota.' }, '**failed** (quota): No quota.'],
    [{ state: 'cancelled', reason: 'cancelled', text: '' }, '**cancelled**'],
  ])('of %j', (facts, line) => {
    expect(headline(facts)).toBe(line)
  })
})

describe('a sentence on a page', () => {
  it('has its amounts as code, and what is code already as it was', () => {
    expect(sentence('It cost $1.50, or -$2, not `$3.00`.')).toBe('It cost `$1.50`, or `-$2`, not `$3.00`.')
    expect(money(1_500_000)).toBe('`$1.50`')
  })

  it('makes nothing of marks from outside', () => {
    expect(sentence('a *b* [c](d)')).toBe('a \\*b\\* \\[c\\](d)')
  })
})

describe('the warning of a runner', () => {
  it('stands alone, with whose it is, and only as much as a page has room for', () => {
    expect(warningLines('')).toEqual([])
    expect(warningLines('Nothing was saved.')).toEqual(['', '**Warning:** Nothing was saved.'])
    expect(warningLines('x'.repeat(2_000), ' (attempt 2)')).toEqual([
      '',
      `**Warning (attempt 2):** ${'x'.repeat(1_000)}`,
    ])
  })
})
