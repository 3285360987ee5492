/** Hostile output, file trees and patterns of jobs on real runners: do the beats go on? */
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Beat } from '../../core/documents'
import { textOf } from '../fuzz/inputs'
import { Dice } from '../kit/dice'
import { chunked, harness, type Report } from '../kit/harness'
import { World, type Machine } from '../runner/world'
import { patient } from '../support/patience'
import { packRunner } from '../support/runner-program'

/** Seeds of one runner. */
const CHUNK = 50
const GAP_MAX_MS = 2_000
/** An order may have more patterns, but each is matched with every file. */
const PATTERNS = 8
const STEPS = ['file', 'file', 'enter', 'enter', 'leave', 'link', 'fifo', 'sparse'] as const

interface Beaten extends Report {
  seeds: number
  longestGapMs: number
}

export const BEATS = harness({
  seeds: 1_000,
  jobs: 1,
  options: {},
  around: async (_, use) => {
    const folder = mkdtempSync(join(tmpdir(), 'crucible-beats-'))
    try {
      const program = join(folder, 'runner.pyz')
      await packRunner(program)
      return await use(program)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  draw: ({ seeds }) => chunked(seeds, CHUNK),
  live: async ({ seeds }: ReturnType<typeof chunked>[number], program: string): Promise<Beaten> => {
    const world = new World(program, undefined, `beats-${seeds[0]}-${process.pid}`)
    try {
      const bundle = await world.bundle({
        'job.py': await readFile(join(__dirname, 'hostile-job.py'), 'utf8'),
        'seeds.jsonl': seeds.map((seed) => JSON.stringify(hostileOf(seed))).join('\n'),
      })
      const outputs = seeds.slice(0, PATTERNS).map((seed) => textOf('globs of the runner', seed))
      const wanted = { bundle, outputs, beatMs: 200, run: 'python3 job.py seeds.jsonl' }
      const machine = await world.launch(wanted)
      const longestGapMs = await longestGapOf(machine)
      const isLong = longestGapMs > patient(GAP_MAX_MS)
      const breaches = isLong ? [`no beat for ${longestGapMs} ms`] : []
      if ((await machine.result()) === undefined) breaches.push(`no result: ${machine.console.slice(-1_500)}`)
      return {
        state: 'over',
        breaches,
        story: (await machine.lines())
          .filter(({ s }) => s === 'runner')
          .map(({ t, m }) => `${t} ${m.slice(0, 200)}`),
        seeds: seeds.length,
        longestGapMs,
      }
    } finally {
      world.dispose()
    }
  },
  table: (reports: readonly Beaten[]) => [
    ['seeds', reports.reduce((sum, { seeds }) => sum + seeds, 0)],
    ['ms without a beat, at most', Math.max(0, ...reports.map(({ longestGapMs }) => longestGapMs))],
  ],
})

/** Draws the hostile things that the job does: its output, its files and its patterns. */
function hostileOf(seed: number): object {
  const dice = new Dice(seed)
  const name = (): string => {
    const text = dice.chance(0.5)
      ? textOf('names', dice.between(1, 1_000_000))
      : 'a'.repeat(dice.between(1, 60))
    const bytes = Buffer.from(text.replaceAll('/', ''), dice.chance(0.9) ? 'utf8' : 'utf16le')
    return bytes.subarray(0, 200).toString('base64')
  }
  const tree = Array.from({ length: dice.between(0, 40) }, () => [dice.oneOf(STEPS), name()])
  const output = Buffer.from(textOf('lines', seed), dice.chance(0.9) ? 'utf8' : 'latin1').toString('base64')
  return { output, tree, into: dice.oneOf(['output', 'checkpoint']) }
}

/** The longest time between two beats until the machine has ended; a beat whose facts are old counts from their age on. */
async function longestGapOf(machine: Machine): Promise<number> {
  let last: Beat | undefined
  let longest = 0
  const see = (beat: Beat): void => {
    const stalledMs = beat.stalledSinceMs === undefined ? 0 : beat.clockMs - beat.stalledSinceMs
    longest = Math.max(longest, stalledMs, last === undefined ? 0 : beat.clockMs - last.clockMs)
    last = beat
  }
  const isOver = machine.exited.then(() => true)
  while (!(await Promise.race([isOver, sleep(50)]))) {
    const beat = await machine.beat()
    if (beat !== undefined && beat.seq !== last?.seq) see(beat)
  }
  const end = await machine.result()
  if (end !== undefined && last !== undefined) longest = Math.max(longest, end.finishedAtMs - last.clockMs)
  return longest
}
