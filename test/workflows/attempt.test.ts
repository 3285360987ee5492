/** An attempt from its order to its settlement: what it asks of the world, what it shows, and how it ends. */
import { describe, expect, it } from '@jest/globals'
import type { Settlement } from '../../core/activities'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import {
  HANDLE,
  launched,
  LOST,
  NOW_MS,
  page,
  SAVED,
  sees,
  settledAs,
  settlementOf,
  start,
  status,
} from './attempts'
import { expire, openNames, refusal, reply, settle, signal, timers, world } from './scripted'

const { drainMs, powerOffMs, beatMs } = DEFAULT_TIMING

describe('an attempt', () => {
  it('orders its machine, watches it until it is over, settles it, and is what the settlement says', async () => {
    const { input, ended } = start()
    const { order, timing } = input
    expect(status()).toEqual({ state: 'provisioning', reason: 'launching', handle: null })
    expect(page()).toEqual([
      '**provisioning** (launching)',
      '- requested: here spot, at most `$3.00` per hour',
    ])
    expect(await reply('launch', { kind: 'launched', handle: HANDLE })).toEqual({ order, recordSeq: 3 })
    const watched = { order, handle: HANDLE, timing, isRunning: false, warned: null }
    expect(await sees({ kind: 'running' })).toEqual(watched)
    expect(status()).toEqual({ state: 'running', reason: 'training', handle: HANDLE })
    expect(page()).toEqual([
      '**running**',
      '- requested: here spot, at most `$3.00` per hour',
      '- machine: spot p5 eu-west-1a, `$2.00` per hour (`i-1`)',
    ])
    const end = { kind: 'succeeded' }
    expect(await sees({ kind: 'over', end })).toEqual({ ...watched, isRunning: true })
    expect(await settledAs({ kind: 'succeeded' })).toEqual({
      order,
      timing,
      handle: HANDLE,
      end,
      drainReason: null,
      windowMs: drainMs,
      recordSeq: 4,
    })
    expect(await ended).toEqual({ settlement: settlementOf({ kind: 'succeeded' }) })
    expect(status()).toMatchObject({ state: 'succeeded', reason: 'completed' })
    expect(page()).toEqual([
      '**succeeded**',
      '- requested: here spot, at most `$3.00` per hour',
      '- machine: spot p5 eu-west-1a, `$2.00` per hour (`i-1`)',
      '- cost: `$1.50`',
    ])
    expect(world.attributes).toEqual([
      { state: 'running', reason: 'training' },
      { state: 'succeeded', reason: 'completed' },
    ])
    expect(openNames()).toEqual([])
  })

  it.each([
    [LOST, { state: 'interrupted', reason: 'interrupted' }, '**interrupted**: Taken back.'],
    [
      { kind: 'failed', isLaunched: true, failure: { class: 'workload', message: 'Exit code 1.' } },
      { state: 'failed', reason: 'workload' },
      '**failed** (workload): Exit code 1.',
    ],
  ] as [Settlement['end'], object, string][])(
    'that failed closes as failed, with its outcome: %j',
    async (end, shown, head) => {
      const { ended } = await launched()
      await sees({ kind: 'over', end })
      await settledAs(end)
      await expect(ended).rejects.toMatchObject({
        type: 'attempt-failed',
        nonRetryable: true,
        message: end.kind === 'failed' && end.failure.message,
        details: [{ settlement: settlementOf(end) }],
      })
      expect(status()).toMatchObject(shown)
      expect(world.attributes.at(-1)).toEqual(shown)
      expect(page()[0]).toBe(head)
    },
  )

  it('says what its place was planned with', async () => {
    const forecast = {
      cost: { lowMicroUsd: 1e6, highMicroUsd: 3e6 },
      finish: { lowMs: HOUR_MS, highMs: 3 * HOUR_MS },
    }
    await launched({ expected: { costMicroUsd: 2e6, durationMs: 2 * HOUR_MS, forecast } })
    expect(page()).toContain('- expected: `$2.00` (`$1.00` to `$3.00`) in 2h (1h to 3h)')
  })

  it('whose machine did not come is settled without one', async () => {
    const { ended } = start()
    const failure = { class: 'capacity', message: 'None left.' }
    await reply('launch', { kind: 'refused', failure })
    const end = { kind: 'failed', isLaunched: false, failure }
    expect(await settledAs(end as Settlement['end'])).toMatchObject({ handle: null, end, windowMs: drainMs })
    await expect(ended).rejects.toMatchObject({ message: 'None left.' })
    expect(world.asked).not.toContain('watch')
  })
})

describe('the queries and signals of an attempt', () => {
  it('say in the Temporal UI what they are for', () => {
    start()
    expect([...world.handlers.keys()].sort()).toEqual(['drain', 'extend', 'retry', 'status'])
    for (const words of world.descriptions) expect(words).toMatch(/^[A-Z].*\.$/)
  })
})

