import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TemporalExecutable } from '../../cli/dev/temporal/resolve'
import type { JobView } from '../../client/job/job-view'
import type { JobResult } from '../../core/messages'
import { processesOf } from '../chaos/machines'
import * as commands from '../chaos/commands'
import { resultOf, sightOf, untilTrue } from '../chaos/commands'
import type { Sight } from '../chaos/sight'
import { clear, setStage, startAll, stopAll, type Product, type Stage } from '../chaos/stage'
import { withFolder } from '../kit/folder'
import type { Report } from '../kit/harness'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { patient } from '../support/patience'
import { layout } from '../../storage/layout'
import { WallClocks, type Who } from './clocks'

/** A step of wall clocks. */
export interface Step {
  who: readonly Who[]
  byMs: number
}

/** The states in which jobs meet the step. Those before the last begin before it, `late` begins after it. */
const JOBS = [
  'ended',
  'running',
  'budgeted',
  'checkpointing',
  'cancelled',
  'waiting',
  'finishing',
  'provisioning',
  'ordering',
  'late',
] as const
type JobName = (typeof JOBS)[number]

const SLOTS = 8
/** A call to the provider that is slow enough for its job to meet the step in it. */
const SLOW_MS = 4_000
/** How long jobs live on after the step before anything else happens: many beats and looks at machines. */
const AFTER_MS = 8_000
const REACHED_LIMIT_MS = 30_000
const ENDED_LIMIT_MS = 40_000
const FOLLOWED_LIMIT_MS = 240_000
/** A machine costs $0.40 an hour, and lives for minutes. */
const COST_MAX_MICRO_USD = 50_000
const WORKLOAD = join(__dirname, 'workload', 'train.py')

interface Play {
  stage: Stage
  product: Product
  clocks: WallClocks
  /** Folder of the job files, and of the files that let jobs end. */
  folder: string
}

export interface ClocksOptions {
  product: Product
  executable: TemporalExecutable
  isKept: boolean
}

/** Lets a deployment of real processes meet a step of wall clocks with a job in each state, and plays every job to its end. */
export async function runClocks(step: Step, { product, executable, isKept }: ClocksOptions): Promise<Report> {
  return withFolder('wall-clocks', async (folder) => {
    const clocks = new WallClocks(join(folder, 'clocks'))
    const path = step.who.includes('server') ? clocks.server(executable.path) : executable.path
    const stage = await setStage({
      product,
      executable: { ...executable, path },
      seed: 0,
      isLeaseShort: false,
      disks: [],
      settings: {
        CRUCIBLE_LOCAL_PYTHON: clocks.python('machines'),
        CRUCIBLE_LOCAL_SLOTS: String(SLOTS),
        CRUCIBLE_LEASE: '6h',
      },
      ofWorkers: clocks.environment('workers'),
    })
    const play: Play = { stage, product, clocks, folder }
    const breaches: string[] = []
    const story: string[] = []
    try {
      await startAll(stage)
      breaches.push(...(await meet(play, step, story)))
    } catch (error) {
      breaches.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
    }
    for (const who of step.who) clocks.set(who, 0)
    const left = await stopAll(stage)
    breaches.push(...stage.failures)
    if (breaches.length === 0) breaches.push(...left.map((process) => `a process is left: ${process}`))
    clear(stage, { isKept: isKept || breaches.length > 0 })
    if (isKept || breaches.length > 0) story.unshift(`kept: ${stage.home}`)
    return { state: breaches.length === 0 ? 'held' : 'gave way', breaches, story }
  })
}

