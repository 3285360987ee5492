import { inLanes } from '../kit/runs'
import type { CloudProvider } from '../clouds/provider'
import type { TestConnection } from '../support/temporal'
import { Crew } from './crew'
import { gateSdk } from './gates'
import { livesAt, type LifeName } from './lives'
import { undisturbed, type Calls, type CrashPlan } from './plan'
import { runCrash, type CrashReport } from './run'

export interface LiveOptions {
  provider: CloudProvider
  atOnce: number
  onReport?: (report: CrashReport) => void
}

/** Lives through plans, some of them at once, with one crew; their reports in the order of the plans. */
export async function liveThroughCrashes(
  at: TestConnection,
  plans: readonly CrashPlan[],
  { provider, atOnce, onReport }: LiveOptions,
): Promise<CrashReport[]> {
  gateSdk()
  const crew = await Crew.begin(at, provider)
  try {
    return await inLanes(plans, { atOnce }, async (plan, index) => {
      const report = await runCrash(crew, plan, index + 1)
      onReport?.(report)
      return report
    })
  } finally {
    await crew.close()
  }
}

/** The calls that each life makes where nothing crashes, seen by living through all of them. */
export async function seeLives(at: TestConnection, options: LiveOptions): Promise<Map<LifeName, Calls>> {
  const reports = await liveThroughCrashes(at, livesAt(options.provider).map(undisturbed), options)
  return new Map(reports.map(({ plan, calls }) => [plan.life, calls]))
}