describe('the pause before an order', () => {
  const PAUSE = { forMs: 5 * MINUTE_MS, reason: 'interrupted', message: 'Taken back twice.' } as const

  it('is shown, and over at its time', async () => {
    start({ pause: PAUSE })
    expect(status().reason).toBe('waits until 2026-11-28T12:05:00Z')
    expect(page()[0]).toBe('**provisioning** (waits until 2026-11-28T12:05:00Z): Taken back twice.')
    await settle()
    expect(timers()).toEqual({ 'before trying again': 5 * MINUTE_MS })
    expect(openNames()).toEqual([])
    await expire('before trying again')
    expect(openNames()).toEqual(['launch'])
    expect(page()[0]).toBe('**provisioning** (launching)')
  })

  it('ends when somebody asks for a retry', async () => {
    start({ pause: PAUSE })
    await signal('retry')
    expect(openNames()).toEqual(['launch'])
  })

  it('ends with a request to stop: nothing is ordered, and what was not sent is withdrawn', async () => {
    const { input, ended } = start({ pause: PAUSE })
    await signal('drain', { reason: 'cancelled', windowMs: 20_000 })
    const withdrawn = await reply('withdraw', { settlement: settlementOf(SAVED) })
    expect(withdrawn).toEqual({ order: input.order, end: SAVED, recordSeq: 4 })
    expect(await ended).toEqual({ settlement: settlementOf(SAVED) })
    expect(world.asked).toEqual(['withdraw'])
  })

  it('with a request to stop is settled if something was sent after all', async () => {
    const { ended } = start({ pause: PAUSE })
    await signal('drain', { reason: 'cancelled', windowMs: 20_000 })
    await reply('withdraw', { settlement: null })
    const settling = { handle: null, end: SAVED, drainReason: 'cancelled', windowMs: 0 }
    expect(await settledAs(SAVED)).toMatchObject(settling)
    expect(await ended).toEqual({ settlement: settlementOf(SAVED) })
  })
})

describe('an order that nothing was sent of', () => {
  it('is over without a settlement', async () => {
    const { ended } = start()
    await reply('launch', { kind: 'unserved' })
    const failure = {
      class: 'capacity',
      message: 'No worker of here has taken the order: none is running, or all are busy.',
    }
    const end = { kind: 'failed', isLaunched: false, failure } as Settlement['end']
    expect(await reply('withdraw', { settlement: settlementOf(end) })).toMatchObject({ end })
    await expect(ended).rejects.toMatchObject({ type: 'attempt-failed' })
    expect(world.asked).toEqual(['launch', 'withdraw'])
  })
})

describe('a machine that its provider queues', () => {
  const QUEUED = {
    runnerStart: 'after-launch',
    runner: { queueMs: 15 * MINUTE_MS, limits: { budget: null } },
  }

  it('is started when it has left the queue, with its time from then', async () => {
    await launched(QUEUED)
    expect(openNames()).toEqual(['watch'])
    expect(await sees({ kind: 'queued' })).toMatchObject({ isQueued: false, isRunning: false })
    expect(status()).toEqual({ state: 'provisioning', reason: 'queued', handle: HANDLE })
    expect(page()[0]).toBe(
      "**provisioning** (queued): In the provider's queue since 2026-11-28T12:00:00Z, which costs nothing. After 15m another offer is tried.",
    )
    const watched = await sees({ kind: 'begun', fromAtMs: NOW_MS - MINUTE_MS })
    expect(watched).toMatchObject({ isQueued: true })
    expect(page()[0]).toBe('**provisioning** (starting)')
    expect(await reply('start')).toMatchObject({ handle: HANDLE, withinMs: 59 * MINUTE_MS })
    expect(await sees({ kind: 'running' })).toEqual(
      expect.not.objectContaining({ isQueued: expect.anything() }),
    )
  })

  it('is over if it cannot be started', async () => {
    await launched(QUEUED)
    await sees({ kind: 'begun', fromAtMs: NOW_MS })
    await reply('start', refusal({ class: 'auth', message: 'No rights.' }))
    expect(await settledAs(LOST)).toMatchObject({
      end: { failure: { class: 'auth', message: 'No rights.' } },
    })
  })

  it('has nothing to save, and is ended at once', async () => {
    await launched(QUEUED)
    await sees({ kind: 'queued' })
    await signal('drain', { reason: 'cancelled', windowMs: 20_000 })
    await reply('drain')
    expect(timers()).toEqual({ 'time to save and stop': 0 })
    await expire('time to save and stop')
    expect(await settledAs(SAVED)).toMatchObject({ end: null, drainReason: 'cancelled', windowMs: 0 })
  })

  it('has everything to save once it has begun', async () => {
    await launched(QUEUED)
    await sees({ kind: 'queued' })
    await sees({ kind: 'begun', fromAtMs: NOW_MS })
    await reply('start')
    await signal('drain', { reason: 'cancelled', windowMs: 20_000 })
    await reply('drainMachine', { isOnRecord: true })
    expect(timers()).toEqual({ 'time to save and stop': 20_000 + powerOffMs + 2 * beatMs })
  })
})
