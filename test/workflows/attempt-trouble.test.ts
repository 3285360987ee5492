/** An attempt whose machine is silent, warns, must stop, or gets new limits, and whose steps meet trouble. */
import { describe, expect, it, jest } from '@jest/globals'
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
import { CancellationScope } from './scopes'
import { expire, openNames, refusal, reply, settle, signal, stateOf, timers, world } from './scripted'

const { drainMs, powerOffMs, beatMs } = DEFAULT_TIMING
const STARTED_LATER = { runnerStart: 'after-launch' }
const RUNNING = { kind: 'running' }

describe('a runner that is started by a call', () => {
  it('is started before its machine is watched', async () => {
    const { input } = await launched(STARTED_LATER)
    expect(openNames()).toEqual(['start'])
    expect(await reply('start')).toEqual({ order: input.order, handle: HANDLE, withinMs: HOUR_MS })
    expect(await sees(RUNNING)).toEqual(expect.not.objectContaining({ isQueued: expect.anything() }))
  })

  it('that is silent is started once more, and then its machine is given up', async () => {
    await launched(STARTED_LATER)
    await reply('start')
    await sees({ kind: 'silent', silentMs: 30 * MINUTE_MS })
    expect(openNames()).toEqual(['start'])
    await reply('start')
    await sees({ kind: 'silent', silentMs: 31 * MINUTE_MS })
    expect(openNames()).toEqual(['settle'])
    expect(await settledAs(LOST)).toMatchObject({
      end: {
        kind: 'failed',
        isLaunched: true,
        failure: {
          class: 'interrupted',
          code: 'silent',
          message:
            'The machine runs, but its runner has been silent for 31m while the provider and the store answered.',
        },
      },
    })
  })

  it('that gives no answer is not started again: it may run', async () => {
    await launched(STARTED_LATER)
    await reply('start', new Error('no answer'))
    await sees({ kind: 'silent', silentMs: 30 * MINUTE_MS })
    expect(openNames()).toEqual(['settle'])
  })

  it.each(['at the launch', 'after a silence'])('that refuses ends the attempt, %s', async (when) => {
    await launched(STARTED_LATER)
    if (when === 'after a silence') {
      await reply('start')
      await sees({ kind: 'silent', silentMs: 30 * MINUTE_MS })
    }
    const failure = { class: 'auth', message: 'No rights.' } as const
    await reply('start', refusal(failure))
    expect(await settledAs(LOST)).toMatchObject({ end: { kind: 'failed', isLaunched: true, failure } })
  })
})

describe('a runner that begins with its machine', () => {
  it('is given up after one silence', async () => {
    await launched()
    await sees({ kind: 'silent', silentMs: 30 * MINUTE_MS })
    expect(openNames()).toEqual(['settle'])
  })
})

describe('a warning of the runner', () => {
  const warned = (kind: string) => ({
    kind: 'warned',
    warning: { kind, text: 'Nothing was saved yet.', sinceMs: 0 },
  })

  it('is shown, is sent to the job, and ends', async () => {
    world.parent = { workflowId: 'job/job-1' }
    await launched()
    expect(await sees(warned('no-checkpoint'))).toMatchObject({ warned: null })
    expect(page().at(-1)).toBe('**Warning:** Nothing was saved yet.')
    const notice = { attempt: 2, warning: warned('no-checkpoint').warning }
    expect(await reply('signal')).toEqual({ workflowId: 'job/job-1', signal: 'warning', notice })
    expect(await sees({ kind: 'warned', warning: null })).toMatchObject({ warned: 'no-checkpoint' })
    expect(world.page).not.toContain('Warning')
    expect(await reply('signal')).toMatchObject({ notice: { attempt: 2, warning: null } })
    expect(await sees(RUNNING)).toMatchObject({ warned: null })
  })

  it('that does not reach the job is shown as such, and nothing else happens', async () => {
    world.parent = { workflowId: 'job/job-1' }
    await launched()
    await sees(warned('no-checkpoint'))
    await reply('signal', new Error('it is closed'))
    expect(world.page).toBe('The warning could not be delivered to the job: it is closed')
    expect(openNames()).toEqual(['watch'])
  })

  it('is reported six times, and only to a job that exists', async () => {
    await launched()
    for (let count = 0; count < 6; count++)
      expect(await sees(warned(`kind-${count}`))).toHaveProperty('warned')
    expect(await sees(RUNNING)).toEqual(expect.not.objectContaining({ warned: expect.anything() }))
    expect(world.asked).not.toContain('signal')
  })
})

