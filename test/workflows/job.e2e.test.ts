import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { microUsd } from '../../core/money'
import { readRecords } from '../../storage/record'
import { layout } from '../../storage/layout'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { Deployment, ON_DEMAND, SPOT, statusOf, type JobHandle, type WorldWishes } from './harness'

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

/** A test in a deployment of its own, so that all of them run side by side. */
function inWorld(wishes: WorldWishes, test: (deployment: Deployment) => Promise<void>): () => Promise<void> {
  return async () => {
    const deployment = await Deployment.start(at, wishes)
    try {
      await test(deployment)
    } finally {
      await deployment.close()
    }
  }
}

/** How the job closed, with the failure's type and message where it failed. */
async function ended(job: JobHandle): Promise<{ status: string; type?: string; message?: string }> {
  const outcome = await job.result().then(
    () => ({}),
    (error: { cause?: { type?: string; message?: string } }) => ({
      type: error.cause?.type,
      message: error.cause?.message,
    }),
  )
  const { status } = await job.describe()
  return { status: status.name, ...outcome } as never
}

const running = (job: JobHandle, attempt = 1) =>
  until(async () => {
    const status = await statusOf(job)
    return status.state === 'running' && status.attemptsTotal === attempt
  })

const stepOf = async (deployment: Deployment, attempt = 1): Promise<number> => {
  const body = await deployment.store.get(layout.beat('job-test', attempt))
  return body === undefined
    ? -1
    : ((JSON.parse(body.toString()) as { progress: { step: number } | null }).progress?.step ?? 0)
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
      const [parent, child] = await Promise.all(
        ['job/job-test', 'job/job-test/1'].map(
          async (id) => (await deployment.client.workflow.getHandle(id).fetchHistory()).events!.length,
        ),
      )
      // 16 of them are the start, the resolution and the finish.
      expect(parent! - 16).toBeLessThanOrEqual(20)
      expect(child!).toBeLessThanOrEqual(60)
    }),
  )
})

