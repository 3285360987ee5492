import { microUsd } from '../../core/money/money'
import type { RecordKind } from '../../core/job/record'
import { CLOCK_SLACK_MS } from '../../core/time/time'
import { USEFUL_RUN_MS } from '../../planner/plan/assumptions'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { QUICK, SPOT, statusOf, type Deployment, type WorldWishes } from '../workflows/harness'
import { carryOf } from '../workflows/carry'
import { waitingUpdates } from '../workflows/looks'
import { cancelledWithCheckpoint, holdCopies, SOURCE_JOB } from '../workflows/two-jobs'
import { CAPACITY_SCENARIOS } from './capacity-scenarios'
import { GARBAGE_SCENARIOS } from './garbage-scenarios'
import { LONG_SCENARIOS } from './long-scenarios'
import { MONEY_SCENARIOS } from './money-scenarios'
import { RETRAIN_SCENARIOS } from './retrain-scenarios'
import { RESERVATION_SCENARIOS } from './reservation-scenarios'
import { ATTEMPT, closed, ofAttempt, paused, played, SECOND_ATTEMPT } from './playing'
import type { Scenario } from './scenario'

const LONG = { behave: () => ({ stepsTotal: 10_000 }) }

/** A store that refuses one kind of record twice. */
function refusing(deployment: Deployment, kind: RecordKind): Deployment {
  const { store } = deployment
  store.refuses = (_key, body) => store.refused < 2 && body.includes(`"kind": "${kind}"`)
  return deployment
}

const AFTER_LAUNCH: WorldWishes = { capabilities: { runnerStart: 'after-launch' } }
const QUOTA = { class: 'quota', message: 'no more of these' } as const
const UNREACHABLE = { class: 'unreachable', message: 'The agent never came.' } as const
const CAPACITY = { class: 'capacity', message: 'out of stock' } as const

/** A block that is worth a start for half a minute, and that the job is driven from a minute and a half later; elsewhere it is soon done. */
const ENDING: WorldWishes = {
  wares: [
    {
      capacityType: 'reserved',
      type: 'v100',
      place: 'a',
      stock: 1,
      priceMicroUsdPerHour: 0,
      usableForMs: USEFUL_RUN_MS + CLOCK_SLACK_MS + QUICK.drainMs + QUICK.powerOffMs + 30_000,
    },
    SPOT,
  ],
  behave: ({ attempt }) => ({ stepsTotal: 20_000, stepsPerSecond: attempt === 1 ? 50 : 20_000 }),
}

/** What is reserved has GPUs, which are kept for jobs that ask for some. */
const ON_GPU = { resources: { gpus: { min: 1 } } }

/** The first of two jobs does not end on its own; the second one is soon done. */
const TWO_JOBS: WorldWishes = {
  behave: ({ jobId }) => ({ stepsTotal: jobId === SOURCE_JOB ? 10_000 : 20 }),
}

const DEAF: WorldWishes = {
  behave: () => ({ stepsTotal: 10_000, isDeaf: true }),
  timing: { drainMs: 60_000 },
}

const cancelledThenNow = (d: Deployment): Promise<string> =>
  played(d, {}, async (job) => {
    await job.cancel()
    await until(async () => (await d.store.head(layout.drain('job-test', 1))) !== undefined)
    await job.executeUpdate('cancelNow')
  })

