/** Requests that reach a job while its attempt runs: what the attempt is asked for, and how often. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { JobStatus } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type * as Job from '../../workflows/job/job'
import { answersWith, DONE, INPUT, NOW_MS, SETTLEMENT } from './job-script'
import { played, playedActivities, playedWorkflow } from './played-job'
import { CancellationScope } from './scopes'

jest.mock('@temporalio/workflow', () => playedWorkflow())
jest.mock('../../workflows/activities', () => playedActivities())
const { job } = jest.requireActual<typeof Job>('../../workflows/job/job')

const status = (): JobStatus => played.handlers.get('status')!.handle() as JobStatus

beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  played.reset()
  played.answers = answersWith({ decisions: [DONE], settlements: [] })
})

describe('a running attempt', () => {
  let end: (outcome: object) => void

  /** Begins a job whose attempt runs until `end` is called. */
  async function begin(): Promise<void> {
    played.answers['attempt'] = () => new Promise((resolve) => (end = resolve))
    void job(INPUT)
    await played.settled()
    played.asked.length = 0
  }

  it('is asked once to save and stop when its job is cancelled', async () => {
    await begin()
    CancellationScope.root.cancel()
    await played.settled()
    const request = { reason: 'cancelled', windowMs: 110 * SECOND_MS }
    expect(played.asked).toEqual([['stopAttempt', { jobId: 'job-1', attempt: 1, request }]])
    expect(status()).toMatchObject({ state: 'stopping', reason: 'cancelling' })
    // The shorter window of an impatient owner.
    await played.tell('cancelNow')
    await played.settled()
    expect(played.inputsOf('stopAttempt')[1]).toMatchObject({ request: { windowMs: 2 * SECOND_MS } })
    end({ settlement: SETTLEMENT })
    await played.settled()
    expect(played.inputsOf('decide')).toMatchObject([{ drainReason: 'cancelled' }])
  })

  it('gets a signal if the local activity that sends it fails, and needs none once it has ended', async () => {
    await begin()
    played.answers['stopAttempt'] = () => Promise.reject(new Error('no answer'))
    played.answers['signal'] = () => Promise.reject(new Error('it has ended'))
    await played.tell('migrate', {})
    await played.settled()
    const request = { reason: 'migrated', windowMs: 110 * SECOND_MS }
    expect(played.inputsOf('signal')).toEqual([{ name: 'drain', request }])
    end({ settlement: SETTLEMENT })
    await played.settled()
    expect(played.names()).toContain('finishJob')
  })

  it('gets each new limit under the next number, and is not asked to stop again with it', async () => {
    await begin()
    await played.tell('migrate', {})
    await played.settled()
    await played.tell('extend', { budgetMicroUsd: microUsd(30) })
    await played.settled()
    await played.tell('extend', { deadlineAtMs: NOW_MS + 20 * HOUR_MS })
    await played.settled()
    const budget = { microUsd: microUsd(30), priceMaxMicroUsdPerHour: microUsd(3) }
    const limits = { seq: 1, deadlineAtMs: NOW_MS + 10 * HOUR_MS, budget }
    expect(played.inputsOf('signal')).toEqual([
      { name: 'extend', request: { limits } },
      { name: 'extend', request: { limits: { ...limits, seq: 2, deadlineAtMs: NOW_MS + 20 * HOUR_MS } } },
    ])
    expect(played.inputsOf('stopAttempt')).toHaveLength(1)
  })

  it('is asked to stop when the deadline of its job is near, and by no timer of an earlier deadline', async () => {
    await begin()
    await played.tell('extend', { deadlineAtMs: NOW_MS + 20 * HOUR_MS })
    const [earlier, later] = played.timers
    expect(later!.forMs).toBe(20 * HOUR_MS - 2 * MINUTE_MS)
    earlier!.fire()
    await played.settled()
    expect(played.inputsOf('stopAttempt')).toEqual([])
    later!.fire()
    await played.settled()
    expect(played.inputsOf('stopAttempt')).toMatchObject([{ request: { reason: 'deadline' } }])
  })

  it('that closes leaves nothing to pass on', async () => {
    await begin()
    end({ settlement: SETTLEMENT })
    await played.settled()
    expect(played.names()).toEqual(['decide', 'finishJob'])
    expect(played.waiting).toEqual([])
  })
})

describe('the deadline of a job', () => {
  it('has a timer that leaves the time to save and stop', async () => {
    await played.endOf(job(INPUT))
    // 110 s to save, 10 s to power off.
    expect(played.timers.map(({ forMs }) => forMs)).toEqual([10 * HOUR_MS - 2 * MINUTE_MS])
  })
})
