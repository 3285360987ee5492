import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventsOf } from '../../../client/job/events'
import type { Diagnosis, Drain, Limits, Phase, RunnerPhase } from '../../../core/documents'
import { MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { ClientWorld, JOB, NOW } from '../world'

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.make()
  await world.submitted()
  await world.planned(1)
  await world.machine(1)
})

afterEach(() => world.remove())

const phase = (name: RunnerPhase, afterMs: number, durationMs: number): Phase => ({
  name,
  startedAtMs: NOW + afterMs,
  durationMs,
})
const put = (key: string, document: object): Promise<unknown> =>
  world.store.put(key, JSON.stringify(document))
/** What was reported after the machine was there, in seconds since then. */
async function story(): Promise<(string | number | null)[][]> {
  const events = await eventsOf(world.context, JOB)
  return events
    .filter(({ kind }) => !['submitted', 'planned'].includes(kind))
    .map(({ atMs, attempt, text }) => [(atMs - NOW) / SECOND_MS, attempt, text])
}

const GOT = [0, 1, 'Launched local spot process here at $3.60/h (machine-1)']

describe('the story of a job', () => {
  it('has the stages of an attempt that is not over, up to now', async () => {
    await world.beat(1, {
      phases: [
        phase('starting', 3_000, 400),
        phase('pulling', 3_400, 95_000),
        phase('running', 98_400, 12_000),
      ],
    })
    expect(await story()).toEqual([
      GOT,
      [3, 1, 'starting for 0.4s'],
      [3.4, 1, 'pulling for 1m 35s'],
      [98.4, 1, 'running for 12s so far'],
    ])
  })

  it('shows rebalance recommendations, new limits and stop requests at their times', async () => {
    await world.beat(1, { rebalanceAtMs: NOW + 20 * SECOND_MS })
    const drain: Drain = { reason: 'migrated', windowMs: 110_000, requestedAtMs: NOW + 30 * SECOND_MS }
    await put(layout.drain(JOB, 1), drain)
    const limits: Limits = { seq: 1, deadlineAtMs: NOW + MINUTE_MS, budget: null }
    await put(layout.limits(JOB, 1, 1), limits)
    const told = await story()
    expect(told.slice(0, 3)).toEqual([
      GOT,
      [20, 1, 'The provider warned that it may interrupt the machine soon (rebalance recommendation)'],
      [30, 1, 'Asked to save and stop (migrated) within 1m 50s'],
    ])
    // The store says when it was put.
    expect(told.slice(3).map(([, , text]) => text)).toEqual([
      'New limits: deadline 2026-11-21T12:01:00Z, no budget',
    ])
  })

  it('has what it was restored from and why, a step back, and a warning since it began', async () => {
    const restore = { revision: 1, state: 'complete', message: null }
    const first = { id: '000000000500-1', step: 500, attempt: 1 }
    const older = { id: '000000000400-1', step: 400, attempt: 1 }
    await put(layout.restores(JOB, 1), {
      version: 1,
      attemptId: `${JOB}-1`,
      restores: [
        {
          ...restore,
          checkpoint: first,
          atMs: NOW + SECOND_MS,
          why: 'newest complete checkpoint: DONE is there',
          outcome: 'failed',
          message: 'exit code 1',
        },
        {
          ...restore,
          checkpoint: older,
          atMs: NOW + 2 * SECOND_MS,
          state: 'settled',
          why: 'one checkpoint back',
          outcome: 'went-on',
        },
      ],
    })
    const text = 'No complete checkpoint for 20 min.'
    await world.beat(1, { warning: { kind: 'no-checkpoint', text, sinceMs: NOW + 3 * SECOND_MS } })
    expect(await story()).toEqual([
      GOT,
      [
        1,
        1,
        'Restored checkpoint 000000000500-1 (complete): newest complete checkpoint: DONE is there; then the program failed: exit code 1',
      ],
      [2, 1, 'Restored checkpoint 000000000400-1 (provisional): one checkpoint back'],
      [3, 1, text],
    ])
  })

  it('has the stages of an attempt that is over once, what its lost machine knew, and no stop for one that is gone', async () => {
    const phases = [phase('running', 5_000, 20_000), phase('draining', 25_000, 300)]
    await world.beat(1, { phases })
    const diagnosis: Diagnosis = {
      atMs: NOW + 40 * SECOND_MS,
      machine: 'machine-1',
      lastWords: 'no route to host',
      text: '# The console\nno route to host',
    }
    await put(layout.diagnosis(JOB, 1), diagnosis)
    await put(layout.drain(JOB, 1), {
      reason: 'superseded',
      windowMs: 0,
      requestedAtMs: NOW + 41 * SECOND_MS,
    })
    world.nowMs = NOW + 42 * SECOND_MS
    await world.settled(1, { phases })
    expect(await story()).toEqual([
      GOT,
      [5, 1, 'running for 20s'],
      [25, 1, 'draining for 0.3s'],
      [40, 1, 'The machine left no result; its diagnosis (machine-1): no route to host'],
      [42, 1, 'settled'],
    ])
    const detailed = (await eventsOf(world.context, JOB)).filter(({ detail }) => detail !== undefined)
    expect(detailed.map(({ kind, detail }) => [kind, detail])).toEqual([['diagnosis', diagnosis.text]])
  })

  it('is reported as far as it can be read', async () => {
    await world.store.put(layout.beat(JOB, 1), '{"half')
    await world.store.put(layout.diagnosis(JOB, 1), '')
    expect(await story()).toEqual([GOT])
  })
})
