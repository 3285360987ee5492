import { beforeEach, describe, expect, it } from '@jest/globals'
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import type { Runtime } from '@temporalio/worker'
import { HISTOGRAMS, Metrics } from '../../activities/metrics'

const NOW = Date.UTC(2026, 10, 29, 12)

/** The values that the meter has received, as `name{labels} value`. */
let recorded: string[]
let metrics: Metrics
let monotonicMs: number

/** A meter that notes every value. */
function meterOf(lines: string[]): Runtime['metricMeter'] {
  const made = (name: string) => {
    const note = (value: number, labels: object = {}): void => {
      const shown = Object.entries(labels).map(([label, text]) => `${label}=${String(text)}`)
      lines.push(`${name}{${shown.join(' ')}} ${value}`)
    }
    return { add: note, record: note, set: note }
  }
  return {
    createCounter: made,
    createHistogram: made,
    createGauge: made,
  } as unknown as Runtime['metricMeter']
}

beforeEach(() => {
  recorded = []
  monotonicMs = 0
  metrics = new Metrics(
    meterOf(recorded),
    () => NOW,
    () => monotonicMs,
  )
})

/** Runs an activity of EC2 that takes two seconds. */
async function run(activityType: string, work: () => unknown, input: object = {}): Promise<unknown> {
  const { inbound } = metrics.measure('ec2')({ info: { activityType } as never })
  return inbound.execute({ args: [input] }, async () => {
    monotonicMs += 2_000
    return work()
  })
}

describe('an activity', () => {
  it('counts with its duration, and its answer passes', async () => {
    expect(await run('launch', () => 'answer')).toBe('answer')
    expect(recorded).toEqual([
      'crucible_activities{role=ec2 activity=launch outcome=ok} 1',
      'crucible_activity_seconds{role=ec2 activity=launch} 2',
    ])
  })

  it.each([
    ['the class of its failure', ApplicationFailure.create({ type: 'capacity' }), 'capacity'],
    ['that it was cancelled', new CancelledFailure('cancelled'), 'cancelled'],
    ['that its class is unknown', new TypeError('x is undefined'), 'unclassified'],
  ])('counts with %s, which passes', async (_, error, outcome) => {
    const failed = run('launch', () => {
      throw error
    })
    await expect(failed).rejects.toBe(error)
    expect(recorded[0]).toBe(`crucible_activities{role=ec2 activity=launch outcome=${outcome}} 1`)
  })
})

const ORDER = { backend: 'ec2', capacityType: 'spot' }

describe('a settled attempt', () => {
  it.each([
    [{ kind: 'succeeded' }, 'succeeded'],
    [{ kind: 'stopped', by: 'deadline' }, 'stopped-deadline'],
    [{ kind: 'failed', isLaunched: true, failure: { class: 'interrupted', message: '' } }, 'interrupted'],
  ])('counts by its end, with its cost: %j', async (end, word) => {
    await run('settle', () => ({ end, costMicroUsd: 1_250_000 }), { order: ORDER })
    expect(recorded.slice(0, 2)).toEqual([
      `crucible_attempts_ended{backend=ec2 capacity=spot end=${word}} 1`,
      'crucible_spend_microusd{backend=ec2 capacity=spot} 1250000',
    ])
  })
})

describe('a watch', () => {
  const input = { order: ORDER, handle: { launchedAtMs: NOW - 90_000 } }

  it('measures the start of a workload, and never its own duration', async () => {
    await run('watch', () => ({ kind: 'running' }), input)
    expect(recorded).toEqual([
      'crucible_start_seconds{backend=ec2 capacity=spot} 90',
      'crucible_activities{role=ec2 activity=watch outcome=ok} 1',
    ])
  })

  it('measures no start before the workload runs', async () => {
    await run('watch', () => ({ kind: 'queued' }), input)
    expect(recorded).toEqual(['crucible_activities{role=ec2 activity=watch outcome=ok} 1'])
  })
})

describe('a collection of garbage', () => {
  it('counts what it found without an owner', async () => {
    const verdicts = ['kept', 'ended', 'failed'].map((action) => ({ backend: 'ec2', action }))
    await run('collectGarbage', () => verdicts)
    expect(recorded.slice(0, 2)).toEqual([
      'crucible_garbage{backend=ec2 action=ended} 1',
      'crucible_garbage{backend=ec2 action=failed} 1',
    ])
  })
})

describe('the gauges', () => {
  it('are read when somebody asks: open jobs, open attempts, watches', async () => {
    const asked: string[] = []
    const count = async (query: string): Promise<{ count: number }> => {
      asked.push(query)
      return { count: query.includes("'running'") ? 7 : query.includes('STARTS_WITH') ? 3 : 0 }
    }
    metrics.readJobs({ workflow: { count } } as unknown as Client, ['ec2'])
    metrics.readWatches('ec2', { size: 3, longestUncheckedMs: 4_500 })
    expect(recorded).toEqual([])
    await metrics.read()
    expect([...recorded].sort()).toEqual([
      'crucible_attempts{backend=ec2} 3',
      'crucible_jobs{state=pending} 0',
      'crucible_jobs{state=provisioning} 0',
      'crucible_jobs{state=recovering} 0',
      'crucible_jobs{state=running} 7',
      'crucible_jobs{state=stopping} 0',
      'crucible_watch_age_seconds{backend=ec2} 4.5',
      'crucible_watched_machines{backend=ec2} 3',
    ])
    expect(asked.every((query) => query.includes("ExecutionStatus = 'Running'"))).toBe(true)
  })

  it('are read once for all who ask at the same time, and anew for who asks later', async () => {
    let asked = 0
    const workflow = { count: async () => ({ count: (asked += 1) }) }
    metrics.readJobs({ workflow } as unknown as Client, [])
    await metrics.read()
    const once = asked
    await Promise.all(Array.from({ length: 1_000 }, () => metrics.read()))
    expect(asked).toBe(2 * once)
  })

  it('keep their values while the server does not answer', async () => {
    const workflow = { count: () => Promise.reject(new Error('away')) }
    metrics.readJobs({ workflow } as unknown as Client, [])
    metrics.readWatches('ec2', { size: 1, longestUncheckedMs: 0 })
    await metrics.read()
    expect(recorded).toEqual([
      'crucible_watched_machines{backend=ec2} 1',
      'crucible_watch_age_seconds{backend=ec2} 0',
    ])
  })
})

it('the boundaries of histograms name metrics that exist', () => {
  const names: string[] = []
  const meter = new Proxy(meterOf([]), {
    get: () => (name: string) => {
      names.push(name)
      return {}
    },
  })
  new Metrics(meter, Date.now, () => 0)
  expect(names).toEqual(expect.arrayContaining([...HISTOGRAMS]))
})
