/**
 * The arguments of a job's steps. A replay compares the order of steps with a history, but neither the inputs of activities nor the lengths
 * of timers; these tests read both in histories that were just lived.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { SettleInput } from '../../core/activities'
import type { Drain, Limits } from '../../core/documents'
import type { DrainRequest } from '../../core/job/drain'
import type { AttemptInput } from '../../core/messages'
import { unstamped } from '../../core/stamps'
import { readRecords } from '../../storage/record'
import { SCENARIOS } from '../replay/scenarios'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { Deployment, LONG, QUICK } from './harness'
import { ended, running, TEST_LIMIT_MS, waitingUpdates } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

interface Steps {
  /** Inputs of activities, in order. */
  inputsOf: <Input>(activity: string) => Input[]
  /** What the workflow was started with. */
  input: unknown
  signals: { name: string; value: unknown }[]
  /** Lengths of timers, in order. */
  timersMs: number[]
}

interface Payloads {
  payloads?: { data?: Uint8Array | null }[] | null
}

function valueOf(payloads: Payloads | null | undefined): unknown {
  const values = (payloads?.payloads ?? []).map(
    ({ data }): unknown => data && JSON.parse(Buffer.from(data).toString()),
  )
  return unstamped(values).args[0]
}

async function stepsOf({ client }: Deployment, workflowId: string): Promise<Steps> {
  const events = (await client.workflow.getHandle(workflowId).fetchHistory()).events!
  return {
    inputsOf: (activity) =>
      events.flatMap(({ activityTaskScheduledEventAttributes: it }) =>
        it?.activityType?.name === activity ? [valueOf(it.input) as never] : [],
      ),
    input: valueOf(events[0]!.workflowExecutionStartedEventAttributes!.input),
    signals: events.flatMap(({ workflowExecutionSignaledEventAttributes: it }) =>
      it == null ? [] : [{ name: it.signalName!, value: valueOf(it.input) }],
    ),
    timersMs: events.flatMap(({ timerStartedEventAttributes: it }) =>
      it == null
        ? []
        : [Number(it.startToFireTimeout!.seconds) * 1_000 + (it.startToFireTimeout!.nanos ?? 0) / 1_000_000],
    ),
  }
}

/** Lives through a scenario of the golden histories. */
async function played<T>(name: string, read: (deployment: Deployment) => Promise<T>): Promise<T> {
  const { wishes, play } = SCENARIOS.find((one) => one.name === name)!
  const deployment = await Deployment.start(at, wishes)
  try {
    await play(deployment)
    return await read(deployment)
  } finally {
    await deployment.close()
  }
}

const JOB = 'job/job-test'
const ATTEMPT = 'job/job-test/1'
const { drainMs, powerOffMs, beatMs } = QUICK
/** From asking a machine to stop until it is ended as it is. */
const ALLOWANCE_MS = drainMs + powerOffMs + 2 * beatMs

describe('a job that is extended and told to move in one task', () => {
  it('passes both on, the limits first, each with its own numbers', async () => {
    const { job, attempt } = await played('job.extended-and-migrated-at-once', async (d) => ({
      job: await stepsOf(d, JOB),
      attempt: await stepsOf(d, ATTEMPT),
    }))
    const [extended, asked, ...others] = attempt.signals
    expect(others).toEqual([])
    const { limits } = extended!.value as { limits: Limits }
    expect({ name: extended!.name, limits }).toMatchObject({
      name: 'extend',
      limits: { seq: 1, budget: null },
    })
    expect(asked).toEqual({ name: 'drain', value: { reason: 'migrated', windowMs: drainMs } })
    expect(attempt.inputsOf<{ limits: Limits }>('extend')).toMatchObject([{ limits }])
    const drains = attempt.inputsOf<{ drain: Drain }>('drain').map(({ drain }) => drain)
    expect(drains).toEqual([{ reason: 'migrated', windowMs: drainMs }])
    expect(attempt.timersMs).toEqual([ALLOWANCE_MS])
    expect(attempt.inputsOf<SettleInput>('settle')).toMatchObject([{ drainReason: 'migrated', windowMs: 0 }])
    // The new deadline is in ten minutes; its timer leaves time to save and power off.
    const [timerMs, ...others2] = job.timersMs
    expect(others2).toEqual([])
    expect(timerMs).toBeLessThanOrEqual(600_000 - drainMs - powerOffMs)
    expect(timerMs).toBeGreaterThan(540_000)
  })
})

