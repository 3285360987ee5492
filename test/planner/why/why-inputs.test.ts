import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../../core/activities'
import type { JobSpec } from '../../../core/job/job'
import { EMPTY_LEDGER } from '../../../core/job/ledger'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import type { BackendAnswer, PlanFacts } from '../../../core/job/plan'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { planInputs, verdictInputs } from '../../../planner/why/why-inputs'
import { answer, NOW_MS, offer, SPEC } from '../wishes'

type Facts = Omit<PlanFacts, 'answers'>
const FACTS: Facts = { nowMs: NOW_MS, silentBackends: [], inputSizes: [] }

const resolved = (spec: Partial<JobSpec> = {}): PlanInput['resolved'] => ({
  spec: { ...SPEC, ...spec },
  timing: DEFAULT_TIMING,
  runnerSha256: '',
  storeUrl: 's3://jobs',
  policy: { failuresMax: 0, interruptionsMax: 9, unclassifiedMax: 3 },
})

type Record = { input?: Partial<PlanInput>; facts?: Partial<Facts> | null; answers?: BackendAnswer[] }
const told = ({ input = {}, facts = {}, answers }: Record): { [name: string]: string } =>
  Object.fromEntries(
    planInputs(input, { facts: facts === null ? undefined : { ...FACTS, ...facts }, answers }).map(
      ({ name, text }) => [name, text],
    ),
  )
const ofSpec = (spec: Partial<JobSpec>) => told({ input: { resolved: resolved(spec) } })
const ofOffers = (...offers: Offer[]) => told({ answers: [answer(offers)] })

