import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readLinesOf } from '../chaos/seam'
import { Host } from './host'
import type { Programs } from './programs'
import { patient } from '../support/patience'

export const SERVICES = ['postgresql', 'temporal', 'object-storage', 'orchestrator', 'worker-local'] as const
type ServiceName = (typeof SERVICES)[number]

export interface DriveOptions {
  programs: Programs
  jobs: number
  /** Services to kill, one after the other, while the jobs run. */
  kills: readonly ServiceName[]
  /** Steps of 0.4 seconds that each job has. */
  steps: number
  say: (line: string) => void
  /** Keeps the folders of both hosts. */
  isKept: boolean
}

/** One line of a workload's journal (test/chaos/workload/train.py). */
interface JournalLine {
  event: 'start' | 'step' | 'saved' | 'end'
  step: number
  pid: number
  attempt: number
  monoMs: number
}

const TRAIN = join(__dirname, '..', 'chaos', 'workload', 'train.py')
const SAVE_EVERY_STEPS = 5
const DOWN_MS = 2_000
const LOOK_EVERY_MS = 300
const LIMIT_MS = patient(240_000)
const HEALTHY_LIMIT_MS = patient(90_000)

/**
 * Runs jobs on a team's deployment while its services are killed, backs it up, loses the whole host, restores the backup on a new
 * one, and waits for the jobs there. Returns what went wrong; nothing when all is well.
 */
export async function drive(options: DriveOptions): Promise<string[]> {
  const work = mkdtempSync(join(tmpdir(), 'crucible-team-jobs-'))
  const hosts: Host[] = []
  try {
    const { programs, say } = options
    const first = await Host.create(programs)
    hosts.push(first)
    await timed(say, 'start of all services', () => first.start())
    const jobs = await submitAll(first, work, options)
    await until('every job has saved', () => jobs.every(({ id }) => hasSaved(work, id, 1)))
    for (const name of options.kills)
      await timed(say, `kill of ${name}`, () => killAndHeal(first, name, { work, jobs }))
    const backup = await timed(say, 'backup', () => first.backUp(join(work, 'backup')))
    const livesBefore = jobs.map(({ id }) => livesOf(work, id).length)
    await timed(say, 'loss of the host', () => first.lose())
    const second = await Host.create(programs)
    hosts.push(second)
    await timed(say, 'start from the backup', () => second.start(backup))
    await timed(say, 'end of all jobs', () => untilSucceeded(second, jobs))
    const wrong = await Promise.all(
      jobs.map((job, at) =>
        check(second, { ...job, work, livesBefore: livesBefore[at]!, steps: options.steps }),
      ),
    )
    return wrong.flat()
  } finally {
    for (const host of hosts) {
      await host.lose()
      if (!options.isKept) host.remove()
    }
    if (options.isKept) options.say(`kept: ${[work, ...hosts.map(({ folder }) => folder)].join(' ')}`)
    else rmSync(work, { recursive: true, force: true })
  }
}

interface Job {
  id: string
}

async function submitAll(host: Host, work: string, { jobs, steps }: DriveOptions): Promise<Job[]> {
  const submitted: Job[] = []
  for (let number = 1; number <= jobs; number++) {
    const folder = join(work, `job-${number}`)
    mkdirSync(folder)
    cpSync(TRAIN, join(folder, 'train.py'))
    const journal = join(work, `${number}.ndjson`)
    const spec = [
      `name: team-${number}`,
      `run: python3 train.py ${steps} 0.4 ${SAVE_EVERY_STEPS} folders`,
      `env: { CHAOS_JOURNAL: ${JSON.stringify(journal)} }`,
    ]
    writeFileSync(join(folder, 'job.yaml'), `${spec.join('\n')}\n`)
    const answer = JSON.parse(await host.crucible('submit', join(folder, 'job.yaml'), '--json')) as {
      id: string
    }
    writeFileSync(join(work, `${answer.id}.journal`), journal)
    submitted.push({ id: answer.id })
  }
  return submitted
}