describe('a machine whose time or money ends', () => {
  it.each([
    ['a minute, if that is all it has', MINUTE_MS, MINUTE_MS],
    ['as long as any other, if it has more', HOUR_MS, drainMs],
  ])('saves and stops within %s', async (_, leftMs, windowMs) => {
    const { ended } = await launched()
    await sees(RUNNING)
    expect(await sees({ kind: 'expiring', leftMs })).toEqual(
      expect.not.objectContaining({ isExpiring: expect.anything() }),
    )
    expect(await reply('drain')).toEqual({
      jobId: 'job-1',
      attempt: 2,
      drain: { reason: 'expired', windowMs },
    })
    expect(status()).toMatchObject({ state: 'stopping', reason: 'run-limit' })
    expect(page()[0]).toBe(
      "**stopping** (run-limit): The machine nears the provider's limit on how long it runs: the job saves, and continues on another one.",
    )
    const end = { kind: 'stopped', by: 'expired' } as const
    expect(await sees({ kind: 'over', end })).toMatchObject({ isRunning: true, isExpiring: true })
    expect(await settledAs(end)).toMatchObject({ end, drainReason: 'expired', windowMs: 0 })
    expect(await ended).toEqual({ settlement: settlementOf(end) })
    expect(status()).toMatchObject({ state: 'stopped', reason: 'run-limit' })
    expect(page()[0]).toBe('**stopped** (run-limit)')
  })

  it('ends as stopped if its reservation is over before it did', async () => {
    await launched({ capacityType: 'reserved' })
    await sees({ kind: 'expiring', leftMs: MINUTE_MS })
    await reply('drain')
    expect(page()[0]).toBe('**stopping** (expired)')
    await expire('time to save and stop')
    expect(await settledAs(SAVED)).toMatchObject({ end: { kind: 'stopped', by: 'expired' }, windowMs: 0 })
  })

  it('saves and stops at its budget', async () => {
    await launched()
    expect(await sees({ kind: 'budget' })).toEqual(
      expect.not.objectContaining({ isBudgetReached: expect.anything() }),
    )
    expect(await reply('drain')).toMatchObject({ drain: { reason: 'budget', windowMs: drainMs } })
    expect(page()[0]).toBe('**stopping** (budget)')
    expect(await sees(RUNNING)).toMatchObject({ isBudgetReached: true, isRunning: false })
  })
})

describe('a request to stop', () => {
  it('whose window passes without an end leaves the end to the settlement, which waits no longer', async () => {
    await launched()
    await signal('drain', { reason: 'migrated', windowMs: 20_000 })
    expect(status()).toMatchObject({ state: 'stopping', reason: 'migrated' })
    expect(world.attributes.at(-1)).toEqual({ state: 'stopping', reason: 'migrated' })
    await reply('drain')
    expect(timers()).toEqual({ 'time to save and stop': 20_000 + powerOffMs + 2 * beatMs })
    await expire('time to save and stop')
    expect(await settledAs(SAVED)).toMatchObject({ end: null, drainReason: 'migrated', windowMs: 0 })
  })

  it('counts the time of the call that reached the machine', async () => {
    await launched(STARTED_LATER)
    await reply('start')
    await signal('drain', { reason: 'migrated', windowMs: 20_000 })
    jest.spyOn(Date, 'now').mockReturnValue(NOW_MS + 3_000)
    const drain = { reason: 'migrated', windowMs: 20_000 }
    expect(await reply('drainMachine', { isOnRecord: true })).toMatchObject({ drain, patienceMs: 10_000 })
    expect(timers()).toEqual({ 'time to save and stop': 17_000 + powerOffMs + 2 * beatMs })
  })

  it('is written where the call did not work, and its window begins then', async () => {
    await launched(STARTED_LATER)
    await reply('start')
    await signal('drain', { reason: 'migrated', windowMs: 20_000 })
    await reply('drainMachine', new Error('no worker'))
    jest.spyOn(Date, 'now').mockReturnValue(NOW_MS + 3_000)
    await reply('drain')
    expect(timers()).toEqual({ 'time to save and stop': 20_000 + powerOffMs + 2 * beatMs })
  })

  it('with a shorter window reaches a settlement that gives more time', async () => {
    const { ended } = await launched()
    await sees({ kind: 'over', end: LOST })
    await signal('drain', { reason: 'cancelled', windowMs: drainMs })
    expect(openNames()).toEqual(['settle'])
    await signal('drain', { reason: 'cancelled', windowMs: 5_000 })
    const drain = { reason: 'cancelled', windowMs: 5_000 }
    expect(await reply('drain')).toEqual({ jobId: 'job-1', attempt: 2, drain, isNext: true })
    await signal('drain', { reason: 'cancelled', windowMs: 2_000 })
    expect(await reply('drain')).toMatchObject({ drain: { windowMs: 2_000 } })
    expect(openNames()).toEqual(['settle'])
    await settledAs(SAVED)
    expect(await ended).toEqual({ settlement: settlementOf(SAVED) })
  })

  it('that cannot be told during a settlement holds nothing up', async () => {
    const { ended } = await launched()
    await sees({ kind: 'over', end: LOST })
    await signal('drain', { reason: 'cancelled', windowMs: 5_000 })
    await settledAs(SAVED)
    expect(await ended).toEqual({ settlement: settlementOf(SAVED) })
  })
})

