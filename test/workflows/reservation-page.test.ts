import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { ReservationInput } from '../../core/reservation/reserving'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { hourlyOf, INTENT, NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'
import type * as Pages from '../../workflows/reservation/page'

/** The search attributes that were set, in order, and the newest text of the page. */
let published: unknown[]
let details: string
let described: Record<string, string>

jest.mock('@temporalio/workflow', () => ({
  ...{ defineSignal: () => 'signal', defineQuery: () => 'query' },
  setHandler: (name: string, _: unknown, { description }: { description: string }) =>
    (described[name] = description),
  setCurrentDetails: (text: string) => (details = text),
  workflowInfo: () => ({ runId: 'run-1' }),
}))
jest.mock('../../workflows/attributes', () => ({
  setAttributes: (attributes: unknown) => published.push(attributes),
}))
const { ReservationPage } = jest.requireActual<typeof Pages>('../../workflows/reservation/page')

const INPUT: ReservationInput = {
  ...{ reservationId: INTENT, owner: 'ada', deployment: 'dep', submittedAtMs: NOW_MS, rule: {} },
  wish: { backend: 'ec2', kind: 'prepaid', types: ['p5', 'p4'], count: 4, durationMs: HOUR_MS },
}

let page: Pages.ReservationPage
let moves: string[]

beforeEach(() => {
  published = []
  moves = []
  described = {}
  page = new ReservationPage(INPUT)
  page.onMove = () => moves.push(page.status.state)
})

describe('the page of a reservation', () => {
  it('has the link of the news while it waits for approval, if the client knew one', () => {
    const waits = (): void =>
      page.move('awaiting-approval', 'For sale.', { quote: { quote: quoteOf(), machineHourMicro: 1 } })
    waits()
    expect(details).not.toContain('Link')
    expect(details).toContain(`reservations reject ${INTENT}\`.\n\nMore: `)
    page = new ReservationPage({ ...INPUT, pageUrl: 'https://ui.test/res' })
    waits()
    expect(details).toContain('Link for the person who approves it: <https://ui.test/res>')
    page.move('active', 'It is active.')
    expect(details).not.toContain('Link')
  })

  it('says for whom idle places are', () => {
    page.move('active', 'It is active.', { reservation: ownedOf() })
    expect(details).toContain('- idle places: for all jobs of its owner')
    page.update({ rule: { share: 'none' } })
    expect(details).toContain('- idle places: for jobs of its owner that name it')
  })

  it('tells who uses it when its end or its extension changes, and not at every look', () => {
    const reservation = { ...ownedOf(), endsAtMs: NOW_MS + DAY_MS }
    page.move('active', 'It is active.', { reservation })
    page.move('active', 'It is still active.', { reservation: { ...reservation, free: 1 } })
    expect(moves).toEqual(['active'])
    page.move('active', 'It ends sooner.', { reservation: { ...reservation, endsAtMs: NOW_MS + HOUR_MS } })
    expect(moves).toEqual(['active', 'active'])
    const extension = { phase: 'unpaid', endsAtMs: NOW_MS + 2 * DAY_MS } as const
    page.move('active', 'It is extended.', {
      reservation: { ...reservation, endsAtMs: NOW_MS + HOUR_MS, extension },
    })
    expect(moves).toHaveLength(3)
    expect(published).toHaveLength(1)
  })

  it('begins with the search', () => {
    expect(page.status).toMatchObject({
      state: 'searching',
      runId: 'run-1',
      alternatives: [],
      spentMicroUsd: 0,
    })
    expect(page.status.purpose).toBeUndefined()
    expect(page.isOver).toBe(false)
    expect(details.split('\n')).toEqual([
      '**searching**: Looking for capacity.',
      '',
      '- wanted: 4 × p5 or p4, prepaid',
      '- spent: `$0.00`, of it for unused time `$0.00`',
      '',
      `More: \`crucible reservations show ${INTENT}\``,
    ])
  })

  it('continues as it was in a fresh history', () => {
    const carry = { sends: 1, recordSeq: 5, paymentFailures: 0 }
    const fresh = new ReservationPage({
      ...INPUT,
      carry: { ...carry, status: { ...page.status, state: 'active', runId: 'run-0' } },
    })
    expect(fresh.status).toMatchObject({ state: 'active', runId: 'run-1' })
    expect(published).toEqual([])
  })

  it('names its purpose, and what it can be asked', () => {
    page = new ReservationPage({ ...INPUT, purpose: 'training of ranker' })
    expect(page.status.purpose).toBe('training of ranker')
    expect(described).toMatchObject({ query: 'Where the reservation is, and why.' })
  })

  it('shows that its webhook is deaf', () => {
    page.update({ webhookTrouble: 'The webhook did not take the news: 404' })
    expect(details).toContain('\n\nThe webhook did not take the news: 404\n\n- wanted')
    page.forget('webhookTrouble')
    expect(details).not.toContain('webhook')
  })

  it('publishes each change of state once, and changes its words without an event', () => {
    page.move('searching', 'Still nothing.')
    expect([published, moves]).toEqual([[], []])
    expect(details).toContain('Still nothing.')
    page.move('awaiting-approval', 'For sale.')
    page.move('awaiting-approval', 'Still for sale.')
    expect(published).toEqual([{ state: 'awaiting-approval' }])
    expect(moves).toEqual(['awaiting-approval'])
  })

  it('shows the next look until the next step', () => {
    page.update({ nextLookAtMs: NOW_MS })
    expect(details).toContain('- next look: 2026-11-02T00:00:00Z')
    page.move('searching', 'Looking.')
    expect(details).not.toContain('next look')
  })

  it('shows trouble with its remedy until it is over', () => {
    page.trouble({ class: 'auth', message: 'no permission.', hint: 'Renew it.' })
    expect(page.status.trouble).toBe('no permission. Renew it.')
    expect(details).toContain('**Needs attention:**')
    page.trouble(undefined)
    expect(page.status.trouble).toBeUndefined()
    expect(details).not.toContain('Needs attention')
  })

  it('says how to answer an offer, and what else was found', () => {
    page.move('awaiting-approval', 'For sale.', {
      quote: { quote: quoteOf(), machineHourMicro: 5_000_000 },
      alternatives: [{ quote: hourlyOf(), machineHourMicro: 2_000_000, refusal: 'it is another kind' }],
    })
    expect(details).toContain(
      '- offer: 4 × p5 in east-a, 2026-11-03T00:00:00Z to 2026-11-05T00:00:00Z: `$960.00` upfront, `$5.00` per machine and hour',
    )
    expect(details).toContain(`\`crucible reservations approve ${INTENT}\``)
    expect(details).toContain(`\`crucible reservations reject ${INTENT}\``)
    expect(details).toMatch(
      /\*\*Other offers\*\*\n\n1\. 4 × p5 in east-a, 2026-11-02T00:00:00Z to its release: `\$[\d.]+` per hour, used or not, .* \(it is another kind\)/,
    )
    page.forget('quote')
    page.move('searching', 'It is gone.')
    expect(details).not.toMatch(/offer: |approve/)
  })

  it('shows what a person must decide, with all that is known', () => {
    const order = {
      intent: INTENT,
      send: 1,
      deployment: 'dep',
      owner: 'ada',
      backend: 'ec2',
      quote: quoteOf(),
    }
    page.move('undecided', 'Unknown.', {
      undecided: { order, sentAtMs: NOW_MS, account: ['Looked twice.'], candidates: [ownedOf()] },
    })
    expect(details).toContain('**A person must decide.**')
    expect(details).toContain('- Looked twice.')
    expect(details).toMatch(/- may be it: .*cr-1: 4 × p5 in east-a, scheduled, from .* to /)
    expect(details).toContain(`\`crucible reservations decide ${INTENT} --bought RESERVATION\``)
    page.forget('undecided')
    expect(details).not.toContain('must decide')
  })

  it('shows what is held, who decided, and what was spent', () => {
    page.move('active', 'It is there.', {
      reservation: ownedOf({ phase: 'active', state: 'active' }),
      decision: { kind: 'approved', by: 'ada', atMs: NOW_MS + DAY_MS },
      ...{ spentMicroUsd: 3_000_000, idleMicroUsd: 1_000_000 },
    })
    expect(details).toMatch(/- held: .*cr-1: 4 × p5 in east-a, active/)
    expect(details).toContain('- approved by ada, 2026-11-03T00:00:00Z')
    expect(details).toContain('- spent: `$3.00`, of it for unused time `$1.00`')
  })

  it.each(['ended', 'rejected', 'unavailable', 'failed'] as const)('is over once it is %s', (state) => {
    page.move(state, 'So.')
    expect(page.isOver).toBe(true)
  })
})
