import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../../core/activities'
import type { Capabilities } from '../../../core/capabilities'
import type { JobSpec } from '../../../core/job/job'
import { EMPTY_LEDGER } from '../../../core/job/ledger'
import { microUsd } from '../../../core/money/money'
import type { Offer, ReservedCapacity } from '../../../core/offer'
import type { Plan, PlanFacts } from '../../../core/job/plan'
import type { NamedReservation, ReservationHold } from '../../../core/reservation/hold'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import type { Forecasted } from '../../../planner/forecast/forecast'
import { notFor, notYetFor } from '../../../planner/plan/held'
import { planFor } from '../../../planner/policy/outcome'
import { planInputs } from '../../../planner/why/why-inputs'
import { SPEC } from '../../support/spec'

const NOW_MS = Date.UTC(2027, 0, 4)
const CAPABILITIES: Capabilities = {
  capacityTypes: ['on-demand', 'reserved'],
  imageRunner: 'runner',
  runnerStart: 'with-launch',
  idempotency: 'token',
  billsUntil: 'exit',
  price: 'live',
}

const reserved = (id: string, more: Partial<ReservedCapacity> = {}): Offer => ({
  backend: 'here',
  capacityType: 'reserved',
  type: 'small',
  place: 'a',
  reservationId: id,
  priceMicroUsdPerHour: microUsd(2),
  shape: { cpus: 8, memoryGiB: 32, gpus: 0 },
  priceSource: { kind: 'live', observedAtMs: NOW_MS },
  availability: 'unknown',
  reservation: { free: 2, total: 4, idleMicroUsdPerHour: microUsd(2), ...more },
})
const held = (hold: Partial<ReservationHold> = {}, more: Partial<ReservedCapacity> = {}): Offer =>
  reserved('cr-1', { hold: { reservation: 'res-1', owner: 'alice', share: 'owner', ...hold }, ...more })
const BY_HAND = reserved('cr-2')
/** Only the end of this forecast matters. */
const lasting = (highMs: number) => (): Forecasted => ({ forecast: { finish: { highMs } } }) as Forecasted

interface Asked {
  owner?: string
  spec?: Partial<JobSpec>
  named?: NamedReservation
}

const inputOf = ({ owner = 'alice', spec = {} }: Asked): PlanInput => ({
  jobId: 'job-1',
  deployment: 'dep-1',
  recordSeq: 2,
  attempt: 1,
  bundle: null,
  ledger: EMPTY_LEDGER,
  avoid: [],
  resolved: {
    spec: { ...SPEC, durationMs: HOUR_MS, ...spec },
    policy: { failuresMax: 0, interruptionsMax: 9, unclassifiedMax: 3 },
    timing: DEFAULT_TIMING,
    runnerSha256: '',
    storeUrl: 'file:///s',
    owner,
  },
})

const factsOf = (offers: Offer[], { named }: Asked = {}): PlanFacts => ({
  nowMs: NOW_MS,
  answers: [{ backend: 'here', capabilities: CAPABILITIES, offers }],
  silentBackends: [],
  inputSizes: [],
  named: named ? named : undefined,
})

const planned = (offers: Offer[], asked: Asked = {}): ReturnType<typeof planFor> =>
  planFor(inputOf(asked), factsOf(offers, asked))

/** The reservations that a job is offered, in order. */
const offered = (offers: Offer[], asked: Asked = {}): (string | undefined)[] =>
  planned(offers, asked).plan.placements.map(({ offer }) => offer.reservationId)

const refusal = (plan: Plan): Pick<Plan['rejections'][number], 'code' | 'why' | 'reason'> =>
  plan.rejections[0]!

