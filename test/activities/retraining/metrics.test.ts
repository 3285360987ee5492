import { describe, expect, it } from '@jest/globals'
import { readMetric } from '../../../activities/retraining/models'
import { layout } from '../../../storage/layout'
import { MemoryStore } from '../../backends/scripted/memory-store'

type Task = Parameters<typeof readMetric>[1]

async function metricOf(written: string): Promise<number | null> {
  const store = new MemoryStore(() => 0)
  await store.put(`${layout.artifactsOf('eval', 1)}metrics.json`, written)
  return readMetric(store, { jobId: 'eval', attempts: 1, metric: 'loss' } as Task)
}

describe('the metric of an evaluation', () => {
  it.each([
    ['{"loss": 1.5}', 1.5],
    ['{"loss": NaN, "step": 3}', null],
    ['{"loss": -Infinity}', null],
    ['{"other": NaN, "loss": 2}', 2],
    ['{"note": "loss: NaN", "loss": 2}', 2],
    ['{"loss": "1.5"}', null],
    ['{"step": 3}', null],
    ['a file of 40 MiB', null],
  ])('is read from %s as %p', async (written, value) => {
    const huge = '{"loss": 2}'.padEnd(40 * 1024 * 1024)
    expect(await metricOf(written.startsWith('{') ? written : huge)).toBe(value)
  })
})