describe('a job in a fresh history', () => {
  it('continues with the limits, the pause and the numbers that the previous one had', async () => {
    const { job, attempt, plans } = await played('job.carried-over', async (d) => ({
      job: await stepsOf(d, JOB),
      attempt: await stepsOf(d, `${JOB}/4`),
      plans: (await readRecords(d.store, 'job-test')).filter((record) => record.kind === 'planned'),
    }))
    const [timerMs, ...others] = job.timersMs
    expect(others).toEqual([])
    expect(timerMs).toBeLessThanOrEqual(600_000 - drainMs - powerOffMs)
    expect(timerMs).toBeGreaterThan(540_000)
    // It was resolved, and has copied its checkpoint, in the history before.
    expect(job.inputsOf('resolveJob')).toEqual([])
    expect(job.inputsOf('copyCheckpoint')).toEqual([])
    expect(plans.map(({ seq, attempt: number }) => ({ seq, number }))).toEqual([{ seq: 20, number: 4 }])
    const { inputs } = plans[0]!.data
    expect(inputs).toMatchObject({ ledger: { spentMicroUsd: 5 } })
    expect(inputs.startsInMs).toBeGreaterThan(0)
    const { pause } = attempt.input as AttemptInput
    expect(pause).toMatchObject({ reason: 'interrupted', message: 'Its machine was taken back.' })
    expect(attempt.timersMs).toEqual([pause!.forMs])
  })
})

describe('the window of a settlement', () => {
  it('is that of a drain for a machine that was never asked to stop', async () => {
    const settled = await played('job.attempt-terminated-by-hand', async (d) =>
      (await stepsOf(d, JOB)).inputsOf<SettleInput>('settle'),
    )
    expect(settled).toMatchObject([{ drainReason: null, windowMs: drainMs, handle: null }])
  })

  it('is that of its owner for one whose attempt was terminated while it was cancelled in a hurry', async () => {
    const deployment = await Deployment.start(at, {
      behave: () => ({ ...LONG, isDeaf: true }),
      timing: { drainMs: 60_000 },
    })
    try {
      const job = await deployment.submit()
      await running(job)
      await deployment.stop('orchestrator')
      await deployment.terminateAttempt()
      await job.cancel()
      const stopped = await waitingUpdates(deployment, job, [['cancelNow']])
      await deployment.startOrchestrator()
      await stopped.result
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      const settled = (await stepsOf(deployment, JOB)).inputsOf<SettleInput>('settle')
      expect(settled).toMatchObject([{ drainReason: 'cancelled', windowMs: 5_000, handle: null }])
    } finally {
      await deployment.close()
    }
  })

  it('is shortened by the newest request, which its machine reads', async () => {
    const { signals, drains, settled } = await played('attempt.given-up-then-shorter', async (d) => {
      const { signals, inputsOf } = await stepsOf(d, ATTEMPT)
      return {
        signals: signals.map(({ value }) => value as DrainRequest),
        drains: inputsOf<{ drain: Drain; isNext?: boolean }>('drain'),
        settled: inputsOf<SettleInput>('settle'),
      }
    })
    expect(settled).toMatchObject([{ drainReason: null, windowMs: 60_000, end: { kind: 'failed' } }])
    expect(signals.map(({ reason, windowMs }) => ({ reason, windowMs }))).toEqual([
      { reason: 'cancelled', windowMs: 60_000 },
      { reason: 'cancelled', windowMs: 2_000 },
    ])
    expect(drains).toMatchObject([{ drain: { reason: 'cancelled', windowMs: 2_000 }, isNext: true }])
  })
})
