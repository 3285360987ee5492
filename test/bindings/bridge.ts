import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Answer } from '../cli/outside'
import { pythonClients } from '../support/python-clients'

const ROOT = join(__dirname, '../..')
/** Machines of this host may have a Python that is older than what the packages need. */
const bin = pythonClients('python-packages')
const PYTHON = bin === undefined ? 'python3' : join(bin, 'python3')
/** What `import truffle` and `import crucible` find. */
export const PYTHONPATH = ['truffle', 'crucible']
  .map((name) => join(ROOT, 'bindings/python', name, 'src'))
  .join(delimiter)

/** One call of an executable. */
export interface Call {
  program: string
  args: string[]
  environment: Record<string, string>
}

export interface Snippet {
  name: string
  code: string
  /** Runs before it: definitions of names that it only mentions. */
  before?: string
  /** An expression, evaluated when it has ended: its value is the result, as JSON. */
  after?: string
}

export interface Ran {
  stdout: string
  error: { type: string; message: string; trace: string } | null
  result: unknown
}

/** Python whose command lines run in this process: a process of its own for each would take most of a test's time. */
export class Bridge {
  readonly calls: string[][] = []
  private readonly folder = mkdtempSync(join(tmpdir(), 'bridge-'))

  private constructor(
    private readonly server: Server,
    private readonly run: (call: Call) => Promise<Answer>,
  ) {}

  static async open(run: (call: Call) => Promise<Answer>): Promise<Bridge> {
    const server = createServer()
    const bridge = new Bridge(server, run)
    server.on('connection', (socket) => {
      createInterface(socket).once('line', (line) => {
        const call = JSON.parse(line) as Call
        bridge.calls.push(call.args)
        void bridge.run(call).then((answer) => socket.end(`${JSON.stringify(answer)}\n`))
      })
    })
    server.listen(bridge.socket)
    await once(server, 'listening')
    const program = join(__dirname, 'python/bridge.py')
    for (const name of ['truffle', 'crucible'])
      writeFileSync(
        join(bridge.folder, name),
        `#!/bin/sh\nexec ${PYTHON} -S -E ${program} ${bridge.socket} ${name} "$@"\n`,
        { mode: 0o755 },
      )
    return bridge
  }

  private get socket(): string {
    return join(this.folder, 'socket')
  }

  /** Runs a program of Python, with text as its input; returns its output. */
  async python(args: readonly string[], input = '', env: Record<string, string> = {}): Promise<string> {
    const child = spawn(PYTHON, ['-B', ...args], {
      env: {
        ...process.env,
        PYTHONPATH,
        PATH: `${this.folder}${delimiter}${process.env['PATH']}`,
        CRUCIBLE_CLI: '',
        ...env,
      },
    })
    const [stdout, stderr]: [string[], string[]] = [[], []]
    child.stdout.setEncoding('utf8').on('data', (text: string) => stdout.push(text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.push(text))
    child.stdin.end(input)
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0) throw new Error(`Python ended with ${code}: ${stderr.join('')}`)
    return stdout.join('')
  }

  /** Runs snippets in one process, each with names of its own. */
  async snippets(snippets: readonly Snippet[]): Promise<Ran[]> {
    const program = join(__dirname, 'python/snippets.py')
    return JSON.parse(await this.python([program], JSON.stringify(snippets))) as Ran[]
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.server.close(resolve))
    rmSync(this.folder, { recursive: true, force: true })
  }
}
