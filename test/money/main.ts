/** `npm run money -- --help` (docs/guides/money.md). */
import { seedOptions } from '../kit/runs'
import { readOptions } from '../support/options'
import { formatDuration, HOUR_MS } from '../../core/time/time'
import { capsInWords } from './caps'
import { disagreements, liveThrough, type Cap, type Report, type Stopped } from './run'

/** Reckonings checked by the runner's own program at once. */
const CHECKED_AT_ONCE = 50_000

async function main(): Promise<void> {
  const values = readOptions({
    name: 'money',
    about:
      'Lets jobs spend money on random prices, with outages, and compares it with the bill (docs/guides/money.md).',
    options: {
      ...seedOptions(10_000),
      story: { default: false, means: 'tell what happened in each' },
    },
  })
  if (values === undefined) return
  const { from, count, story } = values
  const beganMs = performance.now()
  const sum = new Sum()
  for (let seed = from; seed < from + count; seed++) {
    const report = await liveThrough(seed)
    sum.add(report)
    const isBad = report.breaches.length > 0
    if (isBad) say(`seed ${seed}, again with: npm run money -- --from ${seed} --count 1 --story`)
    for (const breach of report.breaches) say(`! ${breach}`)
    if (isBad || story) for (const line of report.story) say(line)
  }
  sum.end()
  for (const line of sum.table()) say(line)
  const seconds = ((performance.now() - beganMs) / 1_000).toFixed(0)
  say(`${count} worlds in ${seconds} s: ${sum.breaches} breaches`)
  if (sum.breaches > 0) process.exitCode = 1
}

class Sum {
  breaches = 0
  private readonly counts = new Map<string, number>()
  private readonly stopped: Stopped[] = []
  private readonly caps: Cap[] = []
  private waiting: Report['reckonings'] = []
  private checked = 0

  add({ breaches, counts, jobs, stopped, caps, reckonings }: Report): void {
    this.breaches += breaches.length
    for (const [what, times] of counts) this.count(what, times)
    for (const { reason } of jobs) this.count(`jobs: ${reason}`, 1)
    this.stopped.push(...stopped)
    this.caps.push(...caps)
    this.waiting = this.waiting.concat(reckonings)
    if (this.waiting.length > CHECKED_AT_ONCE) this.end()
  }

  /** What the runner's own program says of what is not checked yet. */
  end(): void {
    const wrong = disagreements(this.waiting)
    for (const line of wrong.slice(0, 10)) say(`! ${line}`)
    this.breaches += wrong.length
    this.checked += this.waiting.length
    this.waiting = []
  }

  table(): string[] {
    return [
      ...[...this.counts].sort().map(([what, times]) => `${String(times).padStart(8)}  ${what}`),
      `${String(this.checked).padStart(8)}  hard stops, computed again by the runner's own program`,
      'Of its budget a job that was ended by it had used, and was left with so much time at the dearest price:',
      ...GROUPS.map(([name, isMeant]) => lineOf(name, this.stopped.filter(isMeant))),
      ...capsInWords(this.caps),
    ]
  }

  private count(what: string, times: number): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times)
  }
}

const GROUPS: [string, (one: Stopped) => boolean][] = [
  ['all', () => true],
  ['nothing had failed', ({ isCalm }) => isCalm],
  ['and the budget does for two hours or more', ({ isCalm, wholeMs }) => isCalm && wholeMs >= 2 * HOUR_MS],
]

function lineOf(name: string, jobs: Stopped[]): string {
  if (jobs.length === 0) return `  ${name}: no jobs`
  const used = jobs.map(({ usedPart }) => usedPart).sort((a, b) => a - b)
  const left = jobs.map(({ leftMs }) => leftMs).sort((a, b) => a - b)
  const percent = (part: number): string =>
    `${(used[Math.floor(part * (used.length - 1))]! * 100).toFixed(1)} %`
  const time = (part: number): string => formatDuration(left[Math.floor(part * (left.length - 1))]!)
  return `  ${name} (${jobs.length} jobs): least ${percent(0)}, median ${percent(0.5)}, most ${percent(1)}; left median ${time(0.5)}, most ${time(1)}`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

void main()
