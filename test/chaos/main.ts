/** `npm run chaos -- --help` (docs/design/chaos.md). */
import { execFileSync } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { progressOn } from '../../cli/dev/temporal/progress'
import { resolveExecutable } from '../../cli/dev/temporal/resolve'
import { purchases } from '../crashes/buying-main'
import { blackouts, crashes, processes } from '../crashes/main'
import { inLanes, seedOptions, seedsOf } from '../kit/runs'
import { readOptions } from '../support/options'
import { FAULTS, planOf, type Fault } from './plan'
import { runChaos, type ChaosOptions, type ChaosReport } from './run'
import { Product } from './stage'

const say = (line: string): boolean => process.stdout.write(`${line}\n`)

/** As a shell says of a program that was stopped by Ctrl-C. */
const INTERRUPTED = 130

async function main(): Promise<void> {
  const values = readOptions({
    name: 'chaos',
    about:
      'Lives through seeded runs of real processes that are killed, and says what broke (docs/design/chaos.md).\nOther programs, with --help of their own: crashes, processes, blackouts, purchases.',
    options: {
      ...seedOptions(20),
      'at-once': { default: 3, means: 'runs at a time' },
      only: { default: '', as: 'FAULT,...', means: `draws from these faults only: ${FAULTS.join(', ')}` },
      keep: { default: false, means: 'keeps the folder of every run, not only of the broken ones' },
    },
  })
  if (values === undefined) return
  if (process.platform !== 'linux')
    throw new Error('The chaos runs look at processes through /proc: run them on Linux.')
  const only = faultsFrom(values.only)
  execFileSync(process.execPath, [join(__dirname, '..', '..', 'tools', 'build.mjs')], { stdio: 'inherit' })
  const executable = await resolveExecutable({
    home: process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible'),
    env: process.env,
    progress: progressOn(process.stderr, Date.now),
  })
  const product = new Product()
  const stopping = new AbortController()
  const options: ChaosOptions = {
    signal: stopping.signal,
    product,
    executable,
    isKept: values.keep,
  }
  const reports: ChaosReport[] = []
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort())
  const { signal } = stopping
  await inLanes(seedsOf(values), { atOnce: values['at-once'], signal }, async (seed) => {
    const report = await runChaos(planOf(seed, only), options)
    // Given up in the middle: whatever was not done yet is no breach.
    if (signal.aborted) return
    reports.push(report)
    tell(report, values.only)
  }).finally(() => product.remove())
  summarise(reports)
  if (stopping.signal.aborted) process.exitCode = INTERRUPTED
}

function faultsFrom(text: string): readonly Fault[] {
  const names = text === '' ? undefined : text.split(',')
  const unknown = names?.filter((name) => !FAULTS.some((fault) => fault === name)) ?? []
  if (unknown.length > 0)
    throw new Error(`There is no fault ${unknown.join(', ')}; there are ${FAULTS.join(', ')}.`)
  return (names as Fault[] | undefined) ?? FAULTS
}

function tell({ seed, durationMs, ends, breaches, story, home }: ChaosReport, only: string): void {
  const isBroken = breaches.length > 0
  say(`seed ${seed}: ${ends.join(', ')}, ${(durationMs / 1_000).toFixed(1)} s${isBroken ? ', BROKEN' : ''}`)
  if (home !== undefined) say(`    kept: ${home} (logs/, store/, journals/)`)
  if (!isBroken) return
  for (const line of [...breaches.map((breach) => `! ${breach}`), ...story]) say(`    ${line}`)
  say(`    again: npm run chaos -- --from ${seed} --count 1${only === '' ? '' : ` --only ${only}`} --keep`)
}

function summarise(reports: ChaosReport[]): void {
  const broken = reports.filter(({ breaches }) => breaches.length > 0)
  const durations = reports.map(({ durationMs }) => durationMs / 1_000).sort((a, b) => a - b)
  const ends = new Map<string, number>()
  for (const end of reports.flatMap((report) => report.ends)) {
    const reason = end.split(' ')[0]!
    ends.set(reason, (ends.get(reason) ?? 0) + 1)
  }
  say(`jobs: ${[...ends].map(([reason, count]) => `${count} ${reason}`).join(', ')}`)
  const landed = reports.flatMap((report) => report.landed)
  const counts = FAULTS.map((fault) => `${landed.filter((each) => each === fault).length} ${fault}`)
  say(`struck: ${counts.join(', ')}`)
  const leftOut = new Set(reports.flatMap((report) => report.leftOut))
  if (leftOut.size > 0) say(`left out, for want of the right to mount: ${[...leftOut].join(', ')}`)
  const median = durations[Math.floor(durations.length / 2)] ?? 0
  say(
    `${reports.length} runs, ${broken.length} broken; median ${median.toFixed(1)} s, longest ${(durations.at(-1) ?? 0).toFixed(1)} s`,
  )
  if (broken.length > 0) say(`broken seeds: ${broken.map(({ seed }) => seed).join(' ')}`)
  process.exitCode = broken.length === 0 ? 0 : 1
}

/** The first word says which program is meant; without one it is this one. */
async function choose([word = '', ...args]: string[]): Promise<void> {
  if (word === 'crashes') return crashes(args)
  if (word === 'blackouts') return blackouts(args)
  if (word === 'processes') return processes(args)
  if (word === 'purchases') return purchases(args)
  return main()
}

// Started with `node -e`, which leaves no path of a program.
void choose(process.argv.slice(1)).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