describe('the inputs of a plan', () => {
  it('are none for a record without any, and only what a job states otherwise', () => {
    expect(planInputs({}, {})).toEqual([])
    expect(told({})).toEqual({})
    expect(told({ input: { resolved: resolved(), attempt: 1, ledger: EMPTY_LEDGER, avoid: [] } })).toEqual({
      wishes: 'best cost, interruptible',
      duration: 'not stated',
    })
    expect(told({ answers: [answer([])] })).toEqual({ offers: '0 of here' })
  })

  it.each<[words: string, Partial<JobSpec>]>([
    ['best balance of cost and time, not interruptible', { optimize: 'balanced', isInterruptible: false }],
    ['best time, interruptible', { optimize: 'time' }],
    [
      'best cost, interruptible, only on ec2:spot, lambda',
      { backends: [{ backend: 'ec2', capacityType: 'spot' }, { backend: 'lambda' }] },
    ],
    ['best cost, interruptible, only in eu-west-1, us-east-1', { regions: ['eu-west-1', 'us-east-1'] }],
    ['best cost, interruptible, only in the reservation res-a', { reservation: 'res-a' }],
    ['best cost, interruptible, at most $2.50 an hour', { priceMaxMicroUsdPerHour: microUsd(2.5) }],
  ])('have its wishes in words: %s', (words, spec) => {
    expect(ofSpec(spec)['wishes']).toBe(words)
  })

  it('have the family of the work for a job that needs a GPU, even if it is not known', () => {
    const resources = { gpus: { min: 1 } }
    expect(ofSpec({ resources })).toMatchObject({ resources: '1+ GPUs', 'family of work': 'not known' })
    expect(ofSpec({ resources, workFamily: 'transformer' })).toMatchObject({
      'family of work': 'transformer',
    })
    expect(ofSpec({ workFamily: 'transformer' })).not.toHaveProperty('family of work')
  })

  it('have the speeds that jobs measured, with two digits', () => {
    const ownRatios = [
      { accelerator: 'V100', than: 'A100', factor: 0.4137, jobs: 3 },
      { accelerator: 'H100', than: 'A100', factor: 2, jobs: 1 },
    ]
    expect(told({ facts: { ownRatios } })['measured speeds']).toBe(
      'V100 0.41 times the speed of A100 on 3 of your jobs; H100 2 times the speed of A100 on 1 of your jobs',
    )
  })

  it('have the GPU memory that an earlier job used', () => {
    const measuredMemory = { jobId: 'train-a', gpus: 2, peakGiB: 14.23 }
    expect(told({ facts: { measuredMemory } })['measured memory']).toBe(
      '14.2 GiB of each of 2 GPUs in job train-a',
    )
  })

  it('have the deadline, and how long after the decision it is', () => {
    const input = { deadlineAtMs: NOW_MS + 30 * HOUR_MS }
    expect(told({ input })['deadline']).toBe('2026-11-22T06:00:00Z, 1d 6h later')
    expect(told({ input, facts: null })['deadline']).toBe('2026-11-22T06:00:00Z')
  })

  it('have the budget and what was spent before', () => {
    const spent = { ...EMPTY_LEDGER, spentMicroUsd: microUsd(3) }
    const budgetMicroUsd = microUsd(50)
    expect(told({ input: { budgetMicroUsd, ledger: spent } })['budget']).toBe(
      '$50.00, $3.00 of it spent before, $47.00 left',
    )
    expect(told({ input: { budgetMicroUsd } })['budget']).toBe(
      '$50.00, $0.00 of it spent before, $50.00 left',
    )
    expect(told({ input: { ledger: spent } })['budget']).toBe('none; $3.00 spent before')
    expect(told({ input: { ledger: { ...EMPTY_LEDGER, spentMicroUsd: 1 } } })['budget']).toBe(
      'none; <$0.0001 spent before',
    )
    expect(told({ input: { ledger: EMPTY_LEDGER } })).not.toHaveProperty('budget')
  })

  it('have the target of a migration, a delayed start and the owner', () => {
    const input = {
      target: { backend: 'ec2', capacityType: 'spot' as const },
      startsInMs: 90 * SECOND_MS,
      resolved: { ...resolved(), owner: 'alice' },
    }
    expect(told({ input })).toMatchObject({
      migration: 'its owner requested ec2:spot',
      start: 'after a pause of 1m 30s',
      owner: 'alice',
    })
    expect(told({ input: { startsInMs: 0 } })).not.toHaveProperty('start')
  })

  it.each<[words: string | undefined, Record]>([
    [undefined, { input: { attempt: 1 } }],
    [undefined, { facts: { leftShare: 0.5 } }],
    ['attempt 2, the remaining work is unknown, no checkpoint', { input: { attempt: 2 } }],
    ['attempt 2, the remaining work is unknown, no checkpoint', { input: { attempt: 2 }, facts: null }],
    [
      'attempt 3, 62 % of the work is left, newest checkpoint 2 GB, 1 interruption so far',
      {
        input: { attempt: 3, ledger: { ...EMPTY_LEDGER, interruptions: 1 } },
        facts: { leftShare: 0.623, savedBefore: { totalBytes: 2e9 } },
      },
    ],
    [
      'attempt 4, 0 % of the work is left, no checkpoint, 2 interruptions so far',
      { input: { attempt: 4, ledger: { ...EMPTY_LEDGER, interruptions: 2 } }, facts: { leftShare: 0 } },
    ],
    [
      'attempt 2, 100 % of the work is left, no checkpoint',
      { input: { attempt: 2, ledger: EMPTY_LEDGER }, facts: { leftShare: 1 } },
    ],
  ])('have the work done before a later attempt: %s', (words, record) => {
    expect(told(record)['work done']).toBe(words)
  })

  it('count the offers of each backend, with the age of the prices that were asked for', () => {
    const aged = (ageMs: number, kind: 'live' | 'static' | 'configured' = 'live') =>
      offer({ priceSource: { kind, observedAtMs: NOW_MS - ageMs } })
    expect(ofOffers(aged(0, 'configured'))['offers']).toBe('1 of here')
    expect(ofOffers(aged(9 * HOUR_MS, 'configured'), aged(5 * SECOND_MS))['offers']).toBe(
      '2 of here (prices 5s old)',
    )
    expect(ofOffers(aged(7 * SECOND_MS), aged(5 * SECOND_MS, 'static'), aged(12 * SECOND_MS))['offers']).toBe(
      '3 of here (prices 5s to 12s old)',
    )
    expect(ofOffers(aged(-HOUR_MS))['offers']).toBe('1 of here (prices 0s old)')
    const answers = [answer([aged(MINUTE_MS)]), { ...answer([]), backend: 'there' }]
    expect(told({ answers })['offers']).toBe('1 of here (prices 1m old), 0 of there')
    expect(told({ answers, facts: null })).not.toHaveProperty('offers')
  })

  it('have the reservations that somebody holds, with their free places', () => {
    const reserved = (reservationId: string, reservation: NonNullable<Offer['reservation']>): Offer =>
      offer({ capacityType: 'reserved', reservationId, reservation })
    const held = reserved('cr-1', {
      free: 1,
      total: 2,
      idleMicroUsdPerHour: microUsd(3),
      hold: { reservation: 'res-ranker', owner: 'alice' },
    })
    const full = reserved('cr-2', {
      free: 0,
      total: 4,
      idleMicroUsdPerHour: microUsd(3),
      hold: { reservation: 'res-tuner' },
    })
    const own = reserved('cr-3', { free: 1, total: 1, idleMicroUsdPerHour: 0 })
    expect(ofOffers(offer(), held, own, full)['reserved']).toBe(
      'cr-1: 1 of 2 places free, held by res-ranker of alice until it is released, costs $3.00/h while idle; ' +
        'cr-2: 0 of 4 places free, held by res-tuner until it is released',
    )
    expect(ofOffers(offer(), own)).not.toHaveProperty('reserved')
  })

  it('have the backends that did not answer, with the reason', () => {
    const silentBackends = [
      { backend: 'ec2', place: 'eu-west-1', reason: 'throttled' },
      { backend: 'modal', reason: 'no worker' },
    ]
    expect(told({ facts: { silentBackends } })['no answer']).toBe(
      'ec2 in eu-west-1: throttled; modal: no worker',
    )
  })

  it('count the offers that exceed a quota', () => {
    const beyond = offer({ availability: 'no-quota' })
    expect(ofOffers(beyond, offer(), beyond)['quotas']).toBe('2 of 3 offers exceed a quota of the account')
    expect(ofOffers(offer())).not.toHaveProperty('quotas')
  })

  it('have the offers that are avoided, the first five of them by name', () => {
    const avoid: PlanInput['avoid'] = [
      { offerKey: 'a/spot/p4/', why: 'capacity', forMs: HOUR_MS },
      { offerKey: 'b/spot/p4/x', why: 'quota', forMs: 2 * HOUR_MS },
      { offerKey: 'c/spot/p4/x', why: 'preference', forMs: MINUTE_MS },
      { offerKey: 'd/spot/p4/x', why: 'interruption', forMs: SECOND_MS },
      { offerKey: 'e/spot/p4/x', why: 'capacity', forMs: HOUR_MS },
    ]
    const five =
      'a/spot/p4 had no capacity (for another 1h); b/spot/p4/x was refused for missing quota (for another 2h); ' +
      'c/spot/p4/x is used only as a last resort (for another 1m); ' +
      'd/spot/p4/x interrupted this job (for another 1s); e/spot/p4/x had no capacity (for another 1h)'
    expect(told({ input: { avoid } })['avoided']).toBe(five)
    expect(told({ input: { avoid: [...avoid, avoid[0]!, avoid[1]!] } })['avoided']).toBe(
      `${five}; and 2 more`,
    )
  })

  it('have what the store charges and how large the data is', () => {
    expect(told({ facts: { storePrice: 'unknown' } })['store']).toBe(
      'its prices are unknown and not included',
    )
    const storePrice = { name: 'S3 in us-east-1' } as NonNullable<PlanFacts['storePrice']>
    expect(told({ facts: { storePrice } })['store']).toBe('charges as S3 in us-east-1')
    const inputSizes = [
      { source: 's3://data/a', sizeBytes: 3e9 },
      { source: 's3://data/b', sizeBytes: 12 },
    ] as PlanFacts['inputSizes']
    expect(told({ facts: { inputSizes } })['data']).toBe('s3://data/a: 3 GB, s3://data/b: 12 B')
    expect(told({ facts: { inputSizes: undefined } })).not.toHaveProperty('data')
  })
})

