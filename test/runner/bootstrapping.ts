import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { containerStart, type BootstrapOptions } from '../../backends/bootstrap'
import type { HandOver } from '../../backends/registry'
import { attemptIdOf, sendNameOf } from '../../core/queues'
import { layout } from '../../storage/layout'
import { handOvers } from '../../service/hand-over'
import { SecretIssuer } from '../../service/secrets'
import { makeOrder } from '../backends/orders'
import type { World } from './world'

export const PYTHON = process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3'
/** What a machine's runner would get as credentials. */
export const GRANT =
  '{"keyId": "the-key", "secret": "the-grant", "sessionToken": null, "expiresAtMs": null}\n'

/** A runner that only reports its start, for tests of the bootstrap alone. */
export const STAND_IN = [
  'import json, os, sys',
  'open("runner.json", "w").close()',
  'told = {"argv": sys.argv[1:], "environment": dict(os.environ), "cwd": os.getcwd()}',
  'with open("started.json" if sys.argv[1] == "run" else "timer.json", "w") as file:',
  '    json.dump(told, file)',
  '',
].join('\n')

/** How a bootstrap ended. */
export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  /** What it printed, standard error included. */
  said: string
}

/** What the stand-in reports about its start. */
export interface Started {
  argv: string[]
  environment: Record<string, string>
  cwd: string
}

/** The control plane's side of hand-overs, and machines that start with them. */
export class Bootstraps {
  secrets!: SecretIssuer
  sha256!: string
  #sends = 0

  private constructor(
    readonly world: World,
    readonly grant: string | null,
  ) {}

  /** @param program the runner's text; the real one if missing */
  static async make(world: World, program?: string, grant: string | null = null): Promise<Bootstraps> {
    const made = new Bootstraps(world, grant)
    made.secrets = await SecretIssuer.open(world.store, join(world.folder, 'deployment.key'))
    const body = program === undefined ? readFileSync(world.program) : Buffer.from(program)
    made.sha256 = createHash('sha256').update(body).digest('hex')
    await world.store.put(layout.runner(made.sha256), body)
    return made
  }

  /** The hand-over of a send that was not made before. */
  async next(startWithinMs = 60_000): Promise<{ handOver: HandOver; send: string; attemptId: string }> {
    const { store, jobId } = this.world
    const attemptId = attemptIdOf(jobId, 1)
    const send = sendNameOf(attemptId, ++this.#sends)
    const order = makeOrder({
      store,
      jobId,
      runnerSha256: this.sha256,
      timing: { startWithinMs },
      offers: [
        {
          backend: 'x',
          capacityType: 'on-demand',
          type: '',
          place: '',
          priceMicroUsdPerHour: 0,
          shape: { cpus: 1, memoryGiB: 1, diskGiB: 1, gpus: 0 },
          availability: 'available',
          priceSource: { kind: 'static', observedAtMs: 0 },
        },
      ],
    })
    const { grant } = this
    const grants = grant === null ? undefined : { grantFile: async () => grant }
    const issue = handOvers({ store, secrets: this.secrets, grants, now: Date.now })
    return { handOver: await issue(order, send), send, attemptId }
  }

  key(send: string): string {
    return layout.handOver(this.world.jobId, 1, send)
  }

  async isLeft(send: string): Promise<boolean> {
    return (await this.world.store.head(this.key(send))) !== undefined
  }

  root(name: string): string {
    return join(this.world.folder, name)
  }

  /** Starts a container with a bootstrap. */
  container(handOver: HandOver, options: BootstrapOptions, environment: NodeJS.ProcessEnv = {}): Bootstrap {
    const start = containerStart(handOver, options, PYTHON)
    return new Bootstrap(start.command, { ...plainEnvironment(), ...start.environment, ...environment })
  }

  started(name: string): Started | undefined {
    const path = join(this.root(name), 'started.json')
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Started) : undefined
  }
}

/** A process of a bootstrap, which may have become a runner. */
export class Bootstrap {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  said = ''

  constructor(command: readonly string[], environment: NodeJS.ProcessEnv) {
    const [program, ...rest] = command
    this.child = spawn(program!, rest, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (data: Buffer) => (this.said += data.toString()))
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject)
      this.child.once('close', (code, signal) => resolve({ code, signal, said: this.said }))
    })
  }
}

/** As in a container: next to nothing, without HOME; with the way to the Python of the tests. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const names = ['PATH', 'PYENV_ROOT', 'PYENV_VERSION', 'NO_PROXY', 'no_proxy']
  return Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
}

/** Programs of a machine that note their arguments in a log of their name, and do what `scripts` says. */
export function makePrograms(
  folder: string,
  scripts: Record<string, string>,
): { path: string; log: (name: string) => string } {
  mkdirSync(folder, { recursive: true })
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\nprintf '%s\\n' "$@" >>"${folder}/${name}.log"\n${script}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  const log = (name: string): string => {
    const path = join(folder, `${name}.log`)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }
  return { path: `${folder}:${process.env['PATH']}`, log }
}
