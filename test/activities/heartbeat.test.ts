import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { CancelledFailure } from '@temporalio/activity'
import { ActivityCancellationDetails } from '@temporalio/common'
import { beating, pause } from '../../activities/heartbeat'
import { DAY_MS } from '../../core/time/time'
import { surroundings } from './place'

afterEach(() => {
  jest.useRealTimers()
})

/** Resolves, with the reason, when the signal aborts. */
const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))

const until = (signal: AbortSignal): Promise<never> =>
  aborted(signal).then((reason) => Promise.reject(reason as Error))

describe('an activity that beats', () => {
  it.each([20_000, 300_000])(
    'beats four times in its timeout of %p ms until it is done',
    async (timeoutMs) => {
      jest.useFakeTimers()
      const env = surroundings({ heartbeatTimeoutMs: timeoutMs })
      const beats: unknown[] = []
      env.on('heartbeat', (details) => beats.push(details))
      let finish = (): void => undefined
      const work = new Promise<string>((resolve) => (finish = () => resolve('done')))
      const running = env.run(() => beating(() => work))
      await jest.advanceTimersByTimeAsync(timeoutMs / 4 - 1)
      expect(beats).toEqual([])
      await jest.advanceTimersByTimeAsync((timeoutMs * 3) / 4 + 1)
      expect(beats).toEqual(['alive', 'alive', 'alive', 'alive'])
      finish()
      expect(await running).toBe('done')
      await jest.advanceTimersByTimeAsync(2 * timeoutMs)
      expect(beats).toHaveLength(4)
    },
  )

  it('stops when it is cancelled, as cancelled', async () => {
    const env = surroundings()
    const running = env.run(() => beating(until))
    env.cancel()
    await expect(running).rejects.toBeInstanceOf(CancelledFailure)
  })

  it('is handed over when its worker shuts down: retried, neither cancelled nor failed', async () => {
    const env = surroundings()
    const running = env.run(() => beating(until))
    env.cancel('WORKER_SHUTDOWN', new ActivityCancellationDetails({ workerShutdown: true }))
    await expect(running).rejects.toMatchObject({
      type: 'transient',
      nonRetryable: false,
      message: expect.stringContaining('another one takes over'),
    })
  })

  it('stops before its time is up, so that its answer still counts', async () => {
    const env = surroundings({ startToCloseTimeoutMs: 200 })
    const startedMs = performance.now()
    const reason = await env.run(() => beating(aborted))
    // Most of a short time is for the work.
    expect(performance.now() - startedMs).toBeGreaterThan(100)
    expect(reason).toMatchObject({ name: 'TimeoutError' })
    expect(env.context.cancellationSignal.aborted).toBe(false)
  })

  it.each([
    ['five seconds before the end of a long time', 60_000, 55_000],
    ['when four fifths of a short time are over', 200, 160],
  ])('is stopped %s', async (_, startToCloseTimeoutMs, toldAtMs) => {
    jest.useFakeTimers()
    const env = surroundings({ startToCloseTimeoutMs })
    let reason: unknown
    const running = env.run(() => beating((signal) => aborted(signal).then((why) => (reason = why))))
    await jest.advanceTimersByTimeAsync(toldAtMs - 1)
    expect(reason).toBeUndefined()
    await jest.advanceTimersByTimeAsync(1)
    expect(reason).toMatchObject({ name: 'TimeoutError' })
    await running
  })

  it('may take years: a timer that long would fire at once', async () => {
    const env = surroundings({ startToCloseTimeoutMs: 3_650 * DAY_MS })
    await env.run(() =>
      beating(async (signal) => {
        await pause(30, signal)
        expect(signal.aborted).toBe(false)
      }),
    )
  })
})

describe('a pause', () => {
  it('ends at once when its signal aborts, with its reason', async () => {
    const controller = new AbortController()
    const pausing = pause(60_000, controller.signal)
    controller.abort(new Error('enough'))
    await expect(pausing).rejects.toThrow('enough')
    await expect(pause(60_000, controller.signal)).rejects.toThrow('enough')
  })

  it('leaves nothing behind on the signal: a watch takes millions of them', async () => {
    const { signal } = new AbortController()
    await pause(1, signal)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})