/** Kills a service, keeps it away for a while, and waits until it is healthy and every job has made progress since. */
async function killAndHeal(
  host: Host,
  name: ServiceName,
  { work, jobs }: { work: string; jobs: Job[] },
): Promise<void> {
  const service = host.services[name]
  if (!(await service.kill())) throw new Error(`${name} was not running`)
  await sleep(DOWN_MS)
  await service.start()
  await service.untilHealthy(HEALTHY_LIMIT_MS)
  // Its health check is `crucible doctor`, which looks at every service.
  await host.services.orchestrator.untilHealthy(HEALTHY_LIMIT_MS)
  const before = jobs.map(({ id }) => journalOf(work, id).length)
  await until(`every job continues after ${name} was killed`, () =>
    jobs.every(({ id }, at) => journalOf(work, id).length > before[at]! || isOver(work, id)),
  )
}

async function untilSucceeded(host: Host, jobs: Job[]): Promise<void> {
  const states = new Map<string, string>()
  await until('every job has succeeded', async () => {
    for (const { id } of jobs) {
      const { state } = JSON.parse(await host.crucible('show', id, '--json')) as { state: string }
      states.set(id, state)
      if (state === 'failed' || state === 'cancelled') throw new Error(`${id} is ${state}`)
    }
    return [...states.values()].every((state) => state === 'succeeded')
  })
}

/** No job may lose its machine to a service that was killed, none may run twice, and each must end with the same weights. */
async function check(
  host: Host,
  { id, work, livesBefore, steps }: Job & { work: string; livesBefore: number; steps: number },
): Promise<string[]> {
  const wrong: string[] = []
  if (livesBefore !== 1) wrong.push(`${id} was started ${livesBefore} times while its machine was well`)
  const lives = livesOf(work, id)
  if (lives.length !== 2) wrong.push(`${id} was started ${lives.length} times, not once on each host`)
  lives.slice(1).forEach((life, index) => {
    if (life[0]!.monoMs <= lives[index]!.at(-1)!.monoMs) wrong.push(`${id} ran twice at once`)
    if (life[0]!.step === 0) wrong.push(`${id} started over after the restore`)
    if (life[0]!.attempt <= lives[index]![0]!.attempt)
      wrong.push(`${id} repeated attempt ${life[0]!.attempt}`)
  })
  const results = join(work, `results-${id}`)
  await host.crucible('artifacts', id, '--download', results)
  if (!readFileSync(join(results, 'weights.bin')).equals(undisturbedWeights(work, steps)))
    wrong.push(`${id} has other weights than an undisturbed run`)
  return wrong
}

function undisturbedWeights(work: string, steps: number): Buffer {
  const folder = join(work, 'undisturbed')
  mkdirSync(folder, { recursive: true })
  execFileSync('python3', [TRAIN, String(steps), '0', String(steps), 'folders'], {
    env: { PATH: process.env['PATH'], CRUCIBLE_CHECKPOINT_DIR: folder, CRUCIBLE_OUTPUT_DIR: folder },
    stdio: 'ignore',
  })
  return readFileSync(join(folder, 'weights.bin'))
}

function journalOf(work: string, id: string): JournalLine[] {
  return readLinesOf<JournalLine>(readFileSync(join(work, `${id}.journal`), 'utf8'))
}

function livesOf(work: string, id: string): JournalLine[][] {
  const lives = new Map<number, JournalLine[]>()
  for (const line of journalOf(work, id)) lives.set(line.pid, [...(lives.get(line.pid) ?? []), line])
  return [...lives.values()]
}

function hasSaved(work: string, id: string, times: number): boolean {
  return journalOf(work, id).filter(({ event }) => event === 'saved').length >= times
}

function isOver(work: string, id: string): boolean {
  return journalOf(work, id).some(({ event }) => event === 'end')
}

async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const startedAt = performance.now()
  while (!(await isTrue())) {
    if (performance.now() - startedAt > LIMIT_MS) throw new Error(`Not within ${LIMIT_MS / 1_000} s: ${what}`)
    await sleep(LOOK_EVERY_MS)
  }
}

async function timed<T>(say: (line: string) => void, what: string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const result = await work()
  say(`${what.padEnd(24)} ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
  return result
}
