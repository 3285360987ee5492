/** A training that is killed and resumed, compared with an undisturbed one. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from '../../support/patience'

export interface Script {
  /** The folder of the program, which is copied. */
  folder: string
  /** Words of the command; the first is `python`. */
  command: readonly string[]
  /** Where it saves, in its folder. */
  saves: string
  /** What it writes at its end, in its folder. */
  final: string
  /** What an attempt that resumes is started with in addition, given what was saved. */
  resume: (saved: string) => { args: readonly string[]; env: Readonly<Record<string, string>> }
  /** What it prints first, unless it resumes. Missing if the whole first line says so. */
  first?: string
  /** How long it waits after each line that it prints. */
  secondsPerLine?: number
  /** How long a save must be unchanged, for a program that overwrites it in place. */
  settleMs?: number
  /** Changes the copy of the program before it runs. */
  prepare?: (folder: string) => void
}

export interface Outcome {
  /** Whether anything was saved before the kill. */
  hasSaved: boolean
  /** Whether the second start did not begin at the beginning. */
  hasResumed: boolean
  /** `undefined` if the end is the same, bit for bit; otherwise the first difference. */
  difference: string | undefined
  /** Share of its undisturbed time that the first run got. */
  killedAt: number
}

const RUN_LIMIT_MS = patient(180_000)
const ENVIRONMENT = {
  OMP_NUM_THREADS: '1',
  MKL_NUM_THREADS: '1',
  PYTHONHASHSEED: '0',
  PYTHONUNBUFFERED: '1',
  PYTHONDONTWRITEBYTECODE: '1',
  CRUCIBLE_CHECKPOINT_EVERY_SECONDS: '0.2',
  JAX_PLATFORMS: 'cpu',
  KERAS_BACKEND: 'jax',
  HF_HUB_OFFLINE: '1',
}

/** Runs a script twice: undisturbed, and killed at a moment that the seed chooses once something is saved, then resumed. */
export async function live(
  script: Script,
  { python, work, seed }: { python: string; work: string; seed: number },
): Promise<Outcome> {
  const [whole, broken] = [join(work, 'undisturbed'), join(work, 'killed')]
  for (const folder of [whole, broken]) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    cpSync(script.folder, folder, { recursive: true })
    script.prepare?.(folder)
  }
  const undisturbed = start(script, { python, folder: whole })
  const firstSave = await saved(script, whole, undisturbed)
  const complete = await ended(undisturbed)
  if (complete.code !== 0) throw new Error(`${script.folder} failed undisturbed:\n${complete.text}`)

  const killed = start(script, { python, folder: broken })
  const began = Date.now()
  const wait = fraction(seed) * 0.8 * Math.max(0, complete.tookMs - (firstSave ?? complete.tookMs / 4))
  if (firstSave === undefined) await sleep(complete.tookMs / 2 - (Date.now() - began))
  else {
    await saved(script, broken, killed)
    await sleep(wait)
    while (isChanging(join(broken, script.saves), script.settleMs ?? 0)) await sleep(1)
  }
  killed.child.kill('SIGKILL')
  const lost = await ended(killed)
  if (lost.signal !== 'SIGKILL') throw new Error(`${script.folder} ended before it was killed`)
  const killedAt = lost.tookMs / complete.tookMs
  const path = newestIn(join(broken, script.saves))

  rmSync(join(broken, script.final), { recursive: true, force: true })
  const { args, env } = path === undefined ? { args: [], env: {} } : script.resume(path)
  const resumed = await ended(start(script, { python, folder: broken, args, env }))
  if (resumed.code !== 0) throw new Error(`${script.folder} failed after it was killed:\n${resumed.text}`)
  const first = complete.text.split('\n')[0]!
  const isFirst = (line: string): boolean =>
    script.first === undefined ? line === first : line.startsWith(script.first)
  const compared = spawnSync(
    python,
    [join(__dirname, 'compare.py'), ...[whole, broken].map((each) => join(each, script.final))],
    {
      encoding: 'utf8',
    },
  )
  return {
    hasSaved: path !== undefined,
    hasResumed: !resumed.text.split('\n').some(isFirst),
    difference: compared.status === 0 ? undefined : `${compared.stdout}${compared.stderr}`.trim(),
    killedAt,
  }
}

/** From 0 to 1, by a number. */
function fraction(seed: number): number {
  return createHash('sha256').update(String(seed)).digest().readUInt32BE() / 2 ** 32
}

interface Running {
  child: ChildProcess
  startedMs: number
  text: () => string
  end: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

function start(
  { command, saves, secondsPerLine = 0 }: Script,
  {
    python,
    folder,
    args = [],
    env = {},
  }: { python: string; folder: string; args?: readonly string[]; env?: Readonly<Record<string, string>> },
): Running {
  let text = ''
  const child = spawn(python, ['-W', 'ignore', ...command.slice(1), ...args], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      ...ENVIRONMENT,
      PYTHONPATH: __dirname,
      SECONDS_PER_LINE: String(secondsPerLine),
      CRUCIBLE_CHECKPOINT_DIR: join(folder, saves),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()))
  const limit = setTimeout(() => child.kill('SIGKILL'), RUN_LIMIT_MS)
  const end = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(limit)
      if (code !== 0) text += errors
      resolve({ code, signal })
    })
  })
  return { child, startedMs: Date.now(), text: () => text, end }
}

async function ended({ end, startedMs, text }: Running): Promise<{
  code: number | null
  signal: NodeJS.Signals | null
  tookMs: number
  text: string
}> {
  const { code, signal } = await end
  return { code, signal, tookMs: Date.now() - startedMs, text: text() }
}

/** Waits until something is saved; answers how long that took, `undefined` if the program ends without. */
async function saved({ saves }: Script, folder: string, running: Running): Promise<number | undefined> {
  let isOver = false
  void running.end.then(() => (isOver = true))
  while (newestIn(join(folder, saves)) === undefined) {
    if (isOver) return undefined
    await sleep(10)
  }
  return Date.now() - running.startedMs
}

/** The file or folder that a save left, other than one that is being written; of names with numbers the highest. */
function newestIn(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined
  if (statSync(folder).isFile()) return folder
  const names = readdirSync(folder).filter(
    (name) => !name.includes('tmp') && !name.endsWith('.part') && isWhole(join(folder, name)),
  )
  const number = (name: string): number =>
    Number([...name].filter((each) => each >= '0' && each <= '9').join(''))
  const [newest] = names.sort((one, other) => number(other) - number(one))
  return newest === undefined ? undefined : join(folder, newest)
}

/** A Trainer of Hugging Face writes the files of a checkpoint one after the other; the runner knows the last one, too. */
function isWhole(path: string): boolean {
  return !basename(path).startsWith('checkpoint-') || existsSync(join(path, 'trainer_state.json'))
}

const isChanging = (path: string, settleMs: number): boolean =>
  Date.now() - statSync(newestIn(path) ?? path).mtimeMs < settleMs
