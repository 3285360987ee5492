import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import { readRecords } from '../../storage/record'
import type { ScriptedWorld } from '../backends/scripted/world'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { LONG, ON_DEMAND, SPOT, statusOf, worldsOn, type Deployment } from './harness'
import { atStep, ended, forReason, observed, running, silent, TEST_LIMIT_MS } from './looks'
import { expectUntouched } from './untouched'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

/** Events of a workflow, without those of workflow tasks that a busy machine did not get round to. */
async function eventsOf({ client }: Deployment, workflowId: string): Promise<number> {
  const events = (await client.workflow.getHandle(workflowId).fetchHistory()).events!
  const isOfTask = (event: (typeof events)[number]): boolean =>
    [
      event.workflowTaskScheduledEventAttributes,
      event.workflowTaskStartedEventAttributes,
      event.workflowTaskTimedOutEventAttributes,
      event.workflowTaskCompletedEventAttributes,
    ].some((attributes) => attributes !== undefined && attributes !== null)
  const tasksDone = events.filter((event) => event.workflowTaskCompletedEventAttributes).length
  return events.filter((event) => !isOfTask(event)).length + 3 * tasksDone
}

describe('a job that nothing happens to', () => {
  it.concurrent(
    'runs on the cheapest offer, and its result, status and record agree',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      const result = await job.result()
      expect(result).toMatchObject({ id: 'job-test', state: 'succeeded', reason: 'completed', attempts: 1 })
      const status = await statusOf(job)
      expect(status).toMatchObject({
        state: 'succeeded',
        attempts: [
          { number: 1, state: 'succeeded', capacityType: 'spot', realised: { capacityType: 'spot' } },
        ],
      })
      expect(status.spentMicroUsd).toBe(result.costMicroUsd)
      expect(result.costMicroUsd).toBeGreaterThan(0)
      expect(deployment.world.machines.map(({ state }) => state)).toEqual(['gone'])
      const records = await readRecords(deployment.store, 'job-test')
      expect(records.map(({ kind, seq }) => [seq, kind])).toEqual([
        [1, 'resolved'],
        [2, 'planned'],
        [3, 'launched'],
        [4, 'settled'],
        [5, 'decided'],
        [6, 'finished'],
      ])
    }),
  )

  it.concurrent(
    'keeps to its budget of events',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await job.result()
      // 16 of them are the start, the resolution and the finish.
      expect((await eventsOf(deployment, 'job/job-test')) - 16).toBeLessThanOrEqual(20)
      expect(await eventsOf(deployment, 'job/job-test/1')).toBeLessThanOrEqual(60)
    }),
  )
})

describe('a job that loses its machine', () => {
  it.concurrent(
    'resumes from its newest checkpoint after a notice, and after none, and ends as if nothing had happened',
    inWorld(
      { behave: ({ attempt }) => [{}, { stepsPerSecond: 1 }, { diesAtStep: 65 }][attempt] ?? {} },
      async (deployment) => {
        const job = await deployment.submit()
        await atStep(deployment, 1)
        deployment.world.machineOf('job-test-1')!.interrupt(10_000)
        const result = await job.result()
        expect(result).toMatchObject({ state: 'succeeded', attempts: 3 })
        const { attempts } = await statusOf(job)
        expect(attempts.map(({ state }) => state)).toEqual(['interrupted', 'interrupted', 'succeeded'])
        // With a notice it saved on the way out; without, it lost no more than the way to the next checkpoint.
        expect(attempts[0]!.stepsLost).toBe(0)
        expect(attempts[1]!.restoredFrom?.step).toBe(attempts[0]!.checkpoint?.step)
        expect(attempts[2]!.restoredFrom?.step).toBe(60)
        expect(deployment.world.machines.map(({ state }) => state)).toEqual(['gone', 'gone', 'gone'])
      },
    ),
  )

  it.concurrent(
    'continues in another pool of similar cost, says why, and comes back if there is no other',
    inWorld(
      {
        wares: [SPOT, { ...SPOT, place: 'b', stock: 1, priceMicroUsdPerHour: microUsd(380) }],
        behave: ({ attempt }) => (attempt < 3 ? LONG : {}),
      },
      async (deployment) => {
        const job = await deployment.submit()
        await atStep(deployment, 1)
        deployment.world.machineOf('job-test-1')!.interrupt(0)
        await atStep(deployment, 1, 2)
        expect((await statusOf(job)).placementReasons).toContainEqual(
          'skipped scripted/spot/v100/a, where this job recently lost a machine',
        )
        deployment.world.machineOf('job-test-2')!.interrupt(0)
        expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 3 })
        const { attempts } = await statusOf(job)
        expect(attempts.map(({ realised }) => realised?.place)).toEqual(['a', 'b', 'a'])
      },
    ),
  )

  it.concurrent(
    'gives up when it was interrupted too often',
    inWorld({ behave: () => ({ diesAtStep: 15, checkpointEverySteps: 0 }) }, async (deployment) => {
      const job = await deployment.submit({ retries: { failures: 0, interruptions: 2 } })
      expect(await ended(job)).toMatchObject({
        status: 'FAILED',
        type: 'interrupted',
        message: expect.stringContaining('more than 2 times'),
      })
      expect((await statusOf(job)).attempts).toHaveLength(3)
    }),
  )

  it.concurrent(
    'is not fooled by a provider that once says it is gone',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      deployment.world.faults.add('observe', { kind: 'lies-gone' })
      await observed(deployment, 5)
      await expectUntouched(deployment, job)
    }),
  )

  it.concurrent(
    'waits for a provider that does not answer, and for a store that does not, rather than give its machine up',
    inWorld({ timing: { silenceMs: 2_000 }, behave: () => LONG }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const failure = { class: 'transient', message: 'no answer' } as const
      deployment.world.faults.add('observe', { kind: 'throws', failure }, { times: 60 })
      await observed(deployment, 65)
      await expectUntouched(deployment, job)
    }),
  )

  it.concurrent(
    'gives up a machine whose runner is silent only when provider and store answered all the while',
    inWorld({ behave: ({ attempt }) => (attempt === 1 ? { hangsAtStep: 35 } : {}) }, async (deployment) => {
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      const [first, second] = (await statusOf(job)).attempts
      expect(first).toMatchObject({
        state: 'interrupted',
        reason: expect.stringContaining('has been silent'),
      })
      expect(second!.restoredFrom?.step).toBe(30)
      const [old, fresh] = deployment.world.machines
      expect(old!.endedAtMs!).toBeLessThanOrEqual(fresh!.handle.launchedAtMs)
    }),
  )
})

