import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { named, readOptions, type ProgramOption } from '../support/options'
import type { AnyHarness, Case, CommonValues, Report, Row } from './harness'
import { inLanes } from './lanes'
import { onSignal } from './signals'

const STORY = {
  story: { default: false, means: 'prints the story of every case, not only of the broken ones' },
}
const ONLY = {
  only: { default: '', as: 'TEXT,...', means: 'only the cases that are named so, or have it in their names' },
}

/** What a run has come to. */
interface Run {
  name: string
  harness: AnyHarness
  /** The given options that decide what a seed means. */
  meaning: readonly string[]
  isStoryWanted: boolean
  isSilent: boolean
  /** The reports of cases that were lived to their ends. */
  whole: Report[]
  ends: Map<string, number>
  broken: string[]
}

type Values = CommonValues & Record<string, unknown> & { from: number; count: number; json: boolean }

/** Runs a harness from the command line: draws its cases, runs and judges them, and prints what broke, the table and how to repeat it. */
export async function prove(
  { name, about }: { name: string; about: string },
  harness: AnyHarness,
  args: readonly string[],
): Promise<void> {
  const options = optionsOf(harness)
  const given = readOptions({ name: 'proof', word: name, about, options }, args)
  if (given === undefined) return
  const signal = endedBySignal(harness)
  const isOne = !Number.isNaN(given['seed'] ?? NaN)
  const { from, count } = isOne ? { from: Number(given['seed']), count: 1 } : (given as Values)
  const seeds = Array.from({ length: harness.seeds === undefined ? 0 : count }, (_, index) => from + index)
  const values = { ...given, from, count, seeds, signal } as unknown as Values
  const beganMs = performance.now()
  const run: Run = {
    name,
    harness,
    meaning: meaningOf(harness, given),
    isStoryWanted: values.story || isOne,
    isSilent: values.json,
    whole: [],
    ends: new Map(),
    broken: [],
  }
  if (count > (harness.seedsPerProcess ?? Infinity)) await proveInProcesses(run, values)
  else await proveHere(run, values)
  if (values.json)
    process.stdout.write(`${JSON.stringify({ ...run, harness: undefined, ends: [...run.ends] })}\n`)
  else for (const line of summaryOf(run, values, performance.now() - beganMs)) say(line)
  process.exitCode = signal.aborted ? (signal.reason as number) : run.broken.length > 0 ? 1 : 0
}

function optionsOf(harness: AnyHarness): Record<string, ProgramOption> {
  const { seeds, jobs, options } = harness
  const ofSeeds: Record<string, ProgramOption> = {
    from: { default: 1, min: 0, means: 'the first seed' },
    count: { default: seeds ?? 1, means: 'how many seeds' },
    seed: { default: NaN, min: 0, means: 'only this one, with its story' },
  }
  return {
    ...(seeds === undefined ? {} : ofSeeds),
    jobs: { default: jobs, means: 'how many at a time' },
    ...ONLY,
    ...(options as Record<string, ProgramOption>),
    ...STORY,
    json: { default: false, means: 'prints the reports as JSON' },
  }
}

/** The options that were given and decide what a case is. */
function meaningOf({ options }: AnyHarness, given: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(options as Record<string, ProgramOption>).flatMap(([name, { default: usual }]) => {
    const value = given[name]
    if (value === usual) return []
    return value === true ? [`--${name}`] : [`--${name}`, String(value)]
  })
}

/** A run that somebody interrupts ends at once, or where its harness can, in good order: then the signal aborts. */
function endedBySignal({ stops = false }: AnyHarness): AbortSignal {
  const stopping = new AbortController()
  onSignal((exitCode) => {
    stopping.abort(exitCode)
    if (!stops) process.exit(exitCode)
  })
  return stopping.signal
}

async function proveHere(run: Run, values: Values): Promise<void> {
  const { harness } = run
  await harness.around(values as never, async (place: unknown) => {
    const proveAll = (cases: readonly Case[]): Promise<Report[]> => proveCases(run, cases, { place, values })
    const drawn = (await harness.draw(values as never, place, proveAll)) as readonly Case[]
    const isOwn = 'only' in harness.options
    await proveAll(isOwn ? drawn : named(drawn, String(values['only'])))
  })
}

