import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { layout } from '../../storage/layout'
import { readProduction, readRun, readRuns } from '../../storage/schedules'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { TEST_LIMIT_MS } from './looks'
import { worldsOn } from './harness'
import { GATED, jobOfToday, SCHEDULE, startRun, willMeasure } from './retraining'

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
        ...{ seq: 1, previousSeq: null, schedule: SCHEDULE, run: result.run.id },
        ...{ jobId: jobOfToday('train'), window: result.run.dates.window, bundleSha256: null },
        metric: { name: 'loss', value: 1.5 },
      })
      expect(production!.digest).toMatch(/^[0-9a-f]{64}$/)
      expect(JSON.parse((await store.get(layout.production(SCHEDULE)))!.toString())).toEqual(production)
      const entries = await readRun(store, SCHEDULE, result.run.id)
      expect(entries.map(({ kind }) => kind)).toEqual([
        ...['started', 'checked', 'model', 'judged', 'promoted', 'finished'],
      ])
      const [run] = await readRuns(store, SCHEDULE, 5)
      expect(run?.result).toEqual(result)
      expect(run?.result?.costMicroUsd).toBeGreaterThan(0)
    }),
  )
})
