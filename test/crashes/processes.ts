import type { Product } from '../chaos/stage'
import { journal, sweep } from '../clouds/cloud'
import type { CloudProvider } from '../clouds/provider'
import { SPEC } from '../clouds/world'
import { connectTo } from '../support/temporal'
import { Dice } from '../kit/dice'
import { endOf, isOverWithin } from '../proof/lived'
import { DEPLOYMENT_ID, Jobs } from '../workflows/harness'
import { breachesIn, downtimeOf, judge } from './checks'
import { LIVES } from './lives'
import { nameOf, planAt, storyOf, undisturbed, type Point } from './plan'
import { RealStage, type ProcessPlan } from './real-stage'
import { patientStatus, untilNothingEnds, type CrashReport } from './run'

const NAMESPACE = 'default'
const RUN_MAX_MS = 300_000
const GRACE_MS = 500

/** Lives through one job with real processes that are killed with SIGKILL, collects garbage once, and judges by what the cloud knows. */
export async function runProcesses(
  plan: ProcessPlan,
  { provider, product }: { provider: CloudProvider; product: Product },
): Promise<CrashReport> {
  const startedAtMs = Date.now()
  const stage = await RealStage.open(plan, { provider, product })
  try {
    const lived = await live(stage, plan, startedAtMs)
    return { ...lived, provider: provider.name, plan, struck: stage.struck, calls: stage.calls }
  } catch (error) {
    const failures = stage.failures.map((failure) => `, after: ${failure}`).join('')
    throw new Error(`${(error as Error).message}${failures}`, { cause: error })
  } finally {
    await stage.close()
  }
}

async function live(
  stage: RealStage,
  plan: ProcessPlan,
  startedAtMs: number,
): Promise<Pick<CrashReport, 'state' | 'verdict' | 'breaches' | 'story'>> {
  const { ground, server } = stage
  const { provider } = ground
  const at = await connectTo(server.address)
  try {
    const jobs = new Jobs(at, NAMESPACE, { key: await stage.key() })
    const job = await jobs.submit({ ...SPEC, ...provider.spec })
    const isOver = await isOverWithin(job, RUN_MAX_MS)
    await stage.whole()
    const left = ground.cloud.instances()
    await sweep(jobs.client, {
      deployment: DEPLOYMENT_ID,
      backends: [provider.name],
      graceMs: GRACE_MS,
      isDryRun: false,
    })
    await untilNothingEnds(ground)
    const status = await patientStatus(job)
    const downtimes = stage.diedAtMs.map((atMs) => downtimeOf(atMs, plan.downMs))
    const verdict = await judge({ life: LIVES.plain, ground, status, left, isOver, downtimes })
    verdict.other.push(...stage.failures)
    return {
      state: `${endOf(status)}, ${status.attemptsTotal} attempts`,
      verdict,
      breaches: breachesIn(verdict),
      story: [...storyOf(plan), ...(await journal(ground, startedAtMs))],
    }
  } finally {
    await at.close()
  }
}

const SERVER_CHANCE = 0.25
const DOWN_MAX_MS = 3_000

/** The plan of a seed: the calls that change something come first. */
export function processPlanOf(seed: number, points: readonly Point[], provider: CloudProvider): ProcessPlan {
  const ordered = [...points].sort((a, b) => Number(isReading(a)) - Number(isReading(b)))
  const dice = new Dice(seed)
  return {
    ...planAt(ordered[(seed - 1) % ordered.length]!, 'plain', { seed, provider }),
    faults: [],
    durations: {},
    isSweptMeanwhile: false,
    isServerKilled: dice.chance(SERVER_CHANCE),
    downMs: dice.chance(0.5) ? 0 : dice.between(0, DOWN_MAX_MS),
  }
}

export function undisturbedProcesses(): ProcessPlan {
  return { ...undisturbed('plain'), isServerKilled: false, downMs: 0 }
}

function isReading(point: Point): boolean {
  return /: (GET |Get|Head|List|Describe)/.test(nameOf(point))
}
