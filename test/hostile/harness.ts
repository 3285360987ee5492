/** One job that does everything that a hostile job can, next to a job of somebody else, on a deployment of real processes. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Beat } from '../../core/documents'
import { crucible, resultOf, sightOf, untilTrue } from '../chaos/commands'
import { signal } from '../chaos/machines'
import type { Sight } from '../chaos/sight'
import { clear, setStage, startAll, stopAll, type Product, type Stage } from '../chaos/stage'
import { withFolder } from '../kit/folder'
import { harness, type Case, type Drawn, type Report } from '../kit/harness'
import { withServerOnly } from '../kit/server'
import { withProduct } from '../proof/product'
import { patient } from '../support/patience'
import { testServer } from '../support/temporal'

const OPTIONS = {
  keep: { default: false, means: 'keeps the folder of every run, not only of the broken ones' },
}
const HOSTILE = 'hostile'
const NEIGHBOUR = 'neighbour'
/** Of this process only. */
const FIRST_UID = 1_900_000_000 + (process.pid % 600) * 100
const UIDS = { first: FIRST_UID, last: FIRST_UID + 99 }
const GAP_MAX_MS = 2_000
/** Of 200 MB of output, 20,000 files and a terabyte of holes. */
const DISK_MAX_MIB = 1_000
const DEEDS_LIMIT_MS = 180_000
const END_LIMIT_MS = 60_000
/** Control characters that no output for people has. */
const UNSAFE = /(?![\t\n])\p{Cc}/u

interface Seen {
  longestGapMs: number
  mostMiB: number
}

/** The reason why the job cannot be tried here: jobs have users of their own only if the worker is root. */
export function whyNotHostile(): string | undefined {
  const isRoot = process.platform === 'linux' && process.getuid?.() === 0
  return isRoot && existsSync('/usr/bin/python3')
    ? undefined
    : 'local jobs have users of their own only under root'
}

export const HOSTILE_JOB = harness({
  jobs: 1,
  options: OPTIONS,
  around: (_, use) => withProduct((product) => withServerOnly(() => use(product))),
  draw: (): Case[] => [{ name: 'everything at once', again: [] }],
  live: async (_case: Case, product: Product, { keep }: Drawn<typeof OPTIONS>): Promise<Report> => {
    const obstacle = whyNotHostile()
    if (obstacle !== undefined) return { state: `skipped: ${obstacle}`, breaches: [], story: [] }
    return withFolder('hostile', (folder) => live(product, folder, keep))
  },
})

