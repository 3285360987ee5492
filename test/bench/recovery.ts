import type { JobView, RecoveryView } from '../../client/job/job-view'
import { SECOND_MS } from '../../core/time/time'
import { CloudDeployment } from '../recovery/deployment'
import type { TestConnection } from '../support/temporal'
import { median, quantile, type Measure } from './measure'

/** Parts of what the provider takes until a machine can be spoken to; always the same, so that all the rest is known to be ours. */
const PROVIDER_PARTS = { pending: 1 / 9, boot: 2 / 9, register: 6 / 9 } as const
/** Ten seconds are what the owner of a job barely notices next to a boot of minutes. */
const OVERHEAD_GOAL_MS = 10 * SECOND_MS
/** Steps of a twentieth of a second before the next blow. */
const STEPS_BETWEEN = 40

type PartName = 'detectMs' | 'drainMs' | 'acquireMs' | 'bootMs' | 'restoreMs' | 'firstStepMs'
const PARTS: readonly PartName[] = ['detectMs', 'drainMs', 'acquireMs', 'bootMs', 'restoreMs', 'firstStepMs']

/** A job loses its spot machine again and again, with the usual notice and without any: what each recovery takes, part by part. */
export async function recovery(at: TestConnection, times: number, bootMs: number): Promise<Measure[]> {
  const durations = Object.fromEntries(
    Object.entries(PROVIDER_PARTS).map(([name, part]): [string, [number, number]] => {
      const ms = Math.round(part * bootMs)
      return [name, [ms, ms]]
    }),
  )
  const deployment = await CloudDeployment.start(at, { world: { durations } })
  try {
    const withNotice = await recoveries(deployment, times, (machine) => deployment.cloud.interrupt(machine))
    const without = await recoveries(deployment, times, (machine) =>
      deployment.cloud.interrupt(machine, { isSilent: true }),
    )
    return [
      ...measuresOf('with notice', withNotice, bootMs),
      ...measuresOf('without notice', without, bootMs),
    ]
  } finally {
    await deployment.stop()
  }
}

async function recoveries(
  deployment: CloudDeployment,
  times: number,
  strike: (machine: string) => void,
): Promise<RecoveryView[]> {
  const retries = { failures: 0, interruptions: times }
  const job = await deployment.submit({ retries }, { lastAttempt: times + 1 })
  for (let attempt = 1; attempt <= times; attempt++) {
    const view = await deployment.see(job, (now) => hasDone(now, attempt) || isPast(now, attempt))
    if (!hasDone(view, attempt))
      throw new Error(
        `attempt ${attempt} ended before its machine was taken: ${JSON.stringify(view, null, 1)}`,
      )
    strike(deployment.machineOf(job))
  }
  const { state, message, recoveries } = await deployment.ended(job)
  if (state !== 'succeeded' || recoveries.length !== times)
    throw new Error(`the job ended as ${state} after ${recoveries.length} recoveries: ${message}`)
  return recoveries
}

function hasDone({ attempts }: JobView, number: number): boolean {
  const last = attempts.at(-1)
  if (last?.number !== number || last.progress?.step == null || last.checkpoint === null) return false
  return last.progress.step - (last.restoredFrom?.step ?? 0) >= STEPS_BETWEEN
}

/** Whether the attempt can no longer be struck. */
function isPast({ attempts, endedAtMs }: JobView, number: number): boolean {
  return endedAtMs !== null || (attempts.at(-1)?.number ?? 0) > number
}

function measuresOf(how: string, recoveries: RecoveryView[], bootMs: number): Measure[] {
  const known = (values: (number | null)[]): number[] => values.filter((value) => value !== null)
  const measures = PARTS.map((part): Measure => {
    const name = part.replace(/Ms$/, '').replace('firstStep', 'first step')
    return measure(`${how}: ${name}`, known(recoveries.map((each) => each[part])))
  })
  const ours = known(recoveries.map(({ totalMs }) => totalMs)).map((totalMs) => totalMs - bootMs)
  const overhead = measure(`${how}: all but the provider's ${bootMs / SECOND_MS} s`, ours)
  return [...measures, { ...overhead, goal: { is: 'at most', value: OVERHEAD_GOAL_MS / SECOND_MS } }]
}

function measure(name: string, valuesMs: number[]): Measure {
  if (valuesMs.length === 0) throw new Error(`${name} is not known of any recovery`)
  const seconds = (ms: number): number => ms / SECOND_MS
  return {
    bench: 'recovery',
    name,
    value: seconds(median(valuesMs)),
    unit: 's',
    remark: `median of ${valuesMs.length}; nine in ten within ${seconds(quantile(valuesMs, 0.9)).toPrecision(3)} s`,
  }
}
