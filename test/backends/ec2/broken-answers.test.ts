/** Answers that EC2 never gives to questions about its market. `test/backends/broken-answers.test.ts` has those about machines. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { chosen } from '../../support/selection'
import { ANY, AnswerBreaker, OF_XML } from '../broken-answers'
import { outcomeOf } from '../broken-frame'
import { patiently } from '../harness'
import { Ec2Harness, type PaperHarness } from './harness'

const FAULTS = { ...ANY, ...OF_XML }
const FEW = ['nothing', 'half of it', 'a silence in the middle', 'empty fields']

describe.each(chosen(Object.keys(FAULTS), FEW))('an answer with %s', (name) => {
  const fault = FAULTS[name]!
  let h: PaperHarness
  let breaker: AnswerBreaker

  beforeAll(async () => {
    h = await Ec2Harness.onPaper()
    breaker = await AnswerBreaker.open(h.cloud.endpoint, fault)
  })
  beforeEach(() => void (breaker.breaks = undefined))
  afterAll(async () => {
    breaker.close()
    await h.dispose()
  })

  it.each(['DescribeInstanceTypes', 'DescribeSpotPriceHistory', 'DescribeImages', 'DescribeSubnets'])(
    'to %s gives no offer without a price and a place',
    async (action) => {
      const fresh = await h.reopen({ endpoint: breaker.url })
      breaker.breaks = ({ body }) => new URLSearchParams(body).get('Action') === action
      const offers = await outcomeOf(fault, () => h.meanwhile(fresh.offers({}, patiently())))
      if (offers === 'refused') return
      for (const { priceMicroUsdPerHour, place } of offers) {
        expect(priceMicroUsdPerHour).toBeGreaterThan(0)
        expect(place).toMatch(/^us-east-1/)
      }
    },
  )
})