describe('the inputs of a decision after an attempt', () => {
  const failure = { class: 'capacity' as const, message: 'no machine of this type' }

  it('are none for a record without any', () => {
    expect(verdictInputs({})).toEqual([])
    expect(verdictInputs({ drainReason: null })).toEqual([])
  })

  it.each<[words: string, NonNullable<Parameters<typeof verdictInputs>[0]['end']>]>([
    ['the program succeeded', { kind: 'succeeded' }],
    ['the attempt stopped: lease', { kind: 'stopped', by: 'lease' }],
    ['capacity: no machine of this type', { kind: 'failed', isLaunched: true, failure }],
    [
      'capacity, before a machine was bought: no machine of this type',
      { kind: 'failed', isLaunched: false, failure },
    ],
  ])('have how it ended: %s', (text, end) => {
    expect(verdictInputs({ end })).toEqual([{ name: 'end', text }])
  })

  it('have the request to stop, the allowances, the checkpoint and the money that is left', () => {
    const ledger = { ...EMPTY_LEDGER, interruptions: 4, failures: 1, unclassified: 2 }
    const policy = { interruptionsMax: 9, failuresMax: 5, unclassifiedMax: 3 }
    const budget = { leftMicroUsd: microUsd(7), priceMaxMicroUsdPerHour: microUsd(1) }
    expect(verdictInputs({ drainReason: 'migrated', ledger, policy, hasSaved: true, budget })).toEqual([
      { name: 'request', text: 'the job asked it to stop: migrated' },
      {
        name: 'allowances',
        text: 'interruptions before: 4 of 9 allowed, failures of the program: 1 of 5 allowed, failures of unknown cause in a row: 2 of 3 allowed',
      },
      { name: 'saved', text: 'it saved a checkpoint' },
      { name: 'budget', text: '$7.00 left' },
    ])
    expect(verdictInputs({ hasSaved: false })).toEqual([{ name: 'saved', text: 'it saved no checkpoint' }])
    expect(verdictInputs({ ledger })).toEqual([])
    expect(verdictInputs({ policy })).toEqual([])
  })
})
