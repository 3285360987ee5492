import type { JobView } from '../../client/job/job-view'
import { SECOND_MS } from '../../core/time/time'
import { CloudDeployment } from '../recovery/deployment'
import type { TestConnection } from '../support/temporal'
import type { Measure } from './measure'

const SLOTS = 2
const RATIO_MAX = 1.3

export interface QueueSeen {
  /** From the first machine's order until the last job was over, against the programs' own time on all slots. */
  ratio: number
  /** Jobs that still waited for a place when one that was submitted later had its machine. */
  overtaken: number
  attempts: number
  jobs: JobView[]
}

/** Many short jobs of one wish on the slots of this machine. */
export async function runQueue(at: TestConnection, count: number, eachMs: number): Promise<QueueSeen> {
  const deployment = await CloudDeployment.start(at, {
    settings: { CRUCIBLE_BACKENDS: 'local', CRUCIBLE_LOCAL_SLOTS: String(SLOTS) },
  })
  try {
    const ids: string[] = []
    for (let number = 1; number <= count; number++) {
      const id = await deployment.submit({ run: `sleep ${eachMs / SECOND_MS}`, name: `short-${number}` })
      ids.push(id)
      // One that has not asked yet can be overtaken: it is in no line.
      await deployment.see(id, ({ attemptsTotal, waiting }) => attemptsTotal > 0 || waiting !== null)
    }
    const jobs: JobView[] = []
    for (const id of ids) jobs.push(await deployment.ended(id))
    const placedAtMs = await Promise.all(ids.map((id) => placedAt(deployment, id)))
    return seenOf(jobs, placedAtMs, eachMs)
  } finally {
    await deployment.stop()
  }
}

/** When the job was given its place. Two that got theirs together may start in either order. */
async function placedAt({ client }: CloudDeployment, jobId: string): Promise<number> {
  const entries = await client.records(jobId)
  return entries.find(({ kind }) => kind === 'planned')?.atMs ?? Infinity
}

function seenOf(jobs: JobView[], placedAtMs: number[], eachMs: number): QueueSeen {
  const starts = jobs.map(({ attempts }) => attempts[0]?.launchedAtMs ?? Infinity)
  const tookMs = Math.max(...jobs.map(({ endedAtMs }) => endedAtMs ?? Infinity)) - Math.min(...starts)
  const overtaken = placedAtMs.filter((placed, index) =>
    starts.slice(index + 1).some((younger) => younger < placed),
  )
  return {
    ratio: tookMs / ((jobs.length * eachMs) / SLOTS),
    overtaken: overtaken.length,
    attempts: jobs.reduce((sum, { attemptsTotal }) => sum + attemptsTotal, 0),
    jobs,
  }
}

export async function queue(at: TestConnection, count: number, eachMs: number): Promise<Measure[]> {
  const { ratio, overtaken, attempts } = await runQueue(at, count, eachMs)
  const bench = 'queue'
  return [
    {
      bench,
      name: `${count} jobs of ${eachMs / SECOND_MS} s on ${SLOTS} slots`,
      value: ratio,
      unit: 'x',
      goal: { is: 'at most', value: RATIO_MAX },
      remark: 'the programs alone, on slots that are never idle',
    },
    {
      bench,
      name: 'jobs overtaken',
      value: overtaken,
      unit: 'jobs',
      goal: { is: 'at most', value: 0 },
    },
    {
      bench,
      name: 'attempts beyond one a job',
      value: attempts - count,
      unit: 'attempts',
      goal: { is: 'at most', value: 0 },
    },
  ]
}