async function proveCases(
  run: Run,
  cases: readonly Case[],
  { place, values }: { place: unknown; values: Values },
): Promise<Report[]> {
  const { jobs, signal } = values
  const reports = await inLanes(cases, { jobs, signal }, async (one) => {
    const beganMs = performance.now()
    try {
      const report = (await run.harness.live(one, place, values as never)) as Report
      // Given up in the middle: whatever was not done yet is no breach.
      if (signal.aborted) return undefined
      run.whole.push(report)
      note(run, { one, report, lastedMs: performance.now() - beganMs })
      return report
    } catch (error) {
      const breaches = [error instanceof Error ? (error.stack ?? error.message) : String(error)]
      const report: Report = { state: 'crashed', breaches, story: [] }
      if (!signal.aborted) note(run, { one, report, lastedMs: performance.now() - beganMs })
      return undefined
    }
  })
  return reports.filter((report) => report !== undefined)
}

/** Counts a report, and prints it. */
function note(run: Run, { one, report, lastedMs }: { one: Case; report: Report; lastedMs: number }): void {
  const { state, breaches, story } = report
  const isBroken = breaches.length > 0
  run.ends.set(state, (run.ends.get(state) ?? 0) + 1)
  if (isBroken) run.broken.push(one.name)
  if (run.isSilent || (run.harness.isQuiet === true && !isBroken && !run.isStoryWanted)) return
  say(`${one.name}: ${state}, ${(lastedMs / 1_000).toFixed(1)} s${isBroken ? ', BROKEN' : ''}`)
  if (isBroken || run.isStoryWanted)
    for (const line of [...breaches.map((breach) => `! ${breach}`), ...story]) say(`    ${line}`)
  if (isBroken) say(`    repeat with: ${repeatOf(run, report.again ?? one.again)}`)
}

function repeatOf({ name, meaning }: Run, again: readonly string[]): string {
  const own = meaning.filter((_, index) => !again.includes(meaning[index - (index % 2)]!))
  const words = [...again, ...own].map((word) => (/^[\w./,=-]+$/.test(word) ? word : `'${word}'`))
  return `npm run proof -- ${[name, ...words].join(' ')}`
}

/** One process after another, each with a part of the seeds; their reports come together here. */
async function proveInProcesses(run: Run, values: Values): Promise<void> {
  const { from, count, jobs } = values
  const most = run.harness.seedsPerProcess!
  for (let done = 0; done < count; done += most) {
    const part = Math.min(most, count - done)
    const seeds = ['--from', `${from + done}`, '--count', `${part}`, '--jobs', `${jobs}`]
    const args = [...process.execArgv, '--', run.name, ...seeds, ...run.meaning, '--json']
    const child = promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 28 })
    // It exits with 1 where something broke.
    const { stdout } = await child.catch((error: { stdout: string }) => error)
    const { whole, ends, broken } = JSON.parse(stdout) as Pick<Run, 'whole' | 'broken'> & {
      ends: [string, number][]
    }
    run.whole.push(...whole)
    run.broken.push(...broken)
    for (const [end, times] of ends) run.ends.set(end, (run.ends.get(end) ?? 0) + times)
    for (const { breaches, story } of whole)
      if (breaches.length > 0) for (const line of [...breaches.map((one) => `! ${one}`), ...story]) say(line)
    process.stderr.write(`${done + part} of ${count} seeds, ${broken.length} broken in the last ${part}\n`)
  }
}

function summaryOf(run: Run, values: Values, lastedMs: number): string[] {
  const { ends, broken, whole, harness } = run
  const lines = harness.table?.(whole, values as never) ?? []
  const endRows = [...ends].sort(([, a], [, b]) => b - a).map(([state, times]): Row => [state, times])
  const total = [...ends.values()].reduce((sum, times) => sum + times, 0)
  return [
    '',
    ...tableOf([...(endRows.length <= ENDS_MAX ? endRows : []), ...lines]),
    `${total} cases, ${broken.length} broken, in ${(lastedMs / 1_000).toFixed(0)} s`,
    ...(broken.length > 0 ? [`broken: ${broken.join('; ')}`] : []),
  ]
}

/** Ends that are all different are no summary. */
const ENDS_MAX = 12

function tableOf(lines: readonly (Row | string)[]): string[] {
  const rows = lines.filter((line): line is Row => typeof line !== 'string')
  const width = Math.max(0, ...rows.map(([, value]) => String(value).length))
  return lines.map((line) =>
    typeof line === 'string' ? line : `${String(line[1]).padStart(Math.max(8, width))}  ${line[0]}`,
  )
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