describe('new limits', () => {
  const limits = { seq: 1, deadlineAtMs: NOW_MS + HOUR_MS, budget: null }

  it('are written for the runner, one after the other', async () => {
    await launched()
    await signal('extend', { limits })
    await signal('extend', { limits: { ...limits, seq: 2 } })
    expect(openNames()).toEqual(['watch', 'extend'])
    expect(await reply('extend')).toEqual({ jobId: 'job-1', attempt: 2, limits })
    expect(await reply('extend')).toMatchObject({ limits: { seq: 2 } })
    expect(openNames()).toEqual(['watch'])
  })

  it('are of no use once the attempt is settled, and hold nothing up', async () => {
    const { ended } = await launched()
    await signal('extend', { limits })
    await sees({ kind: 'over', end: SAVED })
    expect(await stateOf(ended)).toBe('open')
    await settledAs(SAVED)
    expect(await ended).toEqual({ settlement: settlementOf(SAVED) })
  })
})

describe('trouble', () => {
  it('is shown while the step is tried again, and gone afterwards', async () => {
    const { ended } = await launched()
    await sees({ kind: 'over', end: SAVED })
    await reply('settle', new Error('No worker since $2.'))
    expect(page().at(-1)).toBe('**Trouble, retrying:** No worker since `$2`.')
    expect(timers()).toEqual({ 'trouble: retrying': 10_000 })
    await expire('trouble: retrying')
    await settledAs(SAVED)
    expect(world.page).not.toContain('Trouble')
    await ended
  })

  it('with the launch is settled as a failure', async () => {
    const { ended } = start()
    await reply('launch', { kind: 'unconfirmed', findAfterMs: 0 })
    await reply('find', new Error('boom'))
    expect(await settledAs(LOST)).toMatchObject({
      handle: null,
      windowMs: drainMs,
      end: { kind: 'failed', isLaunched: false, failure: { class: 'unclassified', message: 'boom' } },
    })
    await expect(ended).rejects.toMatchObject({ type: 'attempt-failed' })
  })

  it('of a cancellation from outside is a request to stop', async () => {
    await launched()
    CancellationScope.root.cancel()
    await settle()
    expect(await reply('drain')).toMatchObject({ drain: { reason: 'superseded', windowMs: drainMs } })
    expect(openNames()).toEqual(['watch'])
  })
})

describe('a machine that is not told yet how its launch went', () => {
  it('is looked for after a while', async () => {
    start()
    await reply('launch', { kind: 'unconfirmed', findAfterMs: 5_000 })
    expect(timers()).toEqual({ 'until the launch can be looked up': 5_000 })
    await expire('until the launch can be looked up')
    await reply('find', { kind: 'found', handles: [HANDLE] })
    expect(openNames()).toEqual(['watch'])
  })
})
