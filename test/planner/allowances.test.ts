import { describe, expect, it } from '@jest/globals'
import { budgetReserveMs } from '../../core/money/budget'
import { ACCEPTANCES, type JobSpec } from '../../core/job/job'
import { spendOver } from '../../core/money/meter'
import { microUsd } from '../../core/money/money'
import { ISOLATIONS } from '../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { USEFUL_RUN_MS } from '../../planner/plan/assumptions'
import { answer, offer, plan, rejection, request, SPEC } from './wishes'
import { makePlan } from '../../planner/plan/plan'

const job = (changes: Partial<JobSpec> = {}) => ({
  spec: { ...SPEC, isInterruptible: false, durationMs: 10 * HOUR_MS, ...changes },
})

describe('the hardware that a job may share', () => {
  it.each([
    ['dedicated', ['dedicated']],
    ['shared', ['dedicated', 'shared']],
    ['community', ['dedicated', 'shared', 'community']],
    [undefined, ['dedicated', 'shared']],
  ] as const)('with isolation %s is %j', (isolation, taken) => {
    const wish = job(isolation === undefined ? {} : { isolation })
    expect(ISOLATIONS.filter((one) => rejection(offer({ isolation: one }), wish) === undefined)).toEqual(
      taken,
    )
  })

  it('counts as dedicated where the offer says nothing', () => {
    expect(rejection(offer(), job({ isolation: 'dedicated' }))).toBeUndefined()
  })

  it('is reported with what allows it', () => {
    expect(rejection(offer({ isolation: 'community' }), job())).toMatchObject({
      why: 'unfit',
      reason: "its hardware is a private owner's; `isolation: community` allows it",
    })
  })
})

describe('capacity on demand that its provider may take back', () => {
  const preemptible = offer({ isPreemptible: true })

  it('is left out for a job that is not interruptible, with what allows it', () => {
    expect(rejection(preemptible, job())).toMatchObject({
      why: 'unfit',
      reason:
        'it can be interrupted although it is on demand; `interruptible: true` or `accept: preemptible-on-demand` allows it',
    })
  })

  it('is left out for what no consent changes, if there is such a reason', () => {
    const shape = { cpus: 8, memoryGiB: 32, gpus: 8 }
    const larger = job({ resources: { gpus: { min: 64 } } })
    expect(rejection({ ...preemptible, shape }, larger)?.reason).toBe('GPUs: has 8, requested 64+')
    const shared = offer({ isPreemptible: true, isolation: 'shared' })
    expect(rejection(shared, job({ isolation: 'dedicated' }))?.reason).toContain('`isolation: shared`')
  })

  it.each([
    ['is marked interruptible', { isInterruptible: true }],
    ['accepts it', { accepts: ['preemptible-on-demand'] }],
  ] satisfies [string, Partial<JobSpec>][])(
    'is taken by a job that %s, which sees the risk',
    (_name, how) => {
      const [placement] = plan([{ ...preemptible, interruptionsPerHour: 0.2 }], job(how)).placements
      // Without checkpoints it starts over, so that most of its machines are lost before it is done.
      const count = 'isInterruptible' in how ? '2' : '[45]'
      expect(placement!.risks[0]).toMatch(
        new RegExp(`^about ${count} interruptions; work since the last checkpoint is repeated$`),
      )
      expect(placement!.reasons.join()).toContain('can be interrupted, although on demand')
      const [calm] = plan([offer()], job(how)).placements
      expect(placement!.costMicroUsd).toBeGreaterThan(calm!.costMicroUsd)
      expect(calm!.reasons.join()).toContain('not interruptible')
    },
  )

  it('does not let such a job onto spot machines', () => {
    const accepting = job({ accepts: ['preemptible-on-demand'] })
    expect(rejection(offer({ capacityType: 'spot' }), accepting)?.reason).toBe(
      'it is interruptible, but the job is not marked interruptible',
    )
  })

  it('is shaky where it was just taken back', () => {
    const lost = { forMs: HOUR_MS, why: 'interruption', offerKey: 'here/on-demand/small/a' } as const
    const [placement] = plan([preemptible], { ...job({ isInterruptible: true }), avoid: [lost] }).placements
    expect(placement!.risks).toContain(
      'this job recently lost a machine there, so another interruption is likely',
    )
  })
})

describe('a backend that bills until we end the machine', () => {
  const planned = (changes: Partial<JobSpec>, remainingMicroUsd?: number) =>
    makePlan(
      request([], {
        ...job(changes),
        answers: [answer([offer()], { billsUntil: 'terminate' })],
        remainingMicroUsd,
      }),
    )
  const on = (changes: Partial<JobSpec>, remainingMicroUsd?: number) =>
    planned(changes, remainingMicroUsd).rejections[0]
  const BUDGET = microUsd(1_000)

  it('is left out under a budget, with what allows it', () => {
    expect(on({}, BUDGET)).toMatchObject({
      why: 'unfit',
      reason:
        'it is billed until our call ends it, so the budget fails if we fail; `accept: billed-until-terminated` allows it',
    })
  })

  it('is named as a risk under a budget that the job risks, and only then', () => {
    const accepts: JobSpec['accepts'] = ['billed-until-terminated']
    const risk =
      'it is billed until our call ends it, so its cost may exceed the budget while the control plane, the store or the provider is down; `crucible gc --alone` on another host limits that'
    expect(planned({ accepts }, BUDGET).placements[0]!.risks).toContain(risk)
    expect(planned({ accepts }).placements[0]!.risks).not.toContain(risk)
    const elsewhere = request([offer()], { remainingMicroUsd: BUDGET })
    expect(makePlan(elsewhere).placements[0]!.risks).not.toContain(risk)
  })

  it('must have the minute within its budget in which we end it', () => {
    const accepts: JobSpec['accepts'] = ['billed-until-terminated']
    const leastMs = USEFUL_RUN_MS + budgetReserveMs(DEFAULT_TIMING) + MINUTE_MS
    const least = spendOver(leastMs, microUsd(1))
    const short = { accepts, durationMs: MINUTE_MS }
    expect(on(short, least)).toBeUndefined()
    expect(on(short, least - 300)).toMatchObject({ reason: expect.stringContaining('only pays for') })
  })

  it('is taken without a budget, and with its consent', () => {
    expect(on({})).toBeUndefined()
    expect(on({ accepts: ['billed-until-terminated'] }, BUDGET)).toBeUndefined()
    expect(
      on({ accepts: [...ACCEPTANCES].filter((one) => one === 'preemptible-on-demand') }, BUDGET),
    ).toBeDefined()
  })
})
