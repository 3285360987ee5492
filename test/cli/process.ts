import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { until } from '../support/until'
import type { Answer } from './outside'

const ROOT = join(__dirname, '..', '..')
const MAIN = join(ROOT, 'dist', 'cli', 'main.js')

/** A folder with all programs of this host but one. */
export function pathWithout(left: string, parent: string): string {
  const folder = mkdtempSync(join(parent, 'bin-'))
  chmodSync(folder, 0o755)
  const places = process.env['PATH']!.split(delimiter).filter((place) => existsSync(place))
  // The first place of a name counts.
  const paths = places
    .reverse()
    .flatMap((place) => readdirSync(place).map((name) => [name, join(place, name)] as const))
  for (const [name, path] of new Map(paths)) if (name !== left) symlinkSync(path, join(folder, name))
  return folder
}

/** Brings `dist/` up to date, which takes no time when it is. */
export function build(): void {
  execFileSync(process.execPath, [join(ROOT, 'tools', 'build.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** A command that runs. */
export interface Running {
  child: ChildProcess
  stdout(): string
  stderr(): string
  ended: Promise<Answer>
}

/** The command line as processes of their own, with one environment. */
export class CommandLine {
  private readonly children = new Set<ChildProcess>()

  constructor(
    private readonly environment: Readonly<Record<string, string>>,
    readonly cwd: string,
    private readonly main = MAIN,
    /** Words before the command, such as `env` or `sh -c '...; exec "$@"' sh`. */
    private readonly prefix: readonly string[] = [],
  ) {}

  /** The same environment and folder, with the command line of another package. */
  from(main: string): CommandLine {
    return new CommandLine(this.environment, this.cwd, main, this.prefix)
  }

  start(args: readonly string[], extra: Readonly<Record<string, string>> = {}): Running {
    const [program, ...words] = [...this.prefix, process.execPath, this.main, ...args] as [
      string,
      ...string[],
    ]
    const child = spawn(program, words, {
      cwd: this.cwd,
      env: { PATH: process.env['PATH'], HOME: this.cwd, USER: 'tester', ...this.environment, ...extra },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.children.add(child)
    const text = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (text.stdout += piece))
    child.stderr.setEncoding('utf8').on('data', (piece: string) => (text.stderr += piece))
    const ended = new Promise<Answer>((resolve) => {
      child.on('close', (code, signal) => {
        this.children.delete(child)
        resolve({ exitCode: code ?? -1, ...text, ...(signal === null ? {} : { signal }) })
      })
    })
    return { child, stdout: () => text.stdout, stderr: () => text.stderr, ended }
  }

  run(...args: string[]): Promise<Answer> {
    return this.start(args).ended
  }

  /** The document of a command that must succeed. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const { exitCode, stdout, stderr } = await this.run(...args, '--json')
    if (exitCode !== 0)
      throw new Error(`crucible ${args.join(' ')} ended with ${exitCode}: ${stdout}${stderr}`)
    return JSON.parse(stdout) as T
  }

  /** Starts a command that keeps running, and waits for the first document that it prints. */
  async ready(...args: string[]): Promise<Running & { document: Record<string, unknown> }> {
    const running = this.start([...args, '--json'])
    await until(() => running.stdout().includes('\n') || running.child.exitCode !== null, 60_000)
    const [line = ''] = running.stdout().split('\n')
    const document = JSON.parse(line === '' ? '{}' : line) as Record<string, unknown>
    if (line === '' || 'error' in document)
      throw new Error(`crucible ${args.join(' ')} did not start: ${line}${running.stderr()}`)
    return { ...running, document }
  }

  /** Ends what still runs, machines below the folder too, and removes it. */
  async close(): Promise<void> {
    for (const child of this.children) child.kill('SIGTERM')
    await until(() => this.children.size === 0, 30_000)
    for (const pid of processesBelow(this.cwd)) killIfThere(pid)
    await until(() => processesBelow(this.cwd).length === 0)
    await rm(this.cwd, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Numbers of the processes that were started with a path below a folder. */
export function processesBelow(folder: string): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,args='], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  return lines
    .split('\n')
    .filter((line) => line.includes(folder))
    .map((line) => Number.parseInt(line))
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself meanwhile.
  }
}