async function meet(play: Play, { who, byMs }: Step, story: string[]): Promise<string[]> {
  const { stage, clocks } = play
  const sights = new Map<JobName, Sight>()
  const begin = async (name: JobName): Promise<Sight> => {
    await submit(play, name)
    const sight = sightOf(stage, name)
    sights.set(name, sight)
    return sight
  }
  release(play, 'ended')
  const ended = await begin('ended')
  await untilTrue(() => ended.isOver, 'the first job is over', ENDED_LIMIT_MS)
  for (const name of ['running', 'budgeted', 'checkpointing', 'cancelled'] as const) {
    const sight = await begin(name)
    await untilTrue(() => steps(sight) > 0, `${name} trains`, REACHED_LIMIT_MS)
  }
  const waiting = await begin('waiting')
  await untilTrue(() => waiting.records('waiting').length > 0, 'waiting waits', REACHED_LIMIT_MS)
  const finishing = await begin('finishing')
  await untilTrue(() => steps(finishing) > 0, 'finishing trains', REACHED_LIMIT_MS)
  const before = stage.seam.taken().length
  stage.seam.arm({ verb: 'terminate', kind: 'slow-request', ms: SLOW_MS })
  release(play, 'finishing')
  await untilTrue(() => stage.seam.taken().length > before, 'finishing is settled', REACHED_LIMIT_MS)
  stage.seam.arm({ verb: 'launch', kind: 'slow-answer', ms: SLOW_MS })
  await begin('provisioning')
  await untilTrue(() => stage.seam.taken().length > before + 1, 'provisioning is launched', REACHED_LIMIT_MS)
  stage.seam.arm({ verb: 'launch', kind: 'slow-request', ms: SLOW_MS })
  await begin('ordering')
  await untilTrue(() => stage.seam.taken().length > before + 2, 'ordering is launched', REACHED_LIMIT_MS)

  const following = [
    follow(play, ['logs', 'running', '--follow']),
    follow(play, ['show', 'running', '--watch', '--json']),
  ]
  for (const each of who) clocks.set(each, byMs)
  story.push(`stepped ${who.join(', ')} by ${byMs / 3_600_000} h`)
  // Temporal dispatches no task until its clock is where it was, or it is started again.
  const isSetBack = who.includes('server') && byMs < 0
  if (isSetBack) {
    await stage.parts.server.kill()
    await stage.parts.server.start()
    story.push('started the server again')
  }
  const breaches: string[] = []
  // Signatures of new workflows are refused if client and server differ by more than an hour.
  const isSkewed = who.includes('client') !== who.includes('server')
  if (!isSkewed) await begin('late')
  else breaches.push(...(await refused(play)))
  await sleep(AFTER_MS)
  breaches.push(...alive(stage, sights), ...unmoved(sights, { who, byMs }), ...(await views(play, sights)))
  breaches.push(...(await extended(play, Date.now() + (who.includes('server') ? byMs : 0))))
  if (!isSkewed)
    await crucible(play, ['gc', '--dry-run', '--json']).catch((error: unknown) =>
      breaches.push(`gc --dry-run: ${String(error)}`),
    )
  await crucible(play, ['cancel', 'cancelled', '--json']).catch((error: unknown) =>
    breaches.push(`cancel: ${String(error)}`),
  )
  await untilTrue(() => sights.get('cancelled')!.isOver, 'cancelled is over', ENDED_LIMIT_MS).catch(
    (error: unknown) => breaches.push(String(error)),
  )
  for (const name of JOBS) release(play, name)
  // Its pause ends by the server's clock: hours later, unless its owner ends it.
  const endedByOwner: JobName[] = isSetBack ? ['cancelled', 'waiting'] : ['cancelled']
  if (isSetBack) await crucible(play, ['cancel', 'waiting', '--json'])
  for (const [name, sight] of sights)
    await untilTrue(() => sight.isOver, `${name} is over`, ENDED_LIMIT_MS).catch((error: unknown) =>
      breaches.push(String(error)),
    )
  for (const [name, sight] of sights) {
    const { state, reason } = resultOf(sight) ?? { state: 'open', reason: '' }
    const expected = endedByOwner.includes(name) ? ['cancelled', 'succeeded'] : ['succeeded']
    story.push(`${name}: ${state} (${reason}) after ${sight.attempts().length}`)
    if (!expected.includes(state))
      breaches.push(`${name} is ${state} (${reason}): ${resultOf(sight)?.message}`)
    // The time for an order that has not gone out is over by the server's clock: it is given up, and sent as another one.
    const isGivenUp = name === 'ordering' && who.includes('server') && byMs > 0
    if (sight.attempts().length > (isGivenUp ? 2 : 1))
      breaches.push(`${name} had ${sight.attempts().length} attempts`)
    if (state !== 'open' && hasMachine(stage, name)) breaches.push(`the machine of ${name} is left`)
  }
  breaches.push(...(await Promise.all(following)).flat(), ...(await views(play, sights)))
  return breaches
}

/** A command that follows a job to its end, which must be told and be no failure. */
async function follow({ stage, product, clocks }: Play, args: readonly string[]): Promise<string[]> {
  const ended = promisify(execFile)(process.execPath, [product.path('dist', 'cli', 'main.js'), ...args], {
    env: { ...stage.settings, ...clocks.environment('client') },
    timeout: patient(FOLLOWED_LIMIT_MS),
    maxBuffer: 2 ** 30,
  })
  const words = args.join(' ')
  return ended.then(
    ({ stdout }) =>
      /step 1\/|succeeded/.test(stdout) ? [] : [`${words} told no end: ${stdout.slice(-300)}`],
    (error: unknown) => [`${words}: ${String(error)}`],
  )
}

/** A deadline from now counts by the server's clock. */
async function extended(play: Play, serverNowMs: number): Promise<string[]> {
  try {
    await crucible(play, ['extend', 'budgeted', '--deadline', '12h', '--json'])
    const { deadlineAtMs } = JSON.parse(await crucible(play, ['show', 'budgeted', '--json'])) as JobView
    const offMs = (deadlineAtMs ?? 0) - serverNowMs - 12 * HOUR_MS
    return Math.abs(offMs) < 2 * MINUTE_MS ? [] : [`the deadline is off by ${offMs / MINUTE_MS} min`]
  } catch (error) {
    const { stdout = '' } = error as { stdout?: string }
    return [`extend: ${String(error)} ${stdout}`]
  }
}

