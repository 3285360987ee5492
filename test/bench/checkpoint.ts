import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { S3_ENVIRONMENT, startTestS3 } from '../support/s3'
import { timed, type Measure } from './measure'
import { SlowProxy } from './slow-proxy'

const RATIO_MIN = 0.9
const RUNNER_MIB_MAX = 100
const MIB = 1024 * 1024
const BUCKET = 'bench'
const SLOW = { roundTripMs: 30, bytesPerSecond: 8 * MIB }
const run = promisify(execFile)

/** The ways between the machine and the store, and how often each is gone. */
const WAYS = [
  { name: 'fast store', rounds: 3, isSlow: false },
  { name: '30 ms, 8 MiB/s a connection', rounds: 1, isSlow: true },
] as const

type Direction = 'up' | 'down'

interface Site {
  folder: string
  file: string
  env: NodeJS.ProcessEnv
}

/** A checkpoint of one file up and down: the runner in turn with the aws CLI, each a process from its start to its end. */
export async function checkpoint(sizeMiB: number): Promise<Measure[]> {
  const cli = await run('aws', ['--version']).catch(() => undefined)
  if (cli === undefined) {
    process.stderr.write(
      'checkpoint: skipped, as there is no aws CLI on PATH to measure against (pip install awscli)\n',
    )
    return []
  }
  const server = await startTestS3(BUCKET)
  const proxy = await SlowProxy.open(Number(new URL(server.url).port), SLOW)
  const folder = await mkdtemp(join(tmpdir(), 'crucible-bench-'))
  const site: Site = {
    folder,
    file: join(folder, 'checkpoint.bin'),
    env: { PATH: process.env['PATH'], HOME: folder, ...S3_ENVIRONMENT },
  }
  try {
    await fill(site.file, sizeMiB)
    const measures: Measure[] = []
    for (const { name, rounds, isSlow } of WAYS)
      measures.push(...(await compare(site, { name, rounds, sizeMiB, url: isSlow ? proxy.url : server.url })))
    return measures
  } finally {
    await proxy.close()
    await server.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function compare(
  site: Site,
  { name, rounds, sizeMiB, url }: { name: string; rounds: number; sizeMiB: number; url: string },
): Promise<Measure[]> {
  const rates: Record<Direction, { ours: number[]; theirs: number[] }> = {
    up: { ours: [], theirs: [] },
    down: { ours: [], theirs: [] },
  }
  let peakKiB = 0
  for (let round = 0; round < rounds; round++) {
    for (const direction of ['up', 'down'] as const) {
      const theirs = await timed(() => moveByCli(site, direction, url))
      const ours = await timed(async () => {
        peakKiB = Math.max(peakKiB, await moveByRunner(site, direction, url))
      })
      rates[direction].theirs.push((sizeMiB * 1_000) / theirs)
      rates[direction].ours.push((sizeMiB * 1_000) / ours)
    }
  }
  const measures = (['up', 'down'] as const).map((direction): Measure => {
    const { ours, theirs } = rates[direction]
    return {
      bench: 'checkpoint',
      name: `${sizeMiB} MiB ${direction}, ${name}`,
      // The best of each: other work on a machine only ever makes a round slower.
      value: Math.max(...ours) / Math.max(...theirs),
      unit: 'x',
      goal: { is: 'at least', value: RATIO_MIN },
      remark: `${shown(ours)} MiB/s, the aws CLI ${shown(theirs)}`,
    }
  })
  const memory: Measure = {
    bench: 'checkpoint',
    name: `memory of the runner, ${name}`,
    value: peakKiB / 1024,
    unit: 'MiB',
    goal: { is: 'at most', value: RUNNER_MIB_MAX },
  }
  return [...measures, memory]
}

function shown(rates: readonly number[]): string {
  return rates.map(Math.round).join(', ')
}

async function moveByCli({ folder, file, env }: Site, direction: Direction, url: string): Promise<void> {
  const there = `s3://${BUCKET}/cli/checkpoint.bin`
  const back = join(folder, 'cli-back.bin')
  const [from, to] = direction === 'up' ? [file, there] : [there, back]
  await run('aws', ['--endpoint-url', url, 's3', 'cp', '--only-show-errors', from, to], { env })
  await rm(back, { force: true })
}

/** The peak of its memory in KiB. */
async function moveByRunner({ folder, file, env }: Site, direction: Direction, url: string): Promise<number> {
  const back = join(folder, 'runner-back.bin')
  const { stdout } = await run(
    'python3',
    [
      '-B',
      join(__dirname, 'checkpoint_runner.py'),
      direction,
      `s3://${BUCKET}/runner?endpoint=${url}`,
      'checkpoint.bin',
      direction === 'up' ? file : back,
      join(folder, 'entry.json'),
    ],
    { env },
  )
  await rm(back, { force: true })
  return Number(stdout)
}

/** Noise: no two of its parts are the same, and nothing on the way can make it smaller. */
async function fill(path: string, sizeMiB: number): Promise<void> {
  const file = await open(path, 'w')
  try {
    for (let written = 0; written < sizeMiB; written++) await file.write(randomBytes(MIB))
  } finally {
    await file.close()
  }
}
