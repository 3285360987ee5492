import { describe, expect, it } from '@jest/globals'
import { groupRejections, REJECTION_CODES, type Rejection } from '../../../core/job/plan'
import { ruledOutInWords, ruledOutSingly } from '../../../core/job/ruled-out'

const rejection = (offerKey: string, changes: Partial<Rejection> = {}): Rejection => ({
  offerKey,
  why: 'unfit',
  code: 'region',
  reason: 'the job allows only the Regions eu-west-1',
  ...changes,
})
const small = (offerKey: string, has: number): Rejection =>
  rejection(offerKey, { code: 'gpu-memory', reason: `GPU memory: has ${has} GB, wanted 24 GB+` })
const dear = (offerKey: string, costMicroUsd: number): Rejection =>
  rejection(offerKey, { code: 'budget', costMicroUsd, reason: `costs ${costMicroUsd}` })
const words = (...all: Rejection[]): string[] => ruledOutInWords(groupRejections(all, { keysMax: 100 }))

describe('what was ruled out, in words', () => {
  it('has one sentence for each kind of reason, the most frequent first', () => {
    expect(words(rejection('a'), small('b', 16), small('c', 8))).toEqual([
      '2 offers with GPUs of a different memory size, such as b (GPU memory: has 16 GB, wanted 24 GB+); change `gpu_memory` to include them',
      '1 offer outside the Regions that the job allows: a; extend `regions` to include it',
    ])
    expect(words()).toEqual([])
  })

  it('has an example, and a change or the reason in full, for every code', () => {
    for (const code of REJECTION_CODES) {
      const [sentence] = words(rejection('ec2/spot/x/a', { code, reason: 'its own reason' }))
      expect(sentence).toMatch(/^1 offer [^:]+: ec2\/spot\/x\/a/)
      if (code !== 'target') expect(sentence).toMatch(/\(its own reason\)|; .* to include it$/)
    }
  })

  it('gives each reason of its own that a person must act on', () => {
    const quota = (offerKey: string, reason: string): Rejection =>
      rejection(offerKey, { why: 'quota', code: 'quota', reason })
    expect(words(quota('a', 'no P instances'), quota('b', 'no G instances'))).toEqual([
      '1 offer beyond the quota of the account: a (no P instances); request a higher quota to include it',
      '1 offer beyond the quota of the account: b (no G instances); request a higher quota to include it',
    ])
  })

  it('takes the cheapest of those above the budget as the example', () => {
    expect(words(dear('a', 9), dear('b', 3), dear('c', 5))).toEqual([
      '3 offers above the budget, such as b (costs 3); raise `budget` to include them',
    ])
  })

  it('can be listed offer by offer, each with its own cost', () => {
    const groups = groupRejections(
      [dear('a/', 9_000_000), dear('b', 3_000_000), small('c', 16), small('d', 16), small('e', 16)],
      { keysMax: 4 },
    )
    expect(ruledOutSingly(groups)).toEqual([
      'a: costs about $9.00, more than the budget',
      'b: costs 3000000',
      'c: GPU memory: has 16 GB, wanted 24 GB+',
      'd: GPU memory: has 16 GB, wanted 24 GB+',
      '1 more: GPU memory: has 16 GB, wanted 24 GB+',
    ])
  })
})