describe('a job that names a reservation', () => {
  it.each(['res-1', 'cr-1'])('is offered its places only, by the name %s', (reservation) => {
    const { plan } = planned([BY_HAND, held()], { spec: { reservation } })
    expect(plan.placements.map(({ offer }) => offer.reservationId)).toEqual(['cr-1'])
    expect(refusal(plan)).toEqual({
      offerKey: 'here/reserved/small/a/cr-2',
      code: 'reservation',
      why: 'unfit',
      reason: `the job is for the reservation ${reservation}`,
    })
  })

  it('is not kept from its GPUs, whatever it needs', () => {
    const withGpus = (offer: Offer): Offer => ({ ...offer, shape: { ...offer.shape, gpus: 8 } })
    expect(offered([withGpus(held())], { spec: { reservation: 'res-1' } })).toEqual(['cr-1'])
    expect(offered([withGpus(held())])).toEqual([])
  })

  it.each<[string, NamedReservation, string, RegExp]>([
    [
      'waits for one that is searched for',
      { state: 'open', message: 'Nothing is for sale.' },
      'wait',
      /Nothing/,
    ],
    [
      'ends with one that is over',
      { state: 'over', message: 'cr-1 has ended.' },
      'never',
      /is over. cr-1 has/,
    ],
    [
      'ends if there is no wish of that name',
      { state: 'unknown' },
      'never',
      /no backend .* has one of that name/,
    ],
  ])('%s', (_what, named, kind, words) => {
    const { outcome } = planned([BY_HAND], { named, spec: { reservation: 'res-1' } })
    expect(outcome.kind).toBe(kind)
    expect(
      outcome.kind === 'wait' ? outcome.reason : outcome.kind === 'never' && outcome.failure.message,
    ).toMatch(words)
  })

  it.each<NamedReservation | undefined>([
    undefined,
    { state: 'open' },
    { state: 'over' },
    { state: 'unknown' },
  ])('waits for a place of it that is not free yet, whatever its workflow says: %j', (named) => {
    const full = { ...held(), availability: 'unavailable' as const }
    const { outcome } = planned([full, BY_HAND], { named, spec: { reservation: 'res-1' } })
    expect(outcome).toMatchObject({ kind: 'wait', reason: expect.stringMatching(/^No offer fits this job/) })
  })
})

describe('the places that a wish holds', () => {
  const owns = { owner: 'alice' }
  const other = { owner: 'bob' }
  const naming = { spec: { reservation: 'res-1' } }

  it.each([
    ['none', owns, []],
    ['none', { ...owns, ...naming }, ['cr-1']],
    ['none', { ...other, ...naming }, []],
    ['owner', owns, ['cr-1']],
    ['owner', other, []],
    ['owner', { ...other, ...naming }, []],
    ['all', other, ['cr-1']],
    ['all', { ...other, ...naming }, ['cr-1']],
  ] as const)('with `share: %s` are offered to %j as %j', (share, asked, ids) => {
    expect(offered([held({ share })], asked)).toEqual(ids)
  })

  it('are for jobs that name them only, while their owner is not on record', () => {
    const hold = { reservation: 'res-1' }
    expect(offered([reserved('cr-1', { hold })], owns)).toEqual([])
  })

  it('are not those of other reservations', () => {
    expect(offered([BY_HAND, held()], other)).toEqual(['cr-2'])
  })

  it('say who holds them, for how long, and why they are not offered', () => {
    const endsAtMs = NOW_MS + 24 * HOUR_MS
    expect(refusal(planned([held({}, { endsAtMs })], other).plan)).toMatchObject({
      code: 'held',
      why: 'unfit',
      reason:
        'held by res-1 of alice until 2027-01-05T00:00:00Z, only for jobs of alice; it was reserved with `share: owner`',
    })
    expect(refusal(planned([held({ share: 'none' })], owns).plan).reason).toBe(
      'held by res-1 of alice until it is released, only for jobs that name it; `reservation: res-1` does',
    )
  })

  it('say what they cost while idle, to their jobs and in the inputs of a decision', () => {
    const words = 'held by res-1 of alice until it is released, costs $4.00/h while idle'
    expect(planned([held()], owns).plan.placements[0]!.reasons).toContain(
      `already reserved, 2 of 4 free, ${words}`,
    )
    const facts = factsOf([held(), BY_HAND])
    const lines = planInputs(inputOf(owns), { facts, answers: facts.answers })
    expect(lines).toContainEqual({ name: 'reserved', text: `cr-1: 2 of 4 places free, ${words}` })
    expect(lines).toContainEqual({ name: 'owner', text: 'alice' })
  })

  it.each([
    ['prepaid', 0, 2, 'paid for, idle or not'],
    ['full', microUsd(2), 0, undefined],
  ])('cost nothing more while %s', (_what, idleMicroUsdPerHour, free, words) => {
    const facts = factsOf([held({}, { idleMicroUsdPerHour, free })])
    const [line] = planInputs(inputOf(owns), { facts, answers: facts.answers }).filter(
      ({ name }) => name === 'reserved',
    )
    expect(line!.text.split(', ').slice(2).join(', ')).toBe(words ?? '')
  })
})

