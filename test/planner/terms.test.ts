/** What a provider's own terms change in plans and orders: queues, images, one offer at a time, steps of billing, discounts. */
import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../core/activities'
import { attemptBudget } from '../../core/money/budget'
import type { Capabilities } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import { spendOver } from '../../core/money/meter'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import type { Order, Placement } from '../../core/job/plan'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { makeOrder } from '../../planner/plan/order'
import { makePlan } from '../../planner/plan/plan'
import { endFromLoss } from '../../planner/policy/ending'
import { answer, NOW_MS, offer, plan, rejection, request, SPEC } from './wishes'

interface Wish {
  offers?: Offer[]
  capabilities?: Partial<Capabilities>
  spec?: Partial<JobSpec>
  budgetMicroUsd?: number
  bundle?: PlanInput['bundle']
}

function ordered({ offers = [offer()], capabilities, spec, budgetMicroUsd, bundle = null }: Wish): Order {
  const asked = {
    ...request(offers, { spec: { ...SPEC, ...spec } }),
    answers: [answer(offers, capabilities)],
  }
  const input: PlanInput = {
    jobId: 'job-1',
    deployment: 'dep-1',
    recordSeq: 2,
    attempt: 1,
    bundle,
    avoid: [],
    resolved: {
      spec: asked.spec,
      timing: DEFAULT_TIMING,
      runnerSha256: '',
      storeUrl: '',
      policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
    },
    ledger: EMPTY_LEDGER,
    budgetMicroUsd,
  }
  return makeOrder(makePlan(asked), input, asked.answers)
}
const placed = (
  one: Offer,
  capabilities: Partial<Capabilities> = {},
  spec: Partial<JobSpec> = {},
): Placement =>
  plan([one], { answers: [answer([one], capabilities)], spec: { ...SPEC, ...spec } }).placements[0]!

describe('an order to a provider that takes one type at one place', () => {
  const offers = ['a', 'b', 'c'].map((place) => offer({ place }))

  it('names the best offer only', () => {
    expect(ordered({ offers }).offers.map(({ place }) => place)).toEqual(['a', 'b', 'c'])
    expect(ordered({ offers, capabilities: { offersPerOrder: 'one' } }).offers).toEqual([offers[0]])
  })
})

describe('an order to a provider with a limit on launches', () => {
  it('waits in the queue of its launches, and no other order does', () => {
    expect(ordered({ capabilities: { pace: { launchesPerMinute: 5 } } }).isPaced).toBe(true)
    expect(ordered({ capabilities: { pace: { observeMs: 5_000 } } }).isPaced).toBeUndefined()
    expect(ordered({}).isPaced).toBeUndefined()
  })
})

describe('an order to a provider that bills until our call', () => {
  it('keeps the cost of the minute until then from the machine, also after an extension', () => {
    const order = ordered({
      capabilities: { billsUntil: 'terminate' },
      budgetMicroUsd: microUsd(6),
      spec: { accepts: ['billed-until-terminated'] },
    })
    const minute = spendOver(MINUTE_MS, microUsd(1))
    expect(order.runner.limits.budget!.microUsd).toBe(microUsd(6) - minute)
    // As the job computes its new limits.
    expect(attemptBudget(microUsd(12), order)!.microUsd).toBe(microUsd(12) - minute)
    expect(ordered({ budgetMicroUsd: microUsd(6) }).runner.limits.budget!.microUsd).toBe(microUsd(6))
  })
})

it('has the shell of the job, and whether its outputs are required', () => {
  expect(ordered({ spec: { shell: 'sh', requiresOutputs: true } }).runner).toMatchObject({
    shell: 'sh',
    requiresOutputs: true,
  })
})

it('has the tags of the job', () => {
  expect(ordered({ spec: { tags: { project: 'ranker' } } }).tags).toEqual({ project: 'ranker' })
})

describe('a container image', () => {
  const spec: Partial<JobSpec> = { image: 'torch:2', imageLogin: { username: 'me', secret: 'TOKEN' } }

  it('is run by the runner, or by the provider itself', () => {
    const byRunner = ordered({ spec })
    expect(byRunner.image).toBeUndefined()
    expect(byRunner.runner).toMatchObject({ image: 'torch:2', imageLogin: spec.imageLogin })
    const byProvider = ordered({ spec, capabilities: { imageRunner: 'provider' } })
    expect(byProvider).toMatchObject({ image: 'torch:2', runner: { image: null } })
    expect(byProvider.runner.imageLogin).toBeUndefined()
    expect(ordered({ capabilities: { imageRunner: 'provider' } }).image).toBeUndefined()
  })

  it('gets the requirements of the code from a provider that runs it, and from no other', () => {
    const requirements = ['numpy>=2']
    const bundle = { sha256: '0', sizeBytes: 1, files: 1, requirements }
    expect(ordered({ bundle, capabilities: { imageRunner: 'provider' } }).requirements).toEqual(requirements)
    expect(ordered({ bundle }).requirements).toBeUndefined()
  })

  it('that the provider runs is not given the login of the job, which the plan says', () => {
    const words = 'its provider runs the image with its own registry login, so `image_login` is not used'
    expect(placed(offer(), { imageRunner: 'provider' }, spec).risks).toContain(words)
    expect(placed(offer(), {}, spec).risks).not.toContain(words)
  })

  it('that no backend can run is refused at plan time, with the capability', () => {
    const answers = [answer([offer()], { imageRunner: 'none' })]
    expect(rejection(offer(), { answers, spec: { ...SPEC, ...spec } })).toMatchObject({
      why: 'unfit',
      reason: 'here runs no container images',
    })
  })
})

