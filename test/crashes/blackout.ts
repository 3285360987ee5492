import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { SECOND_MS } from '../../core/time/time'
import { connect } from '../../workers/connect'
import { Server } from '../chaos/parts'
import { SPEC } from '../clouds/world'
import { connectTo, testServer } from '../support/temporal'
import { until } from '../support/until'
import type { Span } from '../kit/invariants'
import type { Report } from '../kit/harness'
import { endOf, isOverWithin } from '../proof/lived'
import type { JobHandle } from '../workflows/harness'
import { LATE_MAX_MS, PAUSE_MS, STEPS, timingFor, type BlackoutPlan, type JobPlan } from './blackout-plan'
import { ATTACHED_WITHIN_MS, breachesIn, downtimeOf, FLAWLESS, judge, seconds, type Verdict } from './checks'
import { Crew } from './crew'
import { gateSdk } from './gates'
import { closeSite, openSiteOf, patientStatus, sweepSite } from './run'
import type { Site } from './site'

export interface BlackoutReport extends Report {
  plan: BlackoutPlan
  /** One of each job. */
  jobs: { state: string; verdict: Verdict }[]
  /**
   * Of each attempt that was at work when the server was back: from the start of the server's process until its watch asked about its
   * machine again, by a task that the server knows of; 0 where it never lost its watch.
   */
  attachedAfterMs: number[]
}

/** Machines come up within that even on a busy computer. */
const AT_WORK_MAX_MS = 240_000
/** A job that is not over by then after everything is back has stuck, but for what it has to train if it had not begun. */
const AFTERWARDS_MAX_MS = 400_000
/** An attempt that is nearly done need not be taken up before its end. */
const AT_WORK_STILL_MS = 40_000