describe('a job that loses its machine', () => {
  it.concurrent(
    'resumes from its newest checkpoint after a notice, and after none, and ends as if nothing had happened',
    inWorld(
      { behave: ({ attempt }) => [{}, { stepsPerSecond: 10 }, { diesAtStep: 65 }][attempt] ?? {} },
      async (deployment) => {
        const job = await deployment.submit()
        await until(async () => (await stepOf(deployment)) >= 20)
        deployment.world.machineOf('job-test-1')!.interrupt(1_000)
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
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      deployment.world.faults.add('observe', { kind: 'lies-gone' })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
    }),
  )

  it.concurrent(
    'waits for a provider that does not answer, and for a store that does not, rather than give its machine up',
    inWorld({ timing: { silenceMs: 300 } }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const failure = { class: 'transient', message: 'no answer' } as const
      deployment.world.faults.add('observe', { kind: 'throws', failure }, { times: 20 })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
    }),
  )

  it.concurrent(
    'gives up a machine whose runner is silent only when provider and store answered all the while',
    inWorld({ behave: ({ attempt }) => (attempt === 1 ? { hangsAtStep: 35 } : {}) }, async (deployment) => {
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      const [first, second] = (await statusOf(job)).attempts
      expect(first).toMatchObject({ state: 'interrupted', reason: expect.stringContaining('said nothing') })
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
    'does not fall back to a dearer kind that it does not allow',
    inWorld({ wares: [{ ...SPOT, stock: 0 }, ON_DEMAND] }, async (deployment) => {
      const job = await deployment.submit({ backends: [{ backend: 'scripted', capacityType: 'spot' }] })
      await until(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
      deployment.world.setStock(SPOT, 1)
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
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

  it.concurrent(
    'waits until the lists of a provider can be trusted',
    inWorld({ capabilities: { idempotency: 'tag' } }, async (deployment) => {
      deployment.world.faults.add('launch', { kind: 'loses-answer', hasEffect: true, findAfterMs: 0 })
      deployment.world.freezeLists(1_000)
      const job = await deployment.submit()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

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
    'replaces a machine that nobody can speak to once, and then says so',
    inWorld({ capabilities: { runnerStart: 'after-launch' } }, async (deployment) => {
      const { world } = deployment
      const failure = { class: 'unreachable', message: 'The agent never came.' } as const
      for (const _ of [1, 2]) world.faults.add('start', { kind: 'throws', failure })
      const { type, message } = await ended(await deployment.submit())
      expect({ type, message }).toEqual({ type: 'unreachable', message: 'The agent never came.' })
      expect(world.machines.map(({ state }) => state)).toEqual(['gone', 'gone'])
    }),
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
        message: expect.stringContaining('GPUs: has 1, wanted 64+'),
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

describe('what the owner can tell a job', () => {
  const long = { behave: () => ({ stepsTotal: 10_000, stepsPerSecond: 50 }) }

  it.concurrent(
    'cancels it: the workload saves, the machine ends, the workflow closes as cancelled',
    inWorld(long, async (deployment) => {
      const job = await deployment.submit()
      await until(async () => (await stepOf(deployment)) >= 25)
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      const { attempts, state, checkpoint } = await statusOf(job)
      expect(state).toBe('cancelled')
      expect(attempts[0]).toMatchObject({ state: 'stopped', reason: 'cancelled', stepsLost: 0 })
      expect(checkpoint!.step).toBeGreaterThanOrEqual(25)
      expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['gone'])
    }),
  )

  it.concurrent(
    'cancels it now: a workload that does not listen has seconds',
    inWorld(
      { behave: () => ({ ...long.behave(), isDeaf: true }), timing: { drainMs: 60_000 } },
      async (deployment) => {
        const job = await deployment.submit()
        await running(job)
        await job.cancel()
        await until(async () => (await statusOf(job)).state === 'stopping')
        const receipt = await job.executeUpdate<{ message: string }, []>('cancelNow')
        expect(receipt.message).toMatch(/Cancelling/)
        expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
        expect(deployment.world.machines.map((machine) => machine.state)).toEqual(['gone'])
      },
    ),
  )

  it.concurrent(
    'cancels it while it waits for a machine',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const job = await deployment.submit()
      await until(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      expect(deployment.world.machines).toEqual([])
    }),
  )

  it.concurrent(
    'moves it, with a checkpoint first, to another place',
    inWorld({ behave: ({ attempt }) => (attempt === 1 ? long.behave() : {}) }, async (deployment) => {
      const job = await deployment.submit()
      await until(async () => (await stepOf(deployment)) >= 25)
      const receipt = await job.executeUpdate('migrate', {
        args: [{ to: { backend: 'scripted', capacityType: 'on-demand' } }],
      })
      expect(receipt).toEqual({ message: 'Moving to scripted:on-demand; the workload saves first.' })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      const [from, to] = (await statusOf(job)).attempts
      expect(from).toMatchObject({ state: 'stopped', reason: 'migrated', stepsLost: 0, capacityType: 'spot' })
      expect(to).toMatchObject({
        state: 'succeeded',
        capacityType: 'on-demand',
        restoredFrom: from!.checkpoint,
      })
    }),
  )

  it.concurrent(
    'goes on where it can when there is nothing where it was to move',
    inWorld({ behave: ({ attempt }) => (attempt === 1 ? long.behave() : {}) }, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      await job.executeUpdate('migrate', { args: [{ to: { backend: 'nowhere' } }] })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
    }),
  )

  it.concurrent(
    'refuses what makes no sense, without a trace',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await running(job)
      const refused = async (update: string, argument: unknown): Promise<string> =>
        job.executeUpdate(update, { args: [argument] }).then(
          () => 'accepted',
          (error: { cause?: Error }) => error.cause?.message ?? '',
        )
      expect(await refused('extend', {})).toMatch('Give a new deadline or a new budget')
      expect(await refused('extend', { deadlineAtMs: Date.now() - 1_000 })).toMatch('has passed already')
      expect(await refused('extend', { budgetMicroUsd: -1 })).toMatch('not above')
      await job.result()
      const { events } = await job.fetchHistory()
      expect(
        events!.filter(({ workflowExecutionUpdateAcceptedEventAttributes: accepted }) => accepted),
      ).toEqual([])
    }),
  )

  it.concurrent(
    'reaches the running machine with a new deadline and a new budget',
    inWorld({ behave: () => ({ stepsTotal: 150, stepsPerSecond: 50 }) }, async (deployment) => {
      const job = await deployment.submit({ budgetMicroUsd: microUsd(1_000) })
      await running(job)
      const deadlineAtMs = Date.now() + 60_000
      await job.executeUpdate('extend', { args: [{ deadlineAtMs, budgetMicroUsd: microUsd(2_000) }] })
      await until(async () => (await deployment.store.get(layout.limits('job-test', 1, 1))) !== undefined)
      const limits: unknown = JSON.parse(
        (await deployment.store.get(layout.limits('job-test', 1, 1)))!.toString(),
      )
      // 2,000 dollars at 360 an hour, in whole seconds.
      expect(limits).toEqual({ seq: 1, deadlineAtMs, runMs: 20_000_000 })
      expect(await job.result()).toMatchObject({ state: 'succeeded' })
    }),
  )
})

describe('limits', () => {
  it.concurrent(
    'stops in time for its deadline, with what it has saved',
    inWorld({ behave: () => ({ stepsTotal: 10_000 }) }, async (deployment) => {
      const deadlineAtMs = Date.now() + 5_000
      const job = await deployment.submit({ deadlineAtMs })
      expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'deadline-reached' })
      const [machine] = deployment.world.machines
      expect(machine!.endedAtMs!).toBeLessThanOrEqual(deadlineAtMs)
      expect((await statusOf(job)).attempts[0]).toMatchObject({ reason: 'deadline', stepsLost: 0 })
    }),
  )

  it.concurrent(
    'never spends more than its budget, over all its attempts',
    inWorld(
      {
        wares: [SPOT],
        behave: ({ attempt }) => ({ stepsTotal: 10_000, ...(attempt === 1 ? { diesAtStep: 65 } : {}) }),
      },
      async (deployment) => {
        // Ten cents a second: a minute's minimum beside the drain makes a useful run, so 8 dollars are about 80 s at most.
        const budgetMicroUsd = microUsd(7)
        const job = await deployment.submit({ budgetMicroUsd })
        await running(job, 2)
        await job.executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(0.8) }] })
        expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'budget-reached' })
        expect((await statusOf(job)).spentMicroUsd).toBeLessThanOrEqual(microUsd(0.8))
      },
    ),
  )

  it.concurrent(
    'ends a job whose deadline comes while it waits for a machine',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const job = await deployment.submit({ deadlineAtMs: Date.now() + 4_000 })
      expect(await ended(job)).toMatchObject({ status: 'FAILED', type: 'deadline-reached' })
    }),
  )
})
