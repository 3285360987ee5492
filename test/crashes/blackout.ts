import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { connect } from '../../workers/connect'
import { Server } from '../chaos/parts'
import { SPEC } from '../clouds/world'
import { freshNamespace } from '../support/namespace'
import { connectTo, testServer, type TestConnection } from '../support/temporal'
import { isOverWithin } from '../worlds/telling'
import { statusOf, type JobHandle } from '../workflows/harness'
import { PAUSE_MS, timingFor, type BlackoutPlan, type JobPlan } from './blackout-plan'
import { FLAWLESS, judge, type Verdict } from './checks'
import { Crew } from './crew'
import { gateSdk } from './gates'
import { closeSite, openSiteOf, sweepSite } from './run'
import type { Site } from './site'

export interface BlackoutReport {
  plan: BlackoutPlan
  /** One of each job. */
  jobs: { state: string; verdict: Verdict }[]
  /**
   * Of each attempt that was at work when the server was back: how long until its watch asked about its machine again, by a task that the
   * server knows of; 0 where it never lost its watch.
   */
  attachedAfterMs: number[]
  lastedMs: number
}

/** A job that is not over by then after everything is back has stuck. */
const AFTERWARDS_MAX_MS = 400_000
/** An attempt that is nearly done need not be taken up before its end. */
const AT_WORK_STILL_MS = 40_000

/** Many jobs on one server, which goes out with or without the workers and comes back on its database file. */
export async function liveThroughBlackout(plan: BlackoutPlan): Promise<BlackoutReport> {
  const startedAtMs = Date.now()
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
    const crew = new Crew(at, await freshNamespace(at.client.connection as never))
    await crew.start('orchestrator', 'verbs', 'watches')
    const sites = await Promise.all(
      plan.jobs.map((job, index) => openJob(crew, plan, { job, index: index + 1 })),
    )
    const told = await strike({ plan, crew, server, at, sites })
    const jobs = await Promise.all(sites.map((site) => conclude(crew, site, failures)))
    await crew.close()
    await told.close()
    await at.close()
    return { plan, jobs, attachedAfterMs: told.attachedAfterMs(), lastedMs: Date.now() - startedAtMs }
  } finally {
    await server.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

interface Living {
  site: Site
  job: Promise<JobHandle>
}

async function openJob(
  crew: Crew,
  { seed, hourMs }: BlackoutPlan,
  { job: { submittedAtMs, stepsPerSecond }, index }: { job: JobPlan; index: number },
): Promise<Living> {
  const site = await openSiteOf(crew, index, {
    wishes: {
      world: { seed: seed * 1_000 + index },
      behave: () => ({ stepsPerSecond }),
      timing: timingFor(hourMs),
    },
    deathAt: () => undefined,
  })
  const { jobId, deployment } = site.options
  const job = sleep(submittedAtMs).then(() => submitAgain(crew, { jobId, deployment }))
  return { site, job }
}

/** A submission is repeatable with its id; while the server is down nobody takes it. */
async function submitAgain(crew: Crew, input: { jobId: string; deployment: string }): Promise<JobHandle> {
  for (;;) {
    try {
      return await crew.submit(SPEC, input)
    } catch (error) {
      if ((error as { name?: string }).name === 'WorkflowExecutionAlreadyStartedError')
        return crew.client.workflow.getHandle(`job/${input.jobId}`) as JobHandle
      await sleep(PAUSE_MS)
    }
  }
}

interface Struck {
  attachedAfterMs: () => number[]
  close: () => Promise<void>
}

async function strike({
  plan: { outage, downMs, strikesAtMs },
  crew,
  server,
  at,
  sites,
}: {
  plan: BlackoutPlan
  crew: Crew
  server: Server
  at: TestConnection
  sites: Living[]
}): Promise<Struck> {
  await sleep(strikesAtMs)
  const stopping = new AbortController()
  let revival: Promise<unknown> = Promise.resolve()
  let close = (): Promise<void> => Promise.resolve()
  for (const ms of downMs) {
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
    }
    await sleep(ms)
    await server.start()
    if (ms !== downMs.at(-1)) await sleep(PAUSE_MS)
  }
  const backAtMs = Date.now()
  const atWork = sites.filter(({ site }) => site.options.ground.machines.some(({ isAtWork }) => isAtWork))
  await revival
  return {
    close: () => close(),
    attachedAfterMs: () => atWork.flatMap(({ site }) => attachedAfter(site, backAtMs)),
  }
}

/** Nothing for one that was done before anybody had to take it up. */
function attachedAfter({ watches, options: { ground } }: Site, backAtMs: number): number[] {
  const workedToMs = ground.machines.find(({ workedToMs = Infinity }) => workedToMs > backAtMs)?.workedToMs
  const taken = watches.find(({ begunAtMs }) => begunAtMs >= backAtMs)
  if (taken !== undefined) return [(taken.lookedAtMs ?? Infinity) - backAtMs]
  if ((workedToMs ?? 0) < backAtMs + AT_WORK_STILL_MS) return []
  return [0]
}

async function conclude(
  crew: Crew,
  { site, job: submitting }: Living,
  failures: string[],
): Promise<BlackoutReport['jobs'][number]> {
  try {
    const job = await submitting
    const isOver = await isOverWithin(job, AFTERWARDS_MAX_MS)
    const left = await sweepSite(crew, site)
    const status = await statusOf(job).catch(() => statusOf(job))
    const { ground } = site.options
    // A machine that could not be started in time ends itself, and another one takes its place.
    const unused = ground.machines.filter(({ workedFromMs }) => workedFromMs === undefined).length
    const life = { attempts: 1 + unused, ends: 'completed' } as const
    const verdict = await judge({ life, ground, status, left, isOver, isHappened: true })
    verdict.other.push(...failures)
    return { state: `${status.state} (${status.reason})`, verdict }
  } catch (error) {
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { state: 'not lived', verdict: { ...FLAWLESS, other: [words] } }
  } finally {
    await closeSite(crew, site)
  }
}
