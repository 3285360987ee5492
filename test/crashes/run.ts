import { TREASURY_QUERY, type JobStatus } from '../../core/messages'
import { treasuryWorkflowId } from '../../core/queues'
import { monthOf, type TreasuryState } from '../../core/money/treasury'
import type { Cloud } from '#small-cloud'
import { closeGround, journal, openGround, sweep, type CloudGround, type CloudWishes } from '../clouds/cloud'
import { until } from '../support/until'
import type { ProviderName } from '../clouds/provider'
import type { Report } from '../kit/harness'
import { endOf, isOverWithin } from '../proof/lived'
import { QUICK, statusOf, type JobHandle } from '../workflows/harness'
import { breachesIn, downtimeOf, judge, type Verdict } from './checks'
import type { Crew } from './crew'
import { LIVES, SPEC, TIMING, untilAtWork, type Life } from './lives'
import { storyOf, type Calls, type Crash, type CrashPlan } from './plan'
import { Site, type SiteOptions } from './site'

export interface CrashReport extends Report {
  provider: ProviderName
  plan: CrashPlan
  verdict: Verdict
  /** The crashes that came. */
  struck: Crash[]
  calls: Calls
}

/** Two heartbeat timeouts after each other, the pauses between tries, and a busy machine. */
const RUN_MAX_MS = 400_000
const GRACE_MS = 500
const ASKED_WITHIN_MS = 120_000
/** A machine that is at work is struck in the middle of it. */
const LINGER_MS = 400

/** Lives through one life with its crashes, collects garbage once when the job is over, and judges by what the cloud knows. */
export async function runCrash(crew: Crew, plan: CrashPlan, index: number): Promise<CrashReport> {
  const startedAtMs = Date.now()
  const life: Life = LIVES[plan.life]
  const struck: Crash[] = []
  const site = await openSite(crew, { plan, index, struck })
  const { ground, jobId, deployment } = site.options
  try {
    await life.precede?.(site)
    const resources = { ...SPEC.resources, ...plan.company?.resources }
    const spec = { ...SPEC, resources, ...crew.provider.spec, ...life.spec?.() }
    const job = await crew.submit(spec, { jobId, deployment })
    const happening = befall(life, { crew, site, job })
    const sweeping = plan.isSweptMeanwhile && life.isOrphaned !== true ? sweepAtWork(crew, site) : undefined
    const isOver = await isOverWithin(job, RUN_MAX_MS)
    await happening
    await sweeping
    const left = await sweepSite(crew, site)
    const status = await patientStatus(job)
    if (!isOver) await job.terminate()
    const verdict = await judge({
      life,
      ground,
      status,
      left,
      isOver,
      downtimes: site.diedAtMs.map((atMs) => downtimeOf(atMs)),
    })
    if (life.monthly !== undefined) verdict.other.push(...(await moneyLeftPromised(crew, jobId)))
    return {
      provider: crew.provider.name,
      plan,
      struck,
      verdict,
      calls: site.calls,
      state: stateOf(life, status),
      breaches: breachesIn(verdict),
      story: [...storyOf(plan), ...(await journal(ground, startedAtMs, jobId))],
    }
  } finally {
    await closeSite(crew, site)
  }
}

function openSite(
  crew: Crew,
  { plan, index, struck }: { plan: CrashPlan; index: number; struck: Crash[] },
): Promise<Site> {
  const life: Life = LIVES[plan.life]
  const durations = { ...plan.durations, ...life.durations }
  return openSiteOf(crew, index, {
    wishes: {
      world: {
        seed: index,
        faults: [...(life.faults?.(crew.provider) ?? []), ...plan.faults],
        durations,
        ...plan.company?.world,
      },
      behave: life.behave,
      timing: TIMING,
      config: { ...plan.company?.config, ...life.config },
    },
    monthly: life.monthly,
    isTokenless: life.isTokenless,
    deathAt: (call, occurrence) => {
      const crash = plan.crashes.find((each) => each.call === call && each.occurrence === occurrence)
      if (crash !== undefined) struck.push(crash)
      return crash
    },
  })
}

