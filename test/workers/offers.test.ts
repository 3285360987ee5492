import { describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import type { BackendAnswer } from '../../core/job/plan'
import { sent } from '../../activities/plan/sent-answer'
import { offersThroughWorkers } from '../../workers/offers'
import { detailed } from '../planner/many-offers'

interface Asked {
  taskQueue: string
  args: unknown[]
  scheduleToStartTimeout: string
  retry: { maximumAttempts: number }
}

/** A client whose standalone activities answer as the test says. */
function clientThat(answer: (asked: Asked) => Promise<unknown>): { client: Client; asked: Asked[] } {
  const asked: Asked[] = []
  const execute = (_name: string, options: Asked): Promise<unknown> => {
    asked.push(options)
    return answer(options)
  }
  return { client: { activity: { execute } } as unknown as Client, asked }
}

const ANSWER = { backend: 'here', offers: [] } as unknown as BackendAnswer

describe('offers through workers', () => {
  it('are asked on the queue of their backend, and not for long', async () => {
    const { client, asked } = clientThat(async () => ANSWER)
    expect(await offersThroughWorkers(client, () => 0)('here', { cpus: { min: 1 } })).toBe(ANSWER)
    expect(asked).toMatchObject([
      {
        taskQueue: 'crucible.here',
        args: [{ request: { cpus: { min: 1 } } }],
        scheduleToStartTimeout: '5 seconds',
        retry: { maximumAttempts: 2 },
      },
    ])
  })

  it('arrive unchanged when their answer was long and therefore compressed', async () => {
    const many = { ...ANSWER, offers: Array.from({ length: 3_000 }, (_, index) => detailed(index)) }
    const { client } = clientThat(async () => sent(many))
    expect(sent(many)).not.toEqual(many)
    expect(await offersThroughWorkers(client, () => 0)('here', {})).toEqual(many)
  })

  it('of a backend whose places are counted are asked anew each time', async () => {
    const { client, asked } = clientThat(async () => ANSWER)
    const ask = offersThroughWorkers(client, () => 0, ['near'])
    for (const backend of ['near', 'near', 'here', 'here']) await ask(backend, {})
    expect(asked.map(({ taskQueue }) => taskQueue)).toEqual([
      'crucible.near',
      'crucible.near',
      'crucible.here',
    ])
  })

  it('serve all who ask the same within a second, and none after it', async () => {
    let nowMs = 0
    const { client, asked } = clientThat(async () => ANSWER)
    const ask = offersThroughWorkers(client, () => nowMs)
    await Promise.all([ask('here', {}), ask('here', {})])
    nowMs = 999
    await ask('here', {})
    expect(asked).toHaveLength(1)
    await ask('here', { cpus: { min: 1 } })
    await ask('there', {})
    expect(asked).toHaveLength(3)
    nowMs = 1_000
    await ask('here', {})
    expect(asked).toHaveLength(4)
  })

  it('of a job that has pinned something are its own', async () => {
    const { client, asked } = clientThat(async () => ANSWER)
    const ask = offersThroughWorkers(client, () => 0)
    await ask('here', {})
    await ask('here', {}, { pins: { image: 'one' } })
    await ask('here', {}, { pins: { image: 'one' } })
    expect(asked.map(({ args }) => args)).toEqual([
      [{ request: {} }],
      [{ request: {}, pins: { image: 'one' } }],
    ])
  })

  it('of a job with an image are shared by those with the same image', async () => {
    const { client, asked } = clientThat(async () => ANSWER)
    const ask = offersThroughWorkers(client, () => 0)
    for (const image of ['a:1', 'a:1', 'b:1', undefined]) await ask('here', {}, { image })
    expect(asked.map(({ args }) => args)).toEqual([
      [{ request: {}, image: 'a:1' }],
      [{ request: {}, image: 'b:1' }],
      [{ request: {} }],
    ])
  })

  it('that failed are asked for again at once', async () => {
    let tries = 0
    const { client } = clientThat(async () => {
      tries += 1
      if (tries === 1) throw new Error('broken')
      return ANSWER
    })
    const ask = offersThroughWorkers(client, () => 0)
    await expect(ask('here', {})).rejects.toMatchObject({ failure: { class: 'unclassified' } })
    expect(await ask('here', {})).toBe(ANSWER)
  })

  it.each(['activity ScheduleToStart timeout', 'Activity task timed out'])(
    'of a backend without workers are no capacity, with how to serve it: %s',
    async (message) => {
      const { client } = clientThat(() => Promise.reject(new Error('failed', { cause: new Error(message) })))
      await expect(offersThroughWorkers(client, () => 0)('here', {})).rejects.toMatchObject({
        failure: {
          class: 'capacity',
          message: 'no worker is running for it (start one: crucible worker here)',
        },
      })
    },
  )

  it("fail as the backend failed: its class and words cross the worker's border", async () => {
    const failure = { class: 'auth', message: 'The key was revoked.', hint: 'Make a new one.' }
    const cause = { type: 'auth', message: failure.message, details: [failure] }
    const { client } = clientThat(() => Promise.reject(Object.assign(new Error('failed'), { cause })))
    await expect(offersThroughWorkers(client, () => 0)('here', {})).rejects.toMatchObject({ failure })
  })

  it('are not kept for ever: the oldest of a hundred goes', async () => {
    const { client, asked } = clientThat(async () => ANSWER)
    const ask = offersThroughWorkers(client, () => 0)
    for (let min = 0; min <= 100; min++) await ask('here', { cpus: { min } })
    await ask('here', { cpus: { min: 100 } })
    expect(asked).toHaveLength(101)
    await ask('here', { cpus: { min: 0 } })
    expect(asked).toHaveLength(102)
  })
})
