import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { formatInstant } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { promote, readProduction, readRun, readRuns } from '../../storage/schedules'
import { connectTo, quietWorkers, skipTime, type TestConnection } from '../support/temporal'
import { eventually, TEST_LIMIT_MS } from './looks'
import { LONG, worldsOn } from './harness'
import {
  GATED,
  inRunState,
  jobOfToday,
  opensIn,
  runFailure,
  runStatus,
  SCHEDULE,
  resetBeforeChild,
  startRun,
  UI_URL,
  willMeasure,
} from './retraining'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

describe('a retraining run', () => {
  it.concurrent(
    'trains, evaluates, and puts the model into production with its lineage',
    inWorld({}, async (deployment) => {
      const { store } = deployment
      await willMeasure(deployment, 1.5)
      const result = await (await startRun(deployment, GATED)).result()
      expect(result).toMatchObject({
        state: 'promoted',
        message: 'Version 1 of ranker is in production. loss is 1.5; no model in production to compare with.',
        jobs: [
          { part: 'training', jobId: jobOfToday('train'), state: 'succeeded' },
          { part: 'evaluation', jobId: jobOfToday('eval'), state: 'succeeded' },
        ],
      })
      const production = await readProduction(store, SCHEDULE)
      expect(production).toMatchObject({
        seq: 1,
        previousSeq: null,
        schedule: SCHEDULE,
        run: result.run.id,
        jobId: jobOfToday('train'),
        window: result.run.dates.window,
        bundleSha256: null,
        metric: { name: 'loss', value: 1.5 },
      })
      expect(production!.digest).toMatch(/^[0-9a-f]{64}$/)
      expect(JSON.parse((await store.get(layout.production(SCHEDULE)))!.toString())).toEqual(production)
      const entries = await readRun(store, SCHEDULE, result.run.id)
      expect(entries.map(({ kind }) => kind)).toEqual([
        'started',
        'checked',
        'model',
        'judged',
        'promoted',
        'finished',
      ])
      const [run] = await readRuns(store, { schedule: SCHEDULE, count: 5 })
      expect(run?.result).toEqual(result)
      expect(run?.result?.costMicroUsd).toBeGreaterThan(0)
      // Its evaluation began with the model.
      const first = JSON.parse((await store.get(layout.record(jobOfToday('eval'), 0)))!.toString()) as {
        data: { source: { jobId: string }; spec: { run: string } }
      }
      expect(first.data.source.jobId).toBe(jobOfToday('train'))
      expect(first.data.spec.run).toBe(`evaluate ${jobOfToday('train')}`)
    }),
  )

  it.concurrent(
    'keeps the model in production if the new one is worse on the same data',
    inWorld({}, async (deployment) => {
      const { store } = deployment
      await willMeasure(deployment, 1.5)
      await (await startRun(deployment, GATED)).result()
      await willMeasure(deployment, 1.8, jobOfToday('eval', 'b'))
      await willMeasure(deployment, 1.6, jobOfToday('prod', 'b'))
      const rerun = { ...GATED, evaluation: { ...GATED.evaluation!, production: 'rerun' as const } }
      const result = await (await startRun(deployment, rerun, '2')).result()
      expect(result).toMatchObject({
        state: 'kept',
        verdict: { isPassed: false, value: 1.8, production: 1.6, productionFrom: 'rerun' },
        message: expect.stringMatching(
          /worse than the tolerance allows \(1.76\). Version 1 stays in production/,
        ),
      })
      expect(await readProduction(store, SCHEDULE)).toMatchObject({ seq: 1, jobId: jobOfToday('train') })
      await willMeasure(deployment, 1.62, jobOfToday('eval', 'c'))
      const third = await (await startRun(deployment, GATED, '3')).result()
      expect(third).toMatchObject({
        state: 'promoted',
        verdict: { production: 1.5, productionFrom: 'recorded' },
      })
      expect(await readProduction(store, SCHEDULE)).toMatchObject({ seq: 2, previousSeq: 1 })
    }),
  )

  it.concurrent(
    'promotes only what a person approves, if one is asked, and says how',
    inWorld({ posted: [] }, async (deployment) => {
      await willMeasure(deployment, 1.5)
      await willMeasure(deployment, 1.5, jobOfToday('eval', 'b'))
      const notify = { webhook: 'https://hooks.test/x' }
      const asking = { ...GATED, notify, promotion: { ...GATED.promotion!, isAsked: true } }
      const first = await startRun(deployment, asking)
      const approve = (): Promise<unknown> => first.executeUpdate('approveModel', { args: [{ by: 'ada' }] })
      await inRunState(first, 'training')
      await expect(approve()).rejects.toMatchObject({
        cause: { message: 'No model waits for approval: the run is training.' },
      })
      await inRunState(first, 'awaiting-approval')
      expect(await readProduction(deployment.store, SCHEDULE)).toBeUndefined()
      const { run, pageUrl, untilAtMs } = await runStatus(first)
      expect(Math.abs(untilAtMs! - Date.now() - 60_000)).toBeLessThan(60_000)
      expect(pageUrl).toBe(`${UI_URL}/retrain%2Franker-1`)
      const how = `\`crucible schedule approve ranker --run ${run!.id}\``
      const page = await first
        .query<string>('__temporal_workflow_metadata')
        .then((data) => JSON.stringify(data))
      for (const part of [how, pageUrl!, `waits until: ${formatInstant(untilAtMs!)}`])
        expect(page).toContain(part)
      await eventually(async () => deployment.wishes.posted!.length > 0)
      const { text } = JSON.parse(deployment.wishes.posted![0]!.body) as { text: string }
      expect(text).toContain(`Put it into production: ${how}.`)
      expect(text.endsWith(pageUrl!)).toBe(true)
      // Of two words at the same time the first counts.
      await deployment.stop('orchestrator')
      const both = Promise.allSettled([approve(), approve()])
      await deployment.startOrchestrator()
      const [yes, no] = (await both).sort((one, other) => one.status.localeCompare(other.status))
      expect(yes).toMatchObject({ status: 'fulfilled' })
      expect(no).toMatchObject({
        reason: {
          cause: {
            message: expect.stringMatching(/^The model was approved by ada already|run is promoting/),
          },
        },
      })
      expect(await first.result()).toMatchObject({ state: 'promoted' })
      const second = await startRun(deployment, asking, '2')
      await inRunState(second, 'awaiting-approval')
      await second.executeUpdate('rejectModel', { args: [{ by: 'ada', reason: 'a holiday' }] })
      expect(await second.result()).toMatchObject({
        state: 'kept',
        message: expect.stringMatching(/^Rejected by ada: a holiday. Version 1 stays in production/),
      })
    }),
  )

  it.concurrent(
    'keeps the old model if the evaluation fails, and says so',
    inWorld(
      { behave: ({ jobId }) => (jobId.endsWith('-eval') ? { lacksImage: 'image' } : {}) },
      async (deployment) => {
        const result = await (await startRun(deployment, GATED)).result()
        expect(result).toMatchObject({
          state: 'kept',
          message: expect.stringMatching(/^The evaluation failed: /),
        })
        expect(result.model?.jobId).toBe(jobOfToday('train'))
        expect(await readProduction(deployment.store, SCHEDULE)).toBeUndefined()
      },
    ),
  )

  it.concurrent(
    'keeps the old model if the promotion command fails',
    inWorld(
      { behave: ({ jobId }) => (jobId.endsWith('-promo') ? { lacksImage: 'image' } : {}) },
      async (deployment) => {
        await willMeasure(deployment, 1.5)
        const promotion = { ...GATED.promotion!, job: { run: 'publish {{ model.job }}' } }
        const result = await (await startRun(deployment, { ...GATED, promotion })).result()
        expect(result).toMatchObject({
          state: 'kept',
          message: expect.stringMatching(/^The promotion command failed: .*There is no model in production/),
        })
        expect(await readProduction(deployment.store, SCHEDULE)).toBeUndefined()
      },
    ),
  )

  it.concurrent(
    'does not run the promotion command for a model that may not replace the one in production',
    inWorld({}, async (deployment) => {
      const { store } = deployment
      await willMeasure(deployment, 1.5)
      const other = {
        jobId: 'other',
        checkpointId: '1-1',
        step: 1,
        digest: 'd',
        artifactsUrl: 'u',
        promotedAtMs: 0,
        schedule: 'other',
        run: 'other-run',
        bundleSha256: null,
        window: { start: '2000-01-01', end: '2000-04-01' },
      }
      // Another run promotes between the gate and the command.
      store.refuses = (key, body) => {
        if (key.includes('/runs/') && body.includes('"kind": "judged"')) void promote(store, SCHEDULE, other)
        return false
      }
      const promotion = { ...GATED.promotion!, job: { run: 'publish {{ model.job }}' } }
      const result = await (await startRun(deployment, { ...GATED, promotion })).result()
      expect(result).toMatchObject({
        state: 'kept',
        message: expect.stringMatching(/^The run other-run has put version 1 into production since/),
      })
      expect(result.jobs.map(({ part }) => part)).toEqual(['training', 'evaluation'])
      expect(await readProduction(store, SCHEDULE)).toMatchObject({ seq: 1, run: 'other-run' })
    }),
  )

  it.concurrent(
    'fails with its training, and keeps the checkpoint',
    inWorld({ behave: () => ({ fails: { atStep: 15, exitCode: 1 } }) }, async (deployment) => {
      const { message, result } = await runFailure(await startRun(deployment, GATED))
      expect(message).toMatch(/Its checkpoint of step \d+ is kept\.$/)
      expect(result).toMatchObject({ state: 'failed', jobs: [{ part: 'training', state: 'failed' }] })
    }),
  )

  it.concurrent(
    'waits for its window with durable timers, checks a day before, and starts within the minute',
    inWorld({}, async (deployment) => {
      const { spec, opensAtMs } = opensIn(3)
      const run = await startRun(deployment, { ...spec, checkMs: 86_400_000 })
      await skipTime(deployment.client, run.workflowId)
      const result = await run.result()
      expect(result.state).toBe('trained')
      expect(result.run.dates).toMatchObject({ opensAtMs, isByHand: false })
      const { startedAtMs } = result.jobs[0]!
      expect(startedAtMs - opensAtMs).toBeGreaterThanOrEqual(0)
      expect(startedAtMs - opensAtMs).toBeLessThan(60_000)
    }),
  )

  it.concurrent(
    'ends without a training when it is skipped, and begins early by a word',
    inWorld({}, async (deployment) => {
      const skipped = await startRun(deployment, opensIn(30).spec)
      await inRunState(skipped, 'waiting')
      await skipped.executeUpdate('skipRun', { args: [{ by: 'ada' }] })
      expect(await skipped.result()).toMatchObject({ state: 'skipped', message: 'Skipped by ada.', jobs: [] })
      // The rules of the first run are some seconds old: now they would begin a run by hand, which waits for nothing.
      const early = await startRun(deployment, opensIn(30).spec, '2')
      await inRunState(early, 'waiting')
      await early.executeUpdate('startNow')
      expect(await early.result()).toMatchObject({ state: 'trained', jobs: [{ state: 'succeeded' }] })
    }),
  )

  it.concurrent(
    'lets its job save when it is cancelled',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const run = await startRun(deployment)
      await eventually(
        async () => (await runStatus(run)).jobs.length > 0 && deployment.world.machines.length > 0,
      )
      await run.cancel()
      await expect(run.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } })
      const [recorded] = await readRuns(deployment.store, { schedule: SCHEDULE, count: 1 })
      expect(recorded?.result).toMatchObject({ state: 'cancelled', jobs: [{ state: 'cancelled' }] })
    }),
  )

  it.concurrent(
    'follows the training that it had before its workflow was reset, and lets it save',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const run = await startRun(deployment)
      await eventually(async () => deployment.world.machines.length > 0)
      const fresh = await resetBeforeChild(deployment, run)
      await eventually(async () => {
        const history = await fresh.fetchHistory()
        return history.events!.some((event) => event.startChildWorkflowExecutionFailedEventAttributes)
      })
      expect((await runStatus(fresh)).state).toBe('training')
      await fresh.cancel()
      await expect(fresh.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } })
      const [recorded] = await readRuns(deployment.store, { schedule: SCHEDULE, count: 1 })
      expect(recorded?.result).toMatchObject({ state: 'cancelled', jobs: [{ state: 'cancelled' }] })
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )

  it.concurrent(
    'says early what the checks find, rehearses, and posts its news',
    inWorld({ posted: [], wares: [] }, async (deployment) => {
      const { posted } = deployment.wishes
      const notify = { webhook: 'https://hooks.test/x' }
      const { spec } = opensIn(30)
      const rehearsal = { run: 'train --steps 1', budget: '$1' }
      const run = await startRun(deployment, { ...spec, notify, rehearsal, checkMs: 40 * 86_400_000 })
      // Nothing can run it, so that the rehearsal fails too.
      await eventually(async () => (await runStatus(run)).warnings.length > 1)
      const { warnings, jobs } = await runStatus(run)
      expect(warnings).toEqual([
        expect.stringMatching(/^No place could run the training now: /),
        expect.stringMatching(/^The rehearsal failed: /),
      ])
      expect(jobs).toMatchObject([{ part: 'rehearsal', state: 'failed' }])
      await inRunState(run, 'waiting')
      await run.executeUpdate('skipRun', { args: [{ by: 'ada' }] })
      expect(await run.result()).toMatchObject({ state: 'skipped' })
      const told = posted!.map(({ url, body }) => ({ url, ...(JSON.parse(body) as { text: string }) }))
      expect(told).toMatchObject([
        {
          url: notify.webhook,
          text: expect.stringMatching(/^ranker, run .*: checking\. .*No place could run/),
        },
        { text: expect.stringMatching(/The rehearsal failed/) },
        { text: expect.stringMatching(/^ranker, run .*: skipped\. Skipped by ada\./) },
      ])
    }),
  )
})