/** Many jobs on one server, which goes out with or without the workers and comes back on its database file. */
export async function liveThroughBlackout(plan: BlackoutPlan): Promise<BlackoutReport> {
  const home = mkdtempSync(join(tmpdir(), 'crucible-blackout-'))
  gateSdk()
  const failures: string[] = []
  const server = await Server.create(
    { name: 'server', log: join(home, 'server.log'), onFailure: (what) => failures.push(what) },
    { executable: testServer().executable, dataFile: join(home, 'temporal.db') },
  )
  try {
    await server.start()
    const at = await connectTo(server.address)
    const crew = await Crew.begin(at, plan.provider)
    const sites = await Promise.all(
      plan.jobs.map((job, index) => openJob(crew, plan, { job, index: index + 1 })),
    )
    const told = await strike({ plan, crew, server, sites })
    const jobs = await Promise.all(
      sites.map((site) => conclude(crew, site, { failures, downtimes: told.downtimes })),
    )
    await crew.close()
    await told.close()
    await at.close()
    const attachedAfterMs = told.attachedAfterMs()
    return { ...judged(plan, jobs, attachedAfterMs), plan, jobs, attachedAfterMs }
  } finally {
    await server.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

/** Where no attempt was at work when the server was back, nothing is shown. */
function judged(
  { provider, outage, downMs }: BlackoutPlan,
  jobs: BlackoutReport['jobs'],
  attachedAfterMs: readonly number[],
): Report {
  const late = attachedAfterMs.filter((ms) => ms > ATTACHED_WITHIN_MS)
  return {
    state: `${outage} down for ${downMs.map(seconds).join(', ')} at ${provider.name}`,
    breaches: [
      ...jobs.flatMap(({ state, verdict }) => breachesIn(verdict).map((breach) => `${state}: ${breach}`)),
      ...late.map((ms) => `an attempt was watched again only after ${seconds(ms)}`),
      ...(attachedAfterMs.length === 0 ? ['no attempt was at work when the server was back'] : []),
    ],
    story: [`${jobs.length} jobs, ${attachedAfterMs.length} at work when the server was back`],
  }
}

interface Living {
  site: Site
  plan: JobPlan
  /** Submits it, for as long as it takes. */
  submit: () => Promise<JobHandle>
  job?: Promise<JobHandle>
}

async function openJob(
  crew: Crew,
  { seed, hourMs }: BlackoutPlan,
  { job, index }: { job: JobPlan; index: number },
): Promise<Living> {
  const site = await openSiteOf(crew, index, {
    wishes: {
      // What has ended is judged too, however long ago: the cloud would have forgotten it after an hour.
      world: { seed: seed * 1_000 + index, durations: { terminatedVisible: ['1d', '1d'] } },
      behave: () => ({ stepsPerSecond: job.stepsPerSecond }),
      timing: timingFor(hourMs),
    },
    deathAt: () => undefined,
  })
  const { jobId, deployment } = site.options
  return { site, plan: job, submit: () => submitAgain(crew, { jobId, deployment }) }
}

/** A submission is repeatable with its id; while the server is down it is not accepted. */
async function submitAgain(crew: Crew, input: { jobId: string; deployment: string }): Promise<JobHandle> {
  for (;;) {
    try {
      return await crew.submit({ ...SPEC, ...crew.provider.spec }, input)
    } catch (error) {
      if ((error as { name?: string }).name === 'WorkflowExecutionAlreadyStartedError')
        return crew.client.workflow.getHandle(`job/${input.jobId}`) as JobHandle
      await sleep(PAUSE_MS)
    }
  }
}

/** Some are at work, the others were submitted moments ago. */
async function begin(sites: Living[]): Promise<void> {
  const early = sites.filter(({ plan }) => plan.submittedBeforeMs === undefined)
  for (const living of early) living.job = living.submit()
  await until(() => early.every(({ site }) => hasWorked(site)), AT_WORK_MAX_MS)
  for (const living of sites) {
    const { submittedBeforeMs } = living.plan
    if (submittedBeforeMs === undefined) continue
    living.job = sleep(LATE_MAX_MS - submittedBeforeMs).then(() => living.submit())
  }
  await sleep(LATE_MAX_MS)
}

function hasWorked({ options: { ground } }: Site): boolean {
  return ground.machines.some(({ workedFromMs }) => workedFromMs !== undefined)
}

interface Struck {
  downtimes: Span[]
  attachedAfterMs: () => number[]
  close: () => Promise<void>
}

async function strike({
  plan: { outage, downMs },
  crew,
  server,
  sites,
}: {
  plan: BlackoutPlan
  crew: Crew
  server: Server
  sites: Living[]
}): Promise<Struck> {
  await begin(sites)
  const stopping = new AbortController()
  let revival: Promise<unknown> = Promise.resolve()
  let close = (): Promise<void> => Promise.resolve()
  const downtimes: Span[] = []
  let startedAtMs = 0
  for (const ms of downMs) {
    const downAtMs = Date.now()
    await server.kill()
    if (outage === 'all') {
      const dead = crew.die()
      const { address } = server
      const logger = pino({ enabled: false })
      // As the workers of the product wait for their server.
      const connecting = connect(
        { connection: { address }, namespace: crew.namespace },
        { logger, signal: stopping.signal },
      )
      revival = connecting.then((connection) => {
        close = async () => {
          await dead
          await connection.close()
        }
        return crew.revive(connection)
      })
      // Heard of when it is waited for.
      revival.catch(() => undefined)
    }
    await sleep(ms)
    startedAtMs = Date.now()
    await server.start()
    downtimes.push(downtimeOf(downAtMs, Date.now() - downAtMs))
    if (ms !== downMs.at(-1)) await sleep(PAUSE_MS)
  }
  const backAtMs = Date.now()
  const atWork = sites.filter(({ site }) => site.options.ground.machines.some(({ isAtWork }) => isAtWork))
  await revival
  return {
    downtimes,
    close: () => close(),
    attachedAfterMs: () => atWork.flatMap(({ site }) => attachedAfter(site, { startedAtMs, backAtMs })),
  }
}

/** Nothing for one that was done before anybody had to take it up. */
function attachedAfter(
  { watches, options: { ground } }: Site,
  { startedAtMs, backAtMs }: { startedAtMs: number; backAtMs: number },
): number[] {
  const workedToMs = ground.machines.find(({ workedToMs = Infinity }) => workedToMs > backAtMs)?.workedToMs
  const taken = watches.find(({ begunAtMs }) => begunAtMs >= startedAtMs)
  if (taken !== undefined) return [(taken.lookedAtMs ?? Infinity) - startedAtMs]
  if ((workedToMs ?? 0) < backAtMs + AT_WORK_STILL_MS) return []
  return [0]
}

async function conclude(
  crew: Crew,
  { site, plan, job: submitting }: Living,
  { failures, downtimes }: { failures: string[]; downtimes: Span[] },
): Promise<BlackoutReport['jobs'][number]> {
  try {
    const job = (await submitting)!
    const trainsMs = plan.submittedBeforeMs === undefined ? 0 : (STEPS * SECOND_MS) / plan.stepsPerSecond
    const isOver = await isOverWithin(job, AFTERWARDS_MAX_MS + trainsMs)
    const left = await sweepSite(crew, site)
    const status = await patientStatus(job)
    const { ground } = site.options
    // A machine that could not be started in time ends itself, and another one takes its place.
    const unused = ground.machines.filter(({ workedFromMs }) => workedFromMs === undefined).length
    const life = { attempts: 1 + unused, ends: 'completed' } as const
    const verdict = await judge({ life, ground, status, left, isOver, downtimes })
    verdict.other.push(...failures)
    return { state: endOf(status), verdict }
  } catch (error) {
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { state: 'not lived', verdict: { ...FLAWLESS, other: [words] } }
  } finally {
    await closeSite(crew, site)
  }
}
