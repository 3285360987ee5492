import type { JobStatus } from '../../core/messages'
import { closeGround, journal, openGround, sweep } from '../clouds/cloud'
import type { CloudWishes } from '../clouds/cloud'
import { until } from '../support/until'
import { isOverWithin } from '../worlds/telling'
import { QUICK, statusOf, type JobHandle } from '../workflows/harness'
import { FLAWLESS, judge, type Verdict } from './checks'
import type { Crew } from './crew'
import { LIVES, SPEC, TIMING, untilAtWork, type Life } from './lives'
import { storyOf, type Calls, type Crash, type CrashPlan } from './plan'
import { Site } from './site'

export interface CrashReport {
  plan: CrashPlan
  /** How the job ended, after how many attempts. */
  state: string
  verdict: Verdict
  /** The crashes that came. */
  struck: Crash[]
  calls: Calls
  story: string[]
  lastedMs: number
}

/** Two heartbeat timeouts after each other, the pauses between tries, and a busy machine. */
const RUN_MAX_MS = 400_000
const GRACE_MS = 500
/** A machine that is at work is struck in the middle of it. */
const LINGER_MS = 400

/** Lives through one life with its crashes; what goes wrong with the run itself is a breach. */
export function runCrash(crew: Crew, plan: CrashPlan, index: number): Promise<CrashReport> {
  return live(crew, plan, index).catch((error: Error) => ({
    ...{ plan, state: 'not lived', struck: [], calls: new Map<string, number>(), lastedMs: 0 },
    verdict: { ...FLAWLESS, other: [error.stack ?? error.message] },
    story: storyOf(plan),
  }))
}

/** Collects garbage once when the job is over, and judges by what the cloud knows. */
async function live(crew: Crew, plan: CrashPlan, index: number): Promise<CrashReport> {
  const startedAtMs = Date.now()
  const life: Life = LIVES[plan.life]
  const struck: Crash[] = []
  const site = await openSite(crew, { plan, index, struck })
  const { ground, jobId, deployment } = site.options
  try {
    const job = await crew.submit({ ...SPEC, ...life.spec?.() }, { jobId, deployment })
    const happening = befall(life, { crew, site, job })
    const isOver = await isOverWithin(job, RUN_MAX_MS)
    const isHappened = await happening
    const left = ground.cloud.instances()
    await sweep(crew.client, { deployment, backends: ['ec2'], graceMs: GRACE_MS, isDryRun: false })
    await until(() => ground.cloud.instances().every(({ state }) => state !== 'shutting-down'))
    const status = await statusOf(job).catch(() => statusOf(job))
    if (!isOver) await job.terminate()
    const verdict = await judge({ life, plan, site, status, left, isOver, isHappened })
    return {
      ...{ plan, struck, verdict, calls: site.calls },
      state: stateOf(life, status),
      story: [...storyOf(plan), ...(await journal(ground, startedAtMs, jobId))],
      lastedMs: Date.now() - startedAtMs,
    }
  } finally {
    crew.dismiss(site)
    site.die()
    await closeGround(ground)
  }
}

async function openSite(
  crew: Crew,
  { plan, index, struck }: { plan: CrashPlan; index: number; struck: Crash[] },
): Promise<Site> {
  const life: Life = LIVES[plan.life]
  const [jobId, deployment] = [`job-crash-${index}`, `dep-${String(index).padStart(10, '0')}`]
  const wishes: CloudWishes = {
    world: { seed: index, faults: [...(life.faults ?? []), ...plan.faults] },
    ...(life.behave === undefined ? {} : { behave: life.behave }),
  }
  const ground = await openGround(wishes, deployment)
  const site: Site = new Site({
    ...{ jobId, deployment, ground, timing: { ...QUICK, ...TIMING } },
    config: {},
    client: crew.clientFor(() => site),
    deathAt: (call, occurrence) => {
      const crash = plan.crashes.find((each) => each.call === call && each.occurrence === occurrence)
      if (crash !== undefined) struck.push(crash)
      return crash
    },
  })
  crew.admit(site)
  return site
}

/** False where the job was over before anything could befall it. */
async function befall({ happen }: Life, at: { crew: Crew; site: Site; job: JobHandle }): Promise<boolean> {
  if (happen === undefined) return true
  try {
    await untilAtWork(at.site, LINGER_MS)
    await happen(at)
    return true
  } catch {
    return false
  }
}

function stateOf({ isOrphaned }: Life, { state, reason, attemptsTotal }: JobStatus): string {
  return isOrphaned === true ? 'ended by hand' : `${state} (${reason}), ${attemptsTotal} attempts`
}
