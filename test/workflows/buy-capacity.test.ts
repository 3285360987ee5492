/** One purchase: it is sent once, and looked up until its outcome is certain or a person must decide. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ActivityFailure, RetryState, TimeoutFailure } from '@temporalio/common'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type * as Buying from '../../workflows/reservation/buy-capacity'
import { INTENT, NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'

let send: () => object
let finds: (() => object)[]
let asked: [what: string, recordSeq: number][]
let pauses: [ms: number, summary: string | undefined][]

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/common'),
  sleep: async (ms: number, { summary }: { summary?: string } = {}) => void pauses.push([ms, summary]),
}))
jest.mock('../../workflows/reservation/activities', () => ({
  buying: () => ({
    buyCapacity: async ({ recordSeq }: { recordSeq: number }) => (asked.push(['send', recordSeq]), send()),
  }),
  looking: () => ({
    findPurchase: async ({ recordSeq }: { recordSeq: number }) => {
      asked.push(['find', recordSeq])
      return finds.shift()!()
    },
  }),
}))
const { buyCapacity } = jest.requireActual<typeof Buying>('../../workflows/reservation/buy-capacity')

const TASK: Buying.BuyCapacityInput = {
  ...{ reservationId: INTENT, deployment: 'dep', owner: 'ada', recordSeq: 5, rule: {} },
  order: { intent: INTENT, send: 1, deployment: 'dep', owner: 'ada', backend: 'ec2', quote: quoteOf() },
}
const REFUSED = { kind: 'refused', failure: { class: 'capacity', message: 'Sold out.' } }
const candidates = [ownedOf({ id: 'cr-9' })]
const absent = (saw: string) => (): object => ({ kind: 'absent', sentAtMs: 17, saw, candidates })
const lost = (): object => ({
  kind: 'unconfirmed',
  failure: { class: 'unclassified', message: 'No answer.' },
})
const timedOut = (timeoutType: 'SCHEDULE_TO_START' | 'START_TO_CLOSE') => (): never => {
  throw new ActivityFailure(
    ...(['activity failed', 'buyCapacity', '1', RetryState.TIMEOUT, undefined] as const),
    new TimeoutFailure('timed out', undefined, timeoutType),
  )
}

// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  ;[send, finds, asked, pauses] = [lost, [], [], []]
})

describe('a purchase', () => {
  it.each([{ kind: 'reserved', reservation: ownedOf() }, REFUSED])(
    'that is answered is not looked up: $kind',
    async (answer) => {
      send = () => answer
      expect(await buyCapacity(TASK)).toEqual(answer)
      expect(asked).toEqual([['send', 5]])
    },
  )

  it('without a certain answer is found by a later look, and never sent again', async () => {
    finds = [absent('Nothing.'), () => ({ kind: 'found', reservation: ownedOf() })]
    expect(await buyCapacity(TASK)).toEqual({ kind: 'reserved', reservation: ownedOf() })
    expect(asked).toEqual([
      ['send', 5],
      ['find', 6],
      ['find', 7],
    ])
    expect(pauses).toEqual([[15 * SECOND_MS, 'until the purchase can be looked up again']])
  })

  it('that certainly had no effect is refused, with why', async () => {
    finds = [() => ({ kind: 'no-effect', failure: REFUSED.failure })]
    expect(await buyCapacity(TASK)).toEqual(REFUSED)
    expect(pauses).toEqual([])
  })

  it('that no look finds is a question for a person, who gets all that is known', async () => {
    finds = [absent('Nothing.'), absent('Still nothing.')]
    expect(await buyCapacity({ ...TASK, lookPausesMs: [0, MINUTE_MS] })).toEqual({
      ...{ kind: 'undecided', sentAtMs: 17, candidates },
      account: [
        '2026-11-02T00:00:00Z: no certain answer to the purchase: No answer.',
        ...['Nothing.', 'Still nothing.', 'Looked 2 times in 1m.'],
      ],
    })
  })

  it('is looked up for longer than a send lasts and lists are old: 26 minutes', async () => {
    finds = Array.from({ length: 8 }, () => absent('Nothing.'))
    const result = (await buyCapacity(TASK)) as { account: string[] }
    expect(result.account.at(-1)).toBe('Looked 8 times in 25m 45s.')
    const pausedMs = pauses.reduce((sum, [ms]) => sum + ms, 0)
    expect(pausedMs / MINUTE_MS).toBe(25.75)
  })

  it.each<[string, () => object, string]>([
    ['no worker took it', timedOut('SCHEDULE_TO_START'), 'No worker took the purchase in time.'],
    [
      'its worker was lost',
      timedOut('START_TO_CLOSE'),
      'The worker that sent the purchase was lost, or took too long.',
    ],
    [
      'it failed otherwise',
      () => {
        throw new Error('the token has expired')
      },
      'the token has expired',
    ],
  ])('says why its answer is missing: %s', async (_, failing, why) => {
    ;[send, finds] = [failing, [absent('Nothing.')]]
    const { account } = (await buyCapacity({ ...TASK, lookPausesMs: [0] })) as { account: string[] }
    expect(account[0]).toBe(`2026-11-02T00:00:00Z: no certain answer to the purchase: ${why}`)
  })
})
