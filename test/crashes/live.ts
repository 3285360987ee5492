import { setTimeout as sleep } from 'node:timers/promises'
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

/** What keeps workflows in memory is dropped so often: they are replayed by whoever comes next. */
const FORGET_EVERY_MS = 30_000

/** Lives through plans, some of them at once, with one crew; their reports in the order of the plans. */
export async function liveThroughCrashes(
  at: TestConnection,
  plans: readonly CrashPlan[],
  { atOnce, onReport }: LiveOptions,
): Promise<CrashReport[]> {
  const ungate = gateSdk()
  const crew = new Crew(at, await freshNamespace(at.client.connection as never))
  await crew.start('orchestrator', 'verbs', 'watches')
  const over = new AbortController()
  const forgetting = forget(crew, over.signal)
  const reports: CrashReport[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let index = next++; index < plans.length; index = next++) {
      const report = await runCrash(crew, plans[index]!, index + 1)
      reports[index] = report
      onReport?.(report)
    }
  }
  try {
    await Promise.all(Array.from({ length: atOnce }, lane))
    return reports
  } finally {
    over.abort()
    await forgetting
    await crew.close()
    ungate()
  }
}

async function forget(crew: Crew, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(FORGET_EVERY_MS, undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) await crew.restart('orchestrator')
  }
}

/** The calls that each life makes where nothing crashes, seen by living through all of them. */
export async function seeLives(at: TestConnection, options: LiveOptions): Promise<Map<LifeName, Calls>> {
  const reports = await liveThroughCrashes(at, LIFE_NAMES.map(undisturbed), options)
  return new Map(reports.map(({ plan, calls }) => [plan.life, calls]))
}
