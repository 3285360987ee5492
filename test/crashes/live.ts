import { inLanes } from '../kit/runs'
import { freshNamespace } from '../support/namespace'
import type { TestConnection } from '../support/temporal'
import { Crew } from './crew'
import { gateSdk } from './gates'
import { LIFE_NAMES, type LifeName } from './lives'
import { undisturbed, type Calls, type CrashPlan } from './plan'
import { runCrash, type CrashReport } from './run'

export interface LiveOptions {
  atOnce: number
  onReport?: (report: CrashReport) => void
}

/** Lives through plans, some of them at once, with one crew; their reports in the order of the plans. */
export async function liveThroughCrashes(
  at: TestConnection,
  plans: readonly CrashPlan[],
  { atOnce, onReport }: LiveOptions,
): Promise<CrashReport[]> {
  gateSdk()
  const crew = new Crew(at, await freshNamespace(at.client.connection as never))
  await crew.start('orchestrator', 'verbs', 'watches')
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
  const reports = await liveThroughCrashes(at, LIFE_NAMES.map(undisturbed), options)
  return new Map(reports.map(({ plan, calls }) => [plan.life, calls]))
}
