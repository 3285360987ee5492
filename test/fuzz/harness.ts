import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { harness, nothingAround, type Case, type Report } from '../kit/harness'
import { patient } from '../support/patience'
import { keptOf, SOURCES, textOf } from './inputs'

/** Processor time of one text. */
const TEXT_MS = 1_500
/** That of a program, which is read in a thread of its own. */
const PROGRAM_MS = 10_000
/** Then the text is over whatever the processor did. */
const HARD_MS = 20_000

const ROOT = join(__dirname, '..', '..')

interface Reader extends Case {
  reader: string
}

interface Fuzzed extends Report {
  texts: number
  slowestMs: number
}

interface Answer {
  /** Processor time. */
  ms: number
  problem: string | null
  /** The process can read no further text. */
  isOver?: boolean
}

export const READERS: readonly Reader[] = Object.keys(SOURCES).map((reader) => ({
  name: reader,
  again: ['--only', reader],
  reader,
}))

/** Gives texts of strangers to each reader: every one ends soon, and with nothing but the refusal that the reader announces. */
export const FUZZ = harness({
  jobs: 2,
  options: {
    seconds: { default: 45, means: 'how long each reader gets texts' },
    first: { default: 1, means: 'the first seed of each reader' },
    texts: { default: 1_000_000, min: 0, means: 'how many texts of seeds each reader gets at most' },
  },
  around: nothingAround,
  draw: () => READERS,
  live: async ({ reader }: Reader, _, { seconds, first, texts }): Promise<Fuzzed> => {
    const child = new Child(reader)
    const limitMs = SOURCES[reader]!.isInThread === true ? PROGRAM_MS : TEXT_MS
    const result: Fuzzed = { state: 'read', breaches: [], story: [], texts: 0, slowestMs: 0 }
    const give = async (name: string, text: string): Promise<void> => {
      const { ms, problem } = await child.read(text)
      result.texts += 1
      result.slowestMs = Math.max(result.slowestMs, ms)
      const words = problem ?? (ms > limitMs ? `took ${Math.round(ms)} ms of processor time` : undefined)
      if (words === undefined) return
      result.breaches.push(`${reader}, ${name}: ${words}`)
      result.story.push(`${name}: ${JSON.stringify(text.slice(0, 300))} (${text.length} characters)`)
    }
    try {
      for (const [index, text] of keptOf(reader).entries()) await give(`kept text ${index}`, text)
      const endsAt = performance.now() + seconds * 1_000
      for (let seed = first; seed < first + texts && performance.now() < endsAt; seed += 1) {
        await give(`seed ${seed}`, textOf(reader, seed))
        if (result.breaches.length >= 5) break
      }
    } finally {
      child.end()
    }
    return result
  },
  table: (reports: readonly Fuzzed[]) => [
    ['texts', reports.reduce((sum, { texts }) => sum + texts, 0)],
    ['ms of the slowest', Math.round(Math.max(0, ...reports.map(({ slowestMs }) => slowestMs)))],
  ],
})

/** The process of a reader, which is ended and started anew when a text does not end. */
class Child {
  #process: ChildProcess | undefined
  #heard: ((answer: Answer) => void) | undefined

  constructor(private readonly reader: string) {}

  async read(text: string): Promise<Answer> {
    const { stdin } = (this.#process ??= this.#start())
    let timer: NodeJS.Timeout | undefined
    const answer = await new Promise<Answer>((resolve) => {
      this.#heard = resolve
      timer = setTimeout(() => {
        this.end()
        resolve({ ms: HARD_MS, problem: 'did not end' })
      }, patient(HARD_MS))
      stdin!.write(`${Buffer.from(text).toString('base64')}\n`)
    })
    clearTimeout(timer)
    if (answer.isOver === true) this.end()
    return answer
  }

  end(): void {
    const ended = this.#process
    this.#process = undefined
    ended?.kill('SIGKILL')
  }

  #start(): ChildProcess {
    const [program, ...args] =
      SOURCES[this.reader]!.in === 'python'
        ? [process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3', '-B', join(__dirname, 'python', 'reader.py')]
        : [
            process.execPath,
            '--import',
            join(ROOT, 'test', 'support', 'typescript.mjs'),
            '-e',
            `require(${JSON.stringify(join(__dirname, 'reader.ts'))})`,
            '--',
          ]
    const child = spawn(program, [...args, this.reader], { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] })
    createInterface({ input: child.stdout }).on('line', (line) => this.#heard?.(JSON.parse(line) as Answer))
    child.on('close', () => {
      if (this.#process !== child) return
      this.#process = undefined
      this.#heard?.({ ms: 0, problem: 'ended its process' })
    })
    child.stdin.on('error', () => undefined)
    return child
  }
}