describe('a job whose launch goes wrong', () => {
  it.concurrent(
    'takes the next offer when there is no machine, and the one after next when quota is the trouble',
    inWorld({}, async (deployment) => {
      deployment.world.faults.add('launch', {
        kind: 'refuses',
        failure: { class: 'capacity', message: 'out of stock' },
      })
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      const { attempts } = await statusOf(job)
      expect(attempts.map(({ capacityType, state }) => [capacityType, state])).toEqual([
        ['spot', 'failed'],
        ['on-demand', 'succeeded'],
      ])
      expect(attempts[0]!.costMicroUsd).toBe(0)
    }),
  )

  it.concurrent(
    'does not fall back to a more expensive kind that it does not allow',
    inWorld({ wares: [{ ...SPOT, stock: 0 }, ON_DEMAND] }, async (deployment) => {
      const job = await deployment.submit({ backends: [{ backend: 'scripted', capacityType: 'spot' }] })
      await forReason(job, 'waiting-for-capacity')
      deployment.world.setStock(SPOT, 1)
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
      const records = await readRecords(deployment.store, 'job-test')
      expect(records.slice(1, 4).map(({ seq, kind }) => [seq, kind])).toEqual([
        [2, 'waiting'],
        [3, 'planned'],
        [4, 'launched'],
      ])
    }),
  )

  it.concurrent.each([true, false])(
    'finds out what became of a launch whose answer was lost (machine made: %s)',
    (hasEffect) =>
      inWorld({}, async (deployment) => {
        deployment.world.faults.add('launch', { kind: 'loses-answer', hasEffect, findAfterMs: 100 })
        const job = await deployment.submit()
        expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: hasEffect ? 1 : 2 })
        expect(deployment.world.machines).toHaveLength(1)
      })(),
  )

  it.concurrent('waits until the lists of a provider can be trusted', () => {
    let world: ScriptedWorld | undefined
    // Stale from the moment at which the machine is made.
    const behave = (): object => {
      world?.freezeLists(2_000)
      return {}
    }
    return inWorld({ capabilities: { idempotency: 'tag' }, behave }, async (deployment) => {
      world = deployment.world
      world.faults.add('launch', { kind: 'loses-answer', hasEffect: true, findAfterMs: 0 })
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
      expect(world.machines).toHaveLength(1)
    })()
  })

  it.concurrent(
    'ends the duplicates that a provider made',
    inWorld({ capabilities: { idempotency: 'tag' } }, async (deployment) => {
      deployment.world.faults.add('launch', { kind: 'duplicates' })
      const job = await deployment.submit()
      await job.result()
      expect(deployment.world.machines.map(({ state }) => state)).toEqual(['gone', 'gone'])
    }),
  )

  it.concurrent(
    'starts a runner that must be started, and again when it never spoke',
    inWorld({ capabilities: { runnerStart: 'after-launch' } }, async (deployment) => {
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
      expect(deployment.world.machines.map(({ starts }) => starts)).toEqual([1])
    }),
  )

  it.concurrent(
    'replaces a machine that never boots',
    inWorld({ behave: ({ attempt }) => ({ neverBoots: attempt === 1 }) }, async (deployment) => {
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      expect(deployment.world.machines.map(({ state }) => state)).toEqual(['gone', 'gone'])
    }),
  )

  it.concurrent(
    'replaces a machine that is unreachable once, and then says so',
    inWorld({ capabilities: { runnerStart: 'after-launch' } }, async (deployment) => {
      const { world } = deployment
      const failure = { class: 'unreachable', message: 'The agent never came.' } as const
      for (let machine = 1; machine <= 2; machine++) world.faults.add('start', { kind: 'throws', failure })
      const { type, message } = await ended(await deployment.submit())
      expect({ type, message }).toEqual({ type: 'unreachable', message: 'The agent never came.' })
      expect(world.machines.map(({ state }) => state)).toEqual(['gone', 'gone'])
    }),
  )

  it.concurrent(
    'tells a machine that does not obey through its provider to save and stop, once',
    inWorld(
      {
        capabilities: { runnerStart: 'after-launch' },
        behave: () => ({ stepsTotal: 10_000, silentAtStep: 150 }),
        timing: { drainMs: 1_000, silenceMs: 60_000 },
      },
      async (deployment) => {
        const { world } = deployment
        const job = await deployment.submit()
        await running(job)
        // Before that it would obey what stands in the store.
        await silent(deployment)
        await job.cancel()
        expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
        expect(world.callsOf('drain')).toHaveLength(1)
      },
    ),
  )

  it.concurrent(
    'does not press a machine that obeys',
    inWorld(
      {
        capabilities: { runnerStart: 'after-launch' },
        behave: () => LONG,
        // Longer than a busy computer takes to obey.
        timing: { drainMs: 60_000 },
      },
      async (deployment) => {
        const job = await deployment.submit()
        await running(job)
        await job.cancel()
        expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
        expect(deployment.world.callsOf('drain')).toEqual([])
      },
    ),
  )

  it.concurrent(
    'stops at once, and says what to do, when the credentials are no good',
    inWorld({}, async (deployment) => {
      const failure = { class: 'auth', message: 'The key was revoked.', hint: 'Make a new key.' } as const
      deployment.world.faults.add('launch', { kind: 'throws', failure })
      const job = await deployment.submit()
      expect(await ended(job)).toEqual({
        status: 'FAILED',
        type: 'auth',
        message: 'The key was revoked. Make a new key.',
      })
    }),
  )

  it.concurrent(
    'lets Temporal retry what promises that nothing happened',
    inWorld({}, async (deployment) => {
      const failure = { class: 'throttled', message: 'slow down', retryAfterMs: 50 } as const
      deployment.world.faults.add('launch', { kind: 'throws', failure }, { times: 3 })
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
      expect(deployment.world.callsOf('launch')).toHaveLength(4)
    }),
  )

  it.concurrent(
    'says at once that it can never run as it is written',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit({ resources: { gpus: { min: 64 } } })
      expect(await ended(job)).toMatchObject({
        status: 'FAILED',
        type: 'no-placement',
        message: expect.stringContaining('GPUs: has 1, requested 64+'),
      })
      expect(deployment.world.machines).toEqual([])
    }),
  )

  it.concurrent(
    'is refused by the worker when its spec is none',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit({ run: '', env: { '1BAD': 'x' } })
      expect(await ended(job)).toMatchObject({
        status: 'FAILED',
        type: 'invalid',
        message: expect.stringContaining('1BAD'),
      })
    }),
  )
})

describe('a job whose program fails', () => {
  it.concurrent(
    'fails with the exit code, and is not started again unasked',
    inWorld({ behave: () => ({ fails: { atStep: 20, exitCode: 3 } }) }, async (deployment) => {
      const job = await deployment.submit()
      expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'workload-failed' })
      expect((await statusOf(job)).attempts).toHaveLength(1)
    }),
  )

  it.concurrent(
    'is started again as often as it may, from its checkpoint',
    inWorld(
      {
        behave: ({ attempt }) => (attempt < 3 ? { fails: { atStep: attempt * 30 + 5, exitCode: 1 } } : {}),
      },
      async (deployment) => {
        const job = await deployment.submit({ retries: { failures: 2, interruptions: 0 } })
        expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 3 })
        expect((await statusOf(job)).attempts.map(({ restoredFrom }) => restoredFrom?.step)).toEqual([
          undefined,
          30,
          60,
        ])
      },
    ),
  )
})