/** A site of its own for the so-manieth job of a crew. */
export async function openSiteOf(
  crew: Crew,
  index: number,
  {
    wishes,
    deathAt,
    monthly,
    isTokenless = false,
  }: { wishes: CloudWishes } & Pick<SiteOptions, 'deathAt'> &
    Partial<Pick<SiteOptions, 'monthly' | 'isTokenless'>>,
): Promise<Site> {
  const [jobId, deployment] = [`job-crash-${index}`, `dep-${String(index).padStart(10, '0')}`]
  const { provider } = crew
  const ground = await openGround({ provider, ...wishes }, deployment)
  const timing = { ...QUICK, ...wishes.timing, ...provider.timing }
  const client = crew.clientFor(() => site)
  const site: Site = new Site({
    jobId,
    deployment,
    ground,
    timing,
    config: wishes.config,
    client,
    monthly,
    isTokenless,
    deathAt,
  })
  crew.admit(site)
  return site
}

export async function closeSite(crew: Crew, site: Site): Promise<void> {
  crew.dismiss(site)
  site.die()
  await closeGround(site.options.ground)
}

/** Collects garbage, once, and waits until what it ends is gone; what there was before. */
export async function sweepSite(crew: Crew, site: Site): Promise<ReturnType<Cloud['instances']>> {
  const { ground, deployment } = site.options
  const left = ground.cloud.instances()
  await sweepOnce(crew, deployment)
  await untilNothingEnds(ground)
  return left
}

/** What is still promised to a job that is over is lost to others. */
async function moneyLeftPromised({ client }: Crew, jobId: string): Promise<string[]> {
  const treasury = client.workflow.getHandle(treasuryWorkflowId(monthOf(Date.now())))
  const { promised, over } = await treasury.query<TreasuryState>(TREASURY_QUERY)
  return [
    ...(promised[jobId] === undefined ? [] : [`${promised[jobId].microUsd} are still promised to the job`]),
    ...(over.includes(jobId) ? [] : ['the month was not told what the job has spent']),
  ]
}

/** A query is refused while no worker is there that could answer it, or has the time. */
export async function patientStatus(job: JobHandle): Promise<JobStatus> {
  let status: JobStatus | undefined
  await until(async () => {
    status = await statusOf(job).catch(() => undefined)
    return status !== undefined
  }, ASKED_WITHIN_MS)
  return status!
}

/** Garbage collection finds a machine at work, and looks twice. */
async function sweepAtWork(crew: Crew, site: Site): Promise<void> {
  const { ground, deployment } = site.options
  await until(() => ground.machines.length > 0, RUN_MAX_MS).catch(() => undefined)
  await sweepOnce(crew, deployment)
}

async function sweepOnce({ client, provider }: Crew, deployment: string): Promise<void> {
  await sweep(client, { deployment, backends: [provider.name], graceMs: GRACE_MS, isDryRun: false })
}

/** What is being ended is gone when this resolves. */
export async function untilNothingEnds({ cloud, provider }: CloudGround): Promise<void> {
  await until(() => cloud.instances().every(({ state }) => !provider.ending.includes(state)))
}

/** Where the job is over before, nothing befalls it. */
async function befall({ happen }: Life, at: { crew: Crew; site: Site; job: JobHandle }): Promise<void> {
  if (happen === undefined) return
  try {
    await untilAtWork(at.site, LINGER_MS)
    await happen(at)
  } catch {
    // Whether that was so the verdict tells.
  }
}

function stateOf({ isOrphaned }: Life, status: JobStatus): string {
  return isOrphaned === true ? 'ended by hand' : `${endOf(status)}, ${status.attemptsTotal} attempts`
}
