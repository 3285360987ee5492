import { describe, expect, it } from '@jest/globals'
import type { PlanInput } from '../../../core/activities'
import type { JobSpec } from '../../../core/job/job'
import { EMPTY_LEDGER } from '../../../core/job/ledger'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { BOOT } from '../../../planner/plan/assumptions'
import { makeOrder } from '../../../planner/plan/order'
import { answer, NOW_MS, offer, plan, rejection, SPEC } from '../wishes'

const LIMITED = offer({ runMsMax: 24 * HOUR_MS })
const RESERVE_MS = DEFAULT_TIMING.drainMs + DEFAULT_TIMING.powerOffMs + CLOCK_SLACK_MS

const job = ({ checkpoint = {}, ...changes }: Partial<JobSpec>) => ({
  spec: { ...SPEC, isInterruptible: false, checkpoint, ...changes },
})

describe('an offer whose machines may run for a day', () => {
  it('is left out for a longer job that cannot resume, with the reason', () => {
    expect(rejection(LIMITED, job({ durationMs: 30 * HOUR_MS }))).toMatchObject({
      why: 'unfit',
      reason:
        'its provider ends a machine after 1d; the job needs 1d 6h of work, and 2m 30s to save and stop, and saves no checkpoints (set `checkpoint: { directory: ... }`)',
    })
  })

  it.each([
    ['declares its checkpoints', { checkpoint: { directory: 'checkpoints' } }],
    ['is marked interruptible', { isInterruptible: true }],
  ])('takes a longer job that %s, and counts the machines that it needs', (_name, how) => {
    const durationMs = 60 * HOUR_MS
    const [placement] = plan([LIMITED], job({ ...how, durationMs })).placements
    expect(placement!.risks).toContain(
      'its provider ends a machine after 1d; unfinished work then resumes from its checkpoint',
    )
    const [free] = plan([offer()], job({ ...how, durationMs })).placements
    // Two changes of machines.
    const lostMs = placement!.durationMs - free!.durationMs
    expect(lostMs).toBeGreaterThan(2 * BOOT.middle)
    expect(lostMs).toBeLessThan(30 * MINUTE_MS)
    expect(placement!.costMicroUsd).toBeGreaterThan(free!.costMicroUsd)
  })

  it('takes a job that is done in time, to the millisecond', () => {
    const mostMs = 24 * HOUR_MS - RESERVE_MS
    expect(rejection(LIMITED, job({ durationMs: mostMs }))).toBeUndefined()
    expect(rejection(LIMITED, job({ durationMs: mostMs + 1 }))).toBeDefined()
  })

  it('says what happens to a job of unknown duration that saves nothing', () => {
    expect(plan([LIMITED], job({})).placements[0]!.risks).toContain(
      'its provider ends a machine after 1d; unfinished work then starts over, because the job saves no checkpoints',
    )
  })

  it('comes after one without such a limit at the same price, where the job is longer', () => {
    const spec = job({ isInterruptible: true, durationMs: 30 * HOUR_MS })
    const places = plan([LIMITED, offer({ place: 'z' })], spec).placements.map(
      ({ offer: { place } }) => place,
    )
    expect(places).toEqual(['z', 'a'])
  })
})

it('a limit too short to save and stop suits no job', () => {
  const reason = rejection(offer({ runMsMax: 3 * MINUTE_MS }), job({ isInterruptible: true }))?.reason
  expect(reason).toBe(
    'its provider ends a machine after 3m, less than 1m of work, and 2m 30s to save and stop',
  )
})

it.each([
  ['the limit', { runMsMax: HOUR_MS }, 0, HOUR_MS],
  ['the limit since the order went out', { runMsMax: HOUR_MS }, 5 * MINUTE_MS, HOUR_MS + 5 * MINUTE_MS],
  [
    'a cut-off that comes first',
    { runMsMax: HOUR_MS, usableUntilMs: NOW_MS + 20 * MINUTE_MS },
    0,
    20 * MINUTE_MS,
  ],
])('the runner must leave by %s', (_name, changes, startsInMs, untilMs) => {
  const offers = [offer(changes)]
  const input: PlanInput = {
    jobId: 'job-1',
    deployment: 'dep-1',
    recordSeq: 2,
    attempt: 1,
    bundle: null,
    avoid: [],
    resolved: {
      spec: SPEC,
      timing: DEFAULT_TIMING,
      runnerSha256: '',
      storeUrl: '',
      policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
    },
    ledger: EMPTY_LEDGER,
  }
  const order = makeOrder(plan(offers, { startsInMs }), input, [answer(offers)])
  expect(order.runner.usableUntilMs).toBe(NOW_MS + untilMs)
})