export const SCENARIOS: readonly Scenario[] = [
  { name: 'job.succeeded', play: (d) => played(d) },
  {
    name: 'job.interrupted-then-resumed',
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { diesAtStep: 35 } : {}) },
    play: (d) => played(d),
  },
  { name: 'job.reservation-ended-then-elsewhere', wishes: ENDING, play: (d) => played(d, ON_GPU) },
  {
    name: 'attempt.reservation-ends-unheeded',
    wishes: { ...ENDING, behave: (order) => ({ ...ENDING.behave!(order), ignoresExpiry: true }) },
    play: ofAttempt((d) => played(d, ON_GPU)),
  },
  {
    name: 'job.interrupted-too-often',
    wishes: { behave: () => ({ diesAtStep: 5 }) },
    play: (d) => played(d, { retries: { failures: 0, interruptions: 1 } }),
  },
  {
    name: 'job.workload-retried-then-failed',
    wishes: { behave: () => ({ fails: { atStep: 5, exitCode: 1 } }) },
    play: (d) => played(d, { retries: { failures: 1, interruptions: 0 } }),
  },
  {
    name: 'job.image-refused',
    wishes: { behave: () => ({ lacksImage: 'image-login' }) },
    play: (d) => played(d),
  },
  { name: 'job.image-absent', wishes: { behave: () => ({ lacksImage: 'image' }) }, play: (d) => played(d) },
  {
    name: 'job.registry-away-then-back',
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { lacksImage: 'registry' } : {}) },
    play: async (d) => {
      const job = await d.submit()
      await until(async () => (await statusOf(job)).reason === 'unreachable')
      await job.executeUpdate('migrate', { args: [{}] })
      return closed(job)
    },
  },
  {
    name: 'job.capacity-then-fallback',
    play: (d) => {
      d.world.faults.add('launch', { kind: 'refuses', failure: CAPACITY })
      return played(d)
    },
  },
  {
    name: 'job.quota-then-fallback',
    play: (d) => {
      d.world.faults.add('launch', { kind: 'refuses', failure: QUOTA })
      return played(d)
    },
  },
  {
    name: 'job.unreachable-then-elsewhere',
    wishes: AFTER_LAUNCH,
    play: (d) => {
      d.world.faults.add('start', { kind: 'throws', failure: UNREACHABLE })
      return played(d)
    },
  },
  {
    name: 'job.unreachable-twice',
    wishes: AFTER_LAUNCH,
    play: (d) => {
      d.world.faults.add('start', { kind: 'throws', failure: UNREACHABLE }, { times: 2 })
      return played(d)
    },
  },
  {
    name: 'job.waited-for-capacity',
    wishes: { wares: [{ ...SPOT, stock: 0 }] },
    play: async (d) => {
      const job = await d.submit()
      await until(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
      d.world.setStock(SPOT, 1)
      return closed(job)
    },
  },
  {
    name: 'job.extended-while-waiting',
    wishes: { wares: [{ ...SPOT, stock: 0 }] },
    play: async (d) => {
      const job = await d.submit({ deadlineAtMs: Date.now() + 600_000 })
      await until(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
      await job.executeUpdate('extend', { args: [{ deadlineAtMs: Date.now() + 900_000 }] })
      d.world.setStock(SPOT, 1)
      return closed(job)
    },
  },
  {
    name: 'job.cancelled-while-waiting',
    wishes: { wares: [{ ...SPOT, stock: 0 }] },
    play: async (d) => {
      const job = await d.submit()
      await until(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
      await job.cancel()
      return closed(job)
    },
  },
  {
    name: 'job.planned-after-trouble',
    play: (d) => played(refusing(d, 'planned')),
  },
  {
    name: 'job.decided-after-trouble',
    play: (d) => played(refusing(d, 'decided')),
  },
  { name: 'job.cancelled', wishes: LONG, play: (d) => played(d, {}, (job) => job.cancel()) },
  { name: 'job.cancelled-then-now', wishes: DEAF, play: cancelledThenNow },
  { name: 'attempt.cancelled-then-now', wishes: DEAF, play: ofAttempt(cancelledThenNow) },
  {
    name: 'job.migrated',
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { stepsTotal: 10_000 } : {}) },
    play: (d) =>
      played(d, {}, (job) =>
        job.executeUpdate('migrate', { args: [{ to: { backend: 'scripted', capacityType: 'on-demand' } }] }),
      ),
  },
  {
    name: 'job.migrated-to-nowhere',
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { stepsTotal: 10_000 } : {}) },
    play: (d) =>
      played(d, {}, (job) => job.executeUpdate('migrate', { args: [{ to: { backend: 'nowhere' } }] })),
  },
  {
    name: 'job.extended-and-migrated-at-once',
    // Saving takes half of its window: the answer to the request is in the history before the machine has stopped.
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { stepsTotal: 10_000, savesInMs: 1_000 } : {}) },
    play: (d) =>
      played(d, {}, async (job) => {
        // Both come in one task of the workflow.
        await d.stop('orchestrator')
        const updates = await waitingUpdates(d, job, [
          ['extend', { deadlineAtMs: Date.now() + 600_000 }],
          ['migrate', {}],
        ])
        await d.startOrchestrator()
        await updates.result
      }),
  },
  {
    name: 'job.carried-over',
    wishes: TWO_JOBS,
    play: async (d) => {
      const source = await cancelledWithCheckpoint(d)
      return closed(await d.submit({}, { source, carry: await carryOf(d, SOURCE_JOB) }))
    },
  },
  {
    name: 'job.deadline',
    wishes: LONG,
    play: (d) => played(d, { deadlineAtMs: Date.now() + 20_000 }),
  },
  {
    name: 'job.budget',
    wishes: { ...LONG, wares: [SPOT] },
    play: (d) =>
      played(d, { budgetMicroUsd: microUsd(10) }, (job) =>
        job.executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(1.5) }] }),
      ),
  },
  {
    name: 'job.from-another',
    wishes: TWO_JOBS,
    play: async (d) => {
      const source = await cancelledWithCheckpoint(d)
      return closed(await d.submit({}, { source }))
    },
  },
  {
    name: 'job.from-another-without-checkpoints',
    wishes: TWO_JOBS,
    play: async (d) => {
      const source = await cancelledWithCheckpoint(d)
      for await (const { key } of d.store.list(layout.checkpoints(source.jobId))) await d.store.delete(key)
      return closed(await d.submit({}, { source }))
    },
  },
  {
    name: 'job.cancelled-while-copying',
    wishes: TWO_JOBS,
    play: async (d) => {
      const source = await cancelledWithCheckpoint(d)
      const held = holdCopies(d)
      const job = await d.submit({}, { source })
      await held.begun
      await job.cancel()
      const id = await closed(job)
      held.release()
      return id
    },
  },
  {
    name: 'job.attempt-terminated-by-hand',
    play: (d) => played(d, {}, () => d.client.workflow.getHandle(ATTEMPT).terminate()),
  },

  {
    name: 'attempt.budget',
    wishes: { behave: () => ({ stepsTotal: 10_000, isDeaf: true }), wares: [SPOT] },
    play: ofAttempt((d) => played(d, { budgetMicroUsd: microUsd(7) })),
  },
  { name: 'attempt.succeeded', play: ofAttempt((d) => played(d)) },
  {
    name: 'attempt.extension-refused-to-the-end',
    wishes: LONG,
    play: ofAttempt((d) => {
      d.store.refuses = (key) => key.includes('/limits/')
      return played(d, { budgetMicroUsd: microUsd(1_000) }, async (job) => {
        await job.executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(2_000) }] })
        await until(() => d.store.refused > 0)
        await job.cancel()
      })
    }),
  },
  {
    name: 'attempt.unreachable',
    wishes: AFTER_LAUNCH,
    play: ofAttempt((d) => {
      d.world.faults.add('start', { kind: 'throws', failure: UNREACHABLE })
      return played(d)
    }),
  },
  {
    name: 'attempt.launched-and-never-came-up',
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { neverBoots: true } : {}) },
    play: ofAttempt(async (d) => {
      const job = await d.submit()
      await until(() => d.world.machines.length === 1)
      d.world.machines[0]!.end('failed-to-start')
      return closed(job)
    }),
  },
  {
    name: 'attempt.stopped-speaking',
    wishes: {
      timing: { silenceMs: 600 },
      behave: ({ attempt }) => (attempt === 1 ? { hangsAtStep: 20 } : {}),
    },
    play: ofAttempt((d) => played(d)),
  },
  {
    name: 'attempt.silent-started-again-given-up',
    wishes: {
      capabilities: { runnerStart: 'after-launch' },
      timing: { silenceMs: 600 },
      behave: ({ attempt }) => (attempt === 1 ? { neverStarts: true } : {}),
    },
    play: ofAttempt((d) => played(d)),
  },
  {
    name: 'attempt.refused',
    play: ofAttempt((d) => {
      d.world.faults.add('launch', { kind: 'refuses', failure: CAPACITY })
      return played(d)
    }),
  },
  {
    name: 'attempt.unconfirmed-then-found',
    play: ofAttempt((d) => {
      d.world.faults.add('launch', { kind: 'loses-answer', hasEffect: true, findAfterMs: 100 })
      return played(d)
    }),
  },
  {
    name: 'attempt.unconfirmed-unsettled-absent',
    wishes: { capabilities: { idempotency: 'tag' } },
    play: ofAttempt((d) => {
      d.world.faults.add('launch', { kind: 'loses-answer', hasEffect: false, findAfterMs: 0 })
      d.world.freezeLists(5_000)
      return played(d)
    }),
  },
  {
    name: 'attempt.paused',
    wishes: { behave: ({ attempt }) => (attempt === 1 ? { fails: { atStep: 5, exitCode: 1 } } : {}) },
    play: async (d) => {
      await played(d, { retries: { failures: 1, interruptions: 0 } })
      return SECOND_ATTEMPT
    },
  },
  {
    name: 'attempt.called-off-in-its-pause',
    play: async (d) => {
      const job = await paused(d)
      await job.cancel()
      await closed(job)
      return SECOND_ATTEMPT
    },
  },
  {
    name: 'attempt.given-up-then-shorter',
    wishes: {
      behave: () => ({ stepsTotal: 10_000, hangsAtStep: 20 }),
      timing: { silenceMs: 600, drainMs: 60_000 },
    },
    play: ofAttempt((d) =>
      played(d, {}, async (job) => {
        const attempt = d.client.workflow.getHandle(ATTEMPT)
        await until(async () => {
          const { pendingActivities } = (await attempt.describe()).raw
          return pendingActivities?.some(({ activityType }) => activityType?.name === 'settle') === true
        })
        await job.cancel()
        // A busy worker would otherwise pass both on as one.
        await until(async () => {
          const { events } = await attempt.fetchHistory()
          return events?.some((event) => event.workflowExecutionSignaledEventAttributes) === true
        })
        await job.executeUpdate('cancelNow')
      }),
    ),
  },
  { name: 'attempt.drained', wishes: LONG, play: ofAttempt((d) => played(d, {}, (job) => job.cancel())) },
  {
    name: 'attempt.drain-window-over',
    wishes: {
      behave: () => ({ stepsTotal: 10_000, isDeaf: true, silentAtStep: 20 }),
      timing: { drainMs: 500, silenceMs: 60_000 },
    },
    play: ofAttempt((d) => played(d, {}, (job) => job.cancel())),
  },
  {
    name: 'attempt.drained-by-its-provider',
    wishes: {
      capabilities: { runnerStart: 'after-launch' },
      behave: () => ({ stepsTotal: 10_000, silentAtStep: 150 }),
      timing: { drainMs: 1_000, silenceMs: 60_000 },
    },
    play: ofAttempt((d) =>
      played(d, {}, async (job) => {
        await until(() => d.world.machines[0]!.isSilent)
        await job.cancel()
      }),
    ),
  },
  {
    name: 'attempt.extended',
    wishes: { behave: () => ({ stepsTotal: 500 }) },
    play: ofAttempt((d) =>
      played(d, {}, (job) => job.executeUpdate('extend', { args: [{ deadlineAtMs: Date.now() + 600_000 }] })),
    ),
  },
  {
    name: 'attempt.cancelled-by-hand',
    play: ofAttempt((d) => played(d, {}, () => d.client.workflow.getHandle(ATTEMPT).cancel())),
  },

  ...CAPACITY_SCENARIOS,
  ...MONEY_SCENARIOS,
  ...RETRAIN_SCENARIOS,
  ...LONG_SCENARIOS,
  ...GARBAGE_SCENARIOS,
  ...RESERVATION_SCENARIOS,
]