/** The machines of jobs that have nothing to end them. */
function alive(stage: Stage, sights: ReadonlyMap<JobName, Sight>): string[] {
  return (['running', 'budgeted', 'checkpointing', 'cancelled', 'provisioning', 'ordering'] as const).flatMap(
    (name) => {
      const sight = sights.get(name)!
      if (sight.isOver) return [`${name} ended: ${resultOf(sight)?.message}`]
      return hasMachine(stage, name) ? [] : [`the machine of ${name} is gone`]
    },
  )
}

function hasMachine({ home }: Stage, name: JobName): boolean {
  return processesOf(home).some(({ machine }) => machine?.startsWith(`${name}-`) === true)
}

/** A submission whose signature no worker would accept is refused before anything is written. */
async function refused(play: Play): Promise<string[]> {
  const said = await submit(play, 'late').catch(({ stdout }: { stdout?: string }) => stdout ?? '')
  const isRefused = typeof said === 'string' && /clock of this computer/.test(said)
  const hasWritten = existsSync(join(play.stage.home, 'store', layout.job('late')))
  return isRefused && !hasWritten ? [] : [`submit was not refused: ${String(said)}`]
}

/** Clocks that do not show the step: without it nothing would be tried. */
function unmoved(sights: ReadonlyMap<JobName, Sight>, { who, byMs }: Step): string[] {
  const shown: Partial<Record<Who, number | undefined>> = {
    workers: sights.get('late')?.records('resolved')[0]?.atMs,
    machines: sights.get('running')!.beat()?.clockMs,
  }
  return Object.entries(shown).flatMap(([each, atMs]) => {
    if (each === 'workers' && !sights.has('late')) return []
    const expectedMs = Date.now() + (who.includes(each as Who) ? byMs : 0)
    const isThere = atMs !== undefined && Math.abs(atMs - expectedMs) < MINUTE_MS
    return isThere ? [] : [`the clock of ${each} shows ${new Date(atMs ?? 0).toISOString()}`]
  })
}

/** What `list` and the record say that a job costs, which is a matter of minutes. */
function wrongCost(name: string, costs: readonly (number | null | undefined)[]): string[] {
  const high = costs.filter((microUsd) => microUsd != null && microUsd > COST_MAX_MICRO_USD)
  return high.map((microUsd) => `${name} costs $${microUsd! / 1_000_000}`)
}

/** What `list` says, compared with the record. */
async function views(play: Play, sights: ReadonlyMap<JobName, Sight>): Promise<string[]> {
  const text = await crucible(play, ['list', '--json']).catch((error: unknown) => String(error))
  let listed: { id: string; state: JobResult['state']; costMicroUsd: number | null }[]
  try {
    const parsed = JSON.parse(text) as { jobs?: typeof listed } | typeof listed
    listed = Array.isArray(parsed) ? parsed : (parsed.jobs ?? [])
  } catch {
    return [`list: ${text}`]
  }
  return [...sights].flatMap(([name, sight]) => {
    const row = listed.find(({ id }) => id === name)
    const shown = row?.state
    const result = resultOf(sight)
    const recorded = result?.state
    if (shown === undefined) return [`list lacks ${name}`]
    const wrong = wrongCost(name, [row?.costMicroUsd, result?.costMicroUsd])
    if (wrong.length > 0) return wrong
    return recorded !== undefined && shown !== recorded
      ? [`list calls ${name} ${shown}, it is ${recorded}`]
      : []
  })
}

function steps(sight: Sight): number {
  return sight.beat()?.phase === 'running' ? 1 : 0
}

async function submit(play: Play, name: JobName): Promise<void> {
  const folder = join(play.folder, 'jobs', name)
  mkdirSync(folder, { recursive: true })
  copyFileSync(WORKLOAD, join(folder, 'train.py'))
  const style = name === 'checkpointing' ? 'saving' : 'quiet'
  const lines = [
    'name: clocks',
    `run: python3 train.py ${goFile(play, name)} ${style}`,
    'resources:',
    `  cpus: ${name === 'waiting' ? SLOTS : 1}`,
    'checkpoint: {}',
    ...(name === 'budgeted' ? ['budget: 5'] : []),
    '',
  ]
  writeFileSync(join(folder, 'job.yaml'), lines.join('\n'))
  await crucible(play, ['submit', join(folder, 'job.yaml'), '--id', name, '--yes', '--json'])
}

function goFile({ folder }: Play, name: JobName): string {
  return join(folder, `go-${name}`)
}

function release(play: Play, name: JobName): void {
  writeFileSync(goFile(play, name), '')
}

/** A command with the client's clock. */
function crucible({ stage, product, clocks }: Play, args: readonly string[]): Promise<string> {
  return commands.crucible({ stage, product }, args, clocks.environment('client'))
}