describe('places that are kept for a job to come', () => {
  const FROM_MS = NOW_MS + 12 * HOUR_MS
  const awaited = (fromMs: number, untilMs = fromMs + HOUR_MS): Offer =>
    held({ awaited: { jobId: 'ranker-train', fromMs, untilMs, schedule: 'ranker', run: '2027-01-04' } })

  it('go to jobs that are done in time, and to the one that names them', () => {
    expect(offered([awaited(FROM_MS)])).toEqual(['cr-1'])
    const long = { durationMs: 11.5 * HOUR_MS }
    expect(offered([awaited(FROM_MS)], { spec: long })).toEqual([])
    expect(offered([awaited(FROM_MS)], { spec: { ...long, reservation: 'res-1' } })).toEqual(['cr-1'])
  })

  it('are kept from a job that would still run then, which waits', () => {
    const { plan, outcome } = planned([awaited(NOW_MS + 30 * MINUTE_MS)])
    expect(refusal(plan)).toMatchObject({ code: 'awaited', why: 'unavailable' })
    expect(refusal(plan).reason).toMatch(
      /^it is kept for ranker-train from 2027-01-04T00:30:00Z, and this job may need it for/,
    )
    expect(outcome.kind).toBe('wait')
    expect(refusal(planned([awaited(NOW_MS)]).plan).reason).toMatch(/which is about to begin there/)
  })

  it('are free once it no longer comes', () => {
    expect(offered([awaited(NOW_MS - 2 * HOUR_MS, NOW_MS)])).toEqual(['cr-1'])
  })

  it.each([
    [2, []],
    [1, ['cr-1']],
  ])('are left to %d waiting jobs that name the reservation first', (namedByWaiting, ids) => {
    const offer = reserved('cr-1', { namedByWaiting })
    expect(offered([offer])).toEqual(ids)
    expect(offered([offer], { spec: { reservation: 'cr-1' } })).toEqual(['cr-1'])
  })

  it.each<[number, number, string | undefined]>([
    [2, 1, undefined],
    [1, 1, 'a waiting job names this reservation, which has 1 free place'],
    [1, 3, '3 waiting jobs name this reservation, which has 1 free place'],
    [0, 0, undefined],
  ])(
    'with %d free, and %d waiting jobs that name it, are refused with %j',
    (free, namedByWaiting, reason) => {
      const offer = reserved('cr-1', { free, namedByWaiting })
      expect(notYetFor(offer, { spec: SPEC, nowMs: NOW_MS }, lasting(0))?.reason).toBe(reason)
    },
  )

  it('are cleared ten minutes before the job to come, counted from the order of this one', () => {
    const offer = awaited(NOW_MS + HOUR_MS)
    const isKept = (minutes: number, startsInMs?: number): boolean =>
      notYetFor(offer, { spec: SPEC, nowMs: NOW_MS, startsInMs }, lasting(minutes * MINUTE_MS)) !== undefined
    expect([50, 50.001, 60].map((minutes) => isKept(minutes))).toEqual([false, true, true])
    expect([40, 40.001].map((minutes) => isKept(minutes, 10 * MINUTE_MS))).toEqual([false, true])
  })
})

describe('places that were reserved outside of the deployment', () => {
  it('are for jobs that name their reservation', () => {
    const offer = reserved('cr-1', { isForNaming: true })
    expect(notFor(offer, { spec: SPEC, owner: 'alice' })).toEqual({
      code: 'held',
      reason: "it was not reserved for this deployment's jobs; `reservation: cr-1` uses it",
    })
    expect(notFor(offer, { spec: { ...SPEC, reservation: 'cr-1' } })).toBeUndefined()
    expect(notFor(offer, { spec: { ...SPEC, reservation: 'cr-2' } })?.code).toBe('reservation')
  })
})

describe('places whose owner is not on record', () => {
  it('are not those of a job whose owner is not on record either', () => {
    const hold = { reservation: 'res-1' }
    expect(notFor(reserved('cr-1', { hold }), { spec: SPEC })?.reason).toMatch(
      /its owner is unknown; it was reserved with `share: owner`$/,
    )
    expect(notFor(reserved('cr-1', { hold: { ...hold, owner: 'bob' } }), { spec: SPEC })?.reason).toMatch(
      /only for jobs of bob; /,
    )
  })
})