async function live(product: Product, folder: string, isKept: boolean): Promise<Report> {
  // Jobs are users of their own, who must reach their directories.
  chmodSync(folder, 0o777)
  const stage = await setStage({
    product,
    executable: testServer().executable,
    seed: 0,
    isLeaseShort: false,
    disks: [],
    settings: {
      CRUCIBLE_LOCAL_ROOT: join(folder, 'local'),
      CRUCIBLE_LOCAL_UIDS: `${UIDS.first}-${UIDS.last}`,
      CRUCIBLE_LOCAL_PYTHON: '/usr/bin/python3',
      PATH: '/usr/bin:/bin',
    },
  })
  const breaches: string[] = []
  const story: string[] = []
  try {
    await startAll(stage)
    await play({ stage, product, folder, breaches, story })
  } catch (error) {
    breaches.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  breaches.push(...stage.failures)
  const left = await stopAll(stage)
  if (breaches.length === 0) breaches.push(...left.map((process) => `a process is left: ${process}`))
  for (const { pid } of processesOfUsers()) signal(pid, 'SIGKILL')
  clear(stage, { isKept: isKept || breaches.length > 0 })
  if (isKept || breaches.length > 0) story.unshift(`kept: ${stage.home}`)
  return { state: breaches.length === 0 ? 'held' : 'gave way', breaches, story }
}

interface Play {
  stage: Stage
  product: Product
  folder: string
  breaches: string[]
  story: string[]
}

async function play({ stage, product, folder, breaches, story }: Play): Promise<void> {
  const at = { stage, product }
  const go = join(folder, 'go')
  const start = async (name: string, run: string, program: string): Promise<Sight> => {
    const source = join(folder, name)
    mkdirSync(source)
    copyFileSync(program, join(source, 'train.py'))
    writeFileSync(join(source, 'job.yaml'), `name: ${name}\nrun: ${run}\ncheckpoint: {}\n`)
    await crucible(at, ['submit', join(source, 'job.yaml'), '--id', name, '--yes', '--json'])
    return sightOf(stage, name)
  }
  const train = join(__dirname, '..', 'clocks', 'workload', 'train.py')
  const neighbour = await start(NEIGHBOUR, `python3 train.py ${go} quiet`, train)
  await untilTrue(() => neighbour.beat()?.phase === 'running', 'the neighbour trains', END_LIMIT_MS)
  const hostile = await start(
    HOSTILE,
    `python3 train.py ${join(folder, 'told')}`,
    join(__dirname, 'workload', 'hostile.py'),
  )
  const over = new AbortController()
  const watching = watch([hostile, neighbour], [stage.home, folder], over.signal)
  const beganMs = performance.now()
  const note = (what: string): void =>
    void story.push(`${Math.round((performance.now() - beganMs) / 1_000)} s: ${what}`)
  try {
    const told = join(folder, 'told')
    await untilTrue(
      () => existsSync(told) || hostile.isOver,
      'the hostile job has done everything',
      DEEDS_LIMIT_MS,
    )
    const succeeded = existsSync(told) ? (JSON.parse(readFileSync(told, 'utf8')) as string[]) : undefined
    if (succeeded === undefined) breaches.push(`it ended early: ${resultOf(hostile)?.message}`)
    else breaches.push(...succeeded.map((what) => `the hostile job got ${what}`))
    note('everything is done')
    await crucible(at, ['cancel', HOSTILE])
    note('cancelled')
    await untilTrue(() => hostile.isOver, 'the hostile job is over', END_LIMIT_MS)
    note('over')
    const { state, message } = resultOf(hostile)!
    if (state !== 'cancelled') breaches.push(`it is ${state}: ${message}`)
    await untilTrue(
      () => new Set(processesOfUsers().map(({ uid }) => uid)).size < 2,
      'its processes end',
      END_LIMIT_MS,
    )
    if (neighbour.isOver) breaches.push(`the neighbour ended: ${resultOf(neighbour)?.message}`)
    for (const words of [
      ['show', HOSTILE],
      ['logs', HOSTILE, '--tail', '2000'],
      ['artifacts', HOSTILE],
      ['checkpoints', HOSTILE],
      ['list'],
    ])
      await crucible(at, words).then(
        (text) =>
          UNSAFE.test(text) &&
          breaches.push(`${words.join(' ')} prints ${JSON.stringify(UNSAFE.exec(text))}`),
        (error: unknown) => breaches.push(`${words.join(' ')}: ${String(error).slice(0, 500)}`),
      )
  } finally {
    over.abort()
  }
  const { longestGapMs, mostMiB } = await watching
  story.push(`longest time without a beat: ${longestGapMs} ms; disk at most: ${mostMiB} MiB`)
  if (longestGapMs > patient(GAP_MAX_MS)) breaches.push(`no beat for ${longestGapMs} ms`)
  if (mostMiB > DISK_MAX_MIB) breaches.push(`${mostMiB} MiB of disk were taken`)
  writeFileSync(go, '')
  await untilTrue(() => neighbour.isOver, 'the neighbour is over', END_LIMIT_MS)
  const { state, message } = resultOf(neighbour)!
  if (state !== 'succeeded' || neighbour.attempts().length !== 1)
    breaches.push(`the neighbour is ${state}: ${message}`)
  await sleep(1_000)
  breaches.push(...processesOfUsers().map(({ pid }) => `a process of a job is left: ${pid}`))
}

/** Looks at beats, and at what the disk holds, until it is over. */
async function watch(
  sights: readonly Sight[],
  folders: readonly string[],
  signal: AbortSignal,
): Promise<Seen> {
  const seen: Seen = { longestGapMs: 0, mostMiB: 0 }
  const last = new Map<Sight, Beat>()
  for (let turn = 0; !signal.aborted; turn++) {
    for (const sight of sights) {
      const beat = sight.beat()
      const before = last.get(sight)
      if (beat === undefined || beat.seq === before?.seq) continue
      const stalledMs = beat.stalledSinceMs === undefined ? 0 : beat.clockMs - beat.stalledSinceMs
      seen.longestGapMs = Math.max(
        seen.longestGapMs,
        stalledMs,
        before === undefined ? 0 : beat.clockMs - before.clockMs,
      )
      last.set(sight, beat)
    }
    if (turn % 40 === 0)
      seen.mostMiB = Math.max(
        seen.mostMiB,
        folders.reduce((sum, folder) => sum + mebibytesOf(folder), 0),
      )
    await sleep(50)
  }
  return seen
}

/** What files take, holes left out. Files may vanish meanwhile. */
function mebibytesOf(folder: string): number {
  const { stdout } = spawnSync('du', ['-sm', folder], { encoding: 'utf8' })
  return Number(/^\d+/.exec(stdout)?.[0] ?? 0)
}

/** Living processes of the users of this deployment's jobs, by their ids. */
function processesOfUsers(): { pid: number; uid: number }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const uid = uidOf(name)
      return uid !== undefined && uid >= UIDS.first && uid <= UIDS.last ? [{ pid: Number(name), uid }] : []
    })
}

function uidOf(pid: string): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return /^State:\s+[ZX]/m.test(status) ? undefined : Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])
  } catch {
    return undefined
  }
}
