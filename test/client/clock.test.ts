import { describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { DeploymentClock } from '../../client/clock'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { NOW } from './world'

/** A server with one worker, whose newest poll has this time, and with a clock of its own. */
function serverWith(pollAtMs: number | undefined, presentAtMs = NOW): Client {
  const poller = (identity: string, atMs: number): object => ({
    identity,
    lastAccessTime: { seconds: Math.floor(atMs / SECOND_MS) },
  })
  const pollers = pollAtMs === undefined ? [] : [poller('worker', pollAtMs)]
  return {
    withDeadline: (_: number, call: () => Promise<unknown>) => call(),
    withAbortSignal: (_: AbortSignal, call: () => Promise<unknown>) => call(),
    workflowService: {
      describeTaskQueue: async () => ({ pollers }),
      pollActivityTaskQueue: ({ identity }: { identity: string }) => {
        pollers.push(poller(identity, presentAtMs))
        return new Promise(() => undefined)
      },
    },
  } as unknown as Client
}

const OFFS: readonly [name: string, aheadMs: number, remark: RegExp][] = [
  ['two hours ahead', 2 * HOUR_MS, /about 2h ahead of the deployment's/],
  ['two hours behind', -2 * HOUR_MS, /about 2h behind the deployment's/],
  ['a day ahead', DAY_MS, /about 1d ahead of/],
  ['five minutes behind', -5 * MINUTE_MS, /about 5m behind/],
]

describe('the clock of a deployment', () => {
  it.each(OFFS)('corrects a computer that is %s', async (_, aheadMs, remark) => {
    const clock = new DeploymentClock(
      () => NOW + aheadMs,
      () => undefined,
    )
    await clock.compareWith(serverWith(NOW - 20 * SECOND_MS), 'default')
    expect(Math.abs(clock.now() - NOW)).toBeLessThanOrEqual(MINUTE_MS)
    expect(clock.remark).toMatch(remark)
  })

  it.each([
    ['a poll of the last minute', NOW - 70 * SECOND_MS],
    ['a poll of a clock that is slightly ahead', NOW + 20 * SECOND_MS],
    ['the last poll of a worker that is gone', NOW - 4 * MINUTE_MS],
    ['no worker', undefined],
  ])("is the computer's own for %s", async (_, pollAtMs) => {
    const clock = new DeploymentClock(
      () => NOW,
      () => undefined,
    )
    await clock.compareWith(serverWith(pollAtMs), 'default')
    expect({ now: clock.now(), remark: clock.remark }).toEqual({ now: NOW, remark: undefined })
  })

  it.each([2 * HOUR_MS, -2 * HOUR_MS])(
    'refuses to sign after a step of the server by %d ms that no worker has shown yet',
    async (byMs) => {
      const clock = new DeploymentClock(
        () => NOW,
        () => undefined,
      )
      const server = serverWith(NOW - 20 * SECOND_MS, NOW + byMs)
      await clock.compareWith(server, 'default')
      expect(() => clock.check()).not.toThrow()
      await clock.compareExactly(server, 'default')
      expect(() => clock.check()).toThrow(/about 2h (?:ahead of|behind) the deployment's/)
    },
  )

  it('follows the store, which is exact, and needs no worker', () => {
    const clock = new DeploymentClock(
      () => NOW + 2 * HOUR_MS,
      () => -2 * HOUR_MS,
    )
    expect(clock.now()).toBe(NOW)
  })

  it.each([
    ['seconds after a slow answer of the store', -20 * SECOND_MS, undefined],
    ['a store of another clock, while the server agrees', -3 * HOUR_MS, NOW - 10 * SECOND_MS],
  ])('is not corrected by %s', async (_, offsetMs, pollAtMs) => {
    const clock = new DeploymentClock(
      () => NOW,
      () => offsetMs,
    )
    await clock.compareWith(serverWith(pollAtMs), 'default')
    expect({ now: clock.now(), remark: clock.remark }).toEqual({ now: NOW, remark: undefined })
  })

  it('is as exact as that of the store where both agree', async () => {
    const clock = new DeploymentClock(
      () => NOW + 2 * HOUR_MS,
      () => -2 * HOUR_MS,
    )
    await clock.compareWith(serverWith(NOW - 50 * SECOND_MS), 'default')
    expect(clock.now()).toBe(NOW)
  })

  it('is the own one if the server does not answer', async () => {
    const clock = new DeploymentClock(
      () => NOW,
      () => undefined,
    )
    const silent = { withDeadline: () => Promise.reject(new Error('late')) } as unknown as Client
    await clock.compareWith(silent, 'default')
    expect(clock.now()).toBe(NOW)
  })
})