describe('an offer that may be queued', () => {
  const limited = offer({ runMsMax: 24 * HOUR_MS })

  it('tells the machine how long it may wait, and its limits from its own beginning', () => {
    const { runner } = ordered({ offers: [limited], capabilities: { queues: true } })
    expect(runner).toMatchObject({ queueMs: DEFAULT_TIMING.queueMs, runMsMax: 24 * HOUR_MS })
    expect(runner.usableUntilMs).toBeUndefined()
    const unqueued = ordered({ offers: [limited] }).runner
    expect(unqueued.usableUntilMs).toBe(NOW_MS + 24 * HOUR_MS)
    expect('queueMs' in unqueued || 'runMsMax' in unqueued).toBe(false)
  })

  it('says so in the plan', () => {
    const words = "the launch may wait in the provider's queue, which costs nothing"
    expect(placed(offer(), { queues: true }).risks).toContain(words)
    expect(placed(offer()).risks).not.toContain(words)
  })

  it('that was dropped while it waited is missing capacity, whatever the provider calls it', () => {
    const gone = { state: 'gone', cause: 'interrupted' } as const
    expect(endFromLoss(gone, { hasSpoken: false, wasOnlyQueued: true })).toMatchObject({
      isLaunched: false,
      failure: { class: 'capacity' },
    })
    expect(endFromLoss(gone, { hasSpoken: false })).toMatchObject({ failure: { class: 'interrupted' } })
  })
})

describe('an offer that is billed in steps', () => {
  const perHour = offer({ billedInStepsOfMs: HOUR_MS })
  const spec = { durationMs: 61 * MINUTE_MS, isInterruptible: false }

  it('is estimated, admitted and ordered by whole steps', () => {
    expect(placed(offer(), {}, spec).costMicroUsd).toBeLessThan(microUsd(1.1))
    expect(placed(perHour, {}, spec).costMicroUsd).toBe(microUsd(2))
    const budget = { remainingMicroUsd: microUsd(1.5), isFirst: true, spec: { ...SPEC, ...spec } }
    expect(rejection(offer(), budget)).toBeUndefined()
    expect(rejection(perHour, budget)?.reason).toContain('cost about $2.03; the budget is $1.50')
    // Less than one step is no time at all.
    expect(rejection(perHour, { remainingMicroUsd: microUsd(0.9) })?.reason).toContain('only pays for 0s')
    const { runner, billedInStepsOfMs } = ordered({ offers: [perHour], budgetMicroUsd: microUsd(9) })
    expect([billedInStepsOfMs, runner.limits.budget?.billedInStepsOfMs]).toEqual([HOUR_MS, HOUR_MS])
  })

  it('is not ordered together with one that is billed otherwise', () => {
    const dearer = offer({ place: 'b', priceMicroUsdPerHour: microUsd(1.9) })
    expect(ordered({ offers: [perHour, dearer] }).offers).toEqual([perHour])
  })
})

describe('an offer whose provider ends a machine after a while', () => {
  it('is not ordered together with one that has another limit: the machine knows one', () => {
    const [day, hours] = [24, 12].map((count) => offer({ place: `${count}`, runMsMax: count * HOUR_MS }))
    expect(ordered({ offers: [day!, hours!] }).offers).toHaveLength(1)
    const same = offer({ place: 'other', runMsMax: day!.runMsMax! })
    expect(ordered({ offers: [day!, same] }).offers).toHaveLength(2)
  })
})

describe('what a plan says about money', () => {
  it('names a discount with the list price, and what is still billed when the machine is off', () => {
    const one = offer({
      priceMicroUsdPerHour: microUsd(2.214),
      listPriceMicroUsdPerHour: microUsd(2.46),
      stillBilled: 'the file system, $0.20 per GB a month',
    })
    const { reasons } = placed(one)
    expect(reasons[0]).toMatch(/^\$2\.21\/h, 10 % discount on \$2\.46\/h, about \$2\.\d\d in/)
    expect(reasons).toContain('still billed when off: the file system, $0.20 per GB a month')
    expect(placed(offer()).reasons.join()).not.toMatch(/discount|still billed/)
  })
})

describe('capacity on demand that its provider may take back', () => {
  const preemptible = offer({ isPreemptible: true, place: 'a', priceMicroUsdPerHour: microUsd(0.5) })

  it('is no more reliable than spot', () => {
    const places = plan([preemptible, offer({ place: 'z' })], {
      spec: { ...SPEC, optimize: 'reliability' },
    }).placements
    expect(places.map(({ offer: { place } }) => place)).toEqual(['z', 'a'])
  })

  it('gets the source of its notice', () => {
    const notice = { kind: 'file', path: '/notice' } as const
    expect(ordered({ offers: [preemptible], capabilities: { notice } }).runner.notice).toEqual(notice)
    expect(ordered({ capabilities: { notice } }).runner.notice).toEqual({ kind: 'none' })
  })
})
