import { SECOND_MS } from '../../core/time/time'
import type { TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { Deployment, LONG, SPOT } from '../workflows/harness'
import type { Measure } from './measure'

const GOAL_S = 10
const ALL_RUN_WITHIN_MS = 10 * 60 * SECOND_MS

/** Many jobs that end at one moment, at a provider whose machines take long to stop: the ends that are sent, and the wait of a new job. */
export async function endings(at: TestConnection, jobs: number, stopMs: number): Promise<Measure[]> {
  const deployment = await Deployment.start(at, {
    wares: [{ ...SPOT, stock: 1_000_000 }],
    behave: () => LONG,
    // Machines go on until somebody ends them.
    capabilities: { billsUntil: 'terminate' },
    stopsForMs: stopMs,
    // Quiet beats: what is measured is not how fast this machine plays runners.
    timing: { beatMs: SECOND_MS, silenceMs: 60 * SECOND_MS, startWithinMs: ALL_RUN_WITHIN_MS },
  })
  const { world } = deployment
  const machineOf = (jobId: string): string => `${jobId}-1`
  const since = (verb: 'terminate' | 'launch', attemptId: string): number | undefined =>
    world.callsOf(verb).find(({ attemptIds }) => attemptIds.includes(attemptId))?.atMs
  try {
    const ids = Array.from({ length: jobs }, (_, index) => `job-${index}`)
    const all = await Promise.all(ids.map((jobId) => deployment.submit({}, { jobId })))
    const isRunning = (one: (typeof world.machines)[number]): boolean => one.state === 'running'
    await until(() => world.machines.filter(isRunning).length >= jobs, ALL_RUN_WITHIN_MS)
    const beganAtMs = world.clock.now()
    await Promise.all(all.map((job) => job.cancel()))
    const next = 'job-next'
    const submittedAtMs = world.clock.now()
    const newest = await deployment.submit({}, { jobId: next })
    const within = 10 * stopMs + ALL_RUN_WITHIN_MS
    await until(() => since('launch', machineOf(next)) !== undefined, within)
    const seconds = (atMs: number | undefined, fromMs: number): number =>
      ((atMs ?? Infinity) - fromMs) / SECOND_MS
    await until(() => ids.every((id) => since('terminate', machineOf(id)) !== undefined), within)
    const ends = ids.map((id) => seconds(since('terminate', machineOf(id)), beganAtMs))
    await newest.cancel()
    return [
      measureOf(`${jobs} ends at once: the last is sent after`, Math.max(...ends)),
      measureOf(
        'a job submitted then: its machine is ordered after',
        seconds(since('launch', machineOf(next)), submittedAtMs),
      ),
    ]
  } finally {
    await deployment.close()
  }
}

function measureOf(name: string, value: number): Measure {
  return { bench: 'endings', name, value, unit: 's', goal: { is: 'at most', value: GOAL_S } }
}
