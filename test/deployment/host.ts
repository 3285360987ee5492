import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { choosePorts } from '../../cli/dev/temporal/ports'
import { killMachine, processesOf, signal } from '../chaos/machines'
import { settingsOf, temporalPorts } from './settings'
import type { Programs } from './programs'
import { Service } from './service'
import { patient } from '../support/patience'

const ROOT = join(__dirname, '..', '..')
const COMPOSE = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Record<string, { command: string[]; environment: Record<string, string | number> }>
  configs: Record<string, { content: string }>
}
const HEALTHY_LIMIT_MS = patient(90_000)
const PASSWORDS = { database: 'password-of-tests', store: 'secret-of-tests' }

/** What a backup consists of. */
export interface Backup {
  folder: string
}

/** The deployment of docker-compose.yml on this machine: the scripts of that file, run as processes instead of containers. */
export class Host {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-team-')))
  readonly settings: Record<string, string>
  readonly services: Readonly<
    Record<'postgresql' | 'temporal' | 'object-storage' | 'orchestrator' | 'worker-local', Service>
  >
  readonly #user: readonly string[]

  private constructor(
    private readonly programs: Programs,
    private readonly ports: { postgresql: number; store: number; temporal: Record<string, string> },
  ) {
    for (const name of ['bin', 'secrets', 'logs', 'data', 'postgresql', 'crucible'])
      mkdirSync(this.path(name))
    chmodSync(this.folder, 0o711)
    // PostgreSQL refuses to run as root.
    this.#user =
      process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []
    if (this.#user.length > 0) execFileSync('chown', ['postgres:', this.path('postgresql')])
    for (const name of ['temporal-server', 'temporal-sql-tool'])
      symlinkSync(join(programs.server, name), this.path('bin', name))
    symlinkSync(programs.temporal, this.path('bin', 'temporal'))
    symlinkSync(programs.versitygw, this.path('bin', 'versitygw'))
    writeFileSync(this.path('secrets', 'postgres_password'), PASSWORDS.database)
    const keys = `[default]\naws_access_key_id = crucible\naws_secret_access_key = ${PASSWORDS.store}\n`
    writeFileSync(this.path('secrets', 'aws_credentials'), keys)
    writeFileSync(this.path('dynamic.yaml'), COMPOSE.configs['dynamic-config']!.content)
    this.settings = settingsOf({ folder: this.folder, store: ports.store, temporal: ports.temporal })
    this.services = this.#makeServices()
  }

  static async create(programs: Programs): Promise<Host> {
    const [postgresql, store] = await Promise.all([freePort(), freePort()])
    return new Host(programs, { postgresql, store, temporal: await temporalPorts(freePort) })
  }

  path(...names: string[]): string {
    return join(this.folder, ...names)
  }

  /** Starts every service in the order of docker-compose.yml. A restored database is put in place before its schema is upgraded. */
  async start(backup?: Backup): Promise<void> {
    const data = this.path('postgresql', 'data')
    const password = this.path('postgresql', 'password')
    writeFileSync(password, PASSWORDS.database)
    chmodSync(password, 0o644)
    await this.#postgres([
      'initdb',
      '--username=temporal',
      '--auth=scram-sha-256',
      `--pwfile=${password}`,
      '-D',
      data,
    ])
    await this.#bring('postgresql')
    if (backup !== undefined) await this.#restore(backup)
    // Twice: the guide promises that a repetition is harmless.
    for (let times = 0; times < 2; times++) await this.#runOnce('temporal-schema')
    await Promise.all([this.#bring('temporal'), this.#bring('object-storage')])
    await this.#runOnce('temporal-namespace')
    await Promise.all([this.#bring('orchestrator'), this.#bring('worker-local')])
  }

  /** Stops the workers, then copies the databases, the bucket and the key, as docs/guides/team-deployment.md says. */
  async backUp(folder: string): Promise<Backup> {
    for (const name of ['orchestrator', 'worker-local'] as const) await this.services[name].stop()
    mkdirSync(folder)
    for (const database of ['temporal', 'temporal_visibility'])
      await this.#postgres(['pg_dump', '--format=custom', database], join(folder, `${database}.dump`))
    cpSync(this.path('data'), join(folder, 'object-storage'), { recursive: true })
    cpSync(this.path('crucible', 'secret.key'), join(folder, 'secret.key'))
    return { folder }
  }

  /** The command line with the deployment's settings. */
  async crucible(...args: string[]): Promise<string> {
    const main = join(ROOT, 'dist', 'cli', 'main.js')
    const options = { env: this.settings, maxBuffer: 64 * 1024 * 1024 }
    const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], options)
    return stdout
  }

  /** Kills everything at once, machines included, as the loss of the host does. */
  async lose(): Promise<void> {
    await Promise.all(Object.values(this.services).map((service) => service.stop()))
    for (const { pid, machine } of processesOf(this.folder)) {
      if (machine !== undefined) killMachine(machine)
      signal(pid, 'SIGKILL')
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }

  async #restore({ folder }: Backup): Promise<void> {
    for (const database of ['temporal', 'temporal_visibility']) {
      await this.#postgres(['createdb', database])
      // Where the user of PostgreSQL can read it.
      const dump = this.path('postgresql', `${database}.dump`)
      cpSync(join(folder, `${database}.dump`), dump)
      await this.#postgres(['pg_restore', '--exit-on-error', `--dbname=${database}`, dump])
    }
    cpSync(join(folder, 'object-storage'), this.path('data'), { recursive: true })
    cpSync(join(folder, 'secret.key'), this.path('crucible', 'secret.key'))
  }

  async #bring(name: keyof Host['services']): Promise<void> {
    await this.services[name].start()
    await this.services[name].untilHealthy(HEALTHY_LIMIT_MS)
  }

  /** The script of a service, with its paths and ports as they are here. */
  #script(name: string): string[] {
    const script = COMPOSE.services[name]!.command.at(-1)!
      .replaceAll('$$', '$')
      .replaceAll('/run/secrets/', `${this.path('secrets')}/`)
      .replaceAll('/data/', `${this.path('data')}/`)
      .replace('/etc/temporal/entrypoint.sh', 'temporal-server start')
      .replace('--port :7070', `--port 127.0.0.1:${this.ports.store}`)
    return ['/bin/sh', '-euc', script]
  }

  #environment(name: string): Record<string, string> {
    const written = Object.entries(COMPOSE.services[name]!.environment).map(([key, value]) => [
      key,
      String(value),
    ])
    const here = {
      SQL_HOST: '127.0.0.1',
      SQL_PORT: String(this.ports.postgresql),
      TEMPORAL_ADDRESS: this.settings['TEMPORAL_ADDRESS']!,
      POSTGRES_SEEDS: '127.0.0.1',
      DB_PORT: String(this.ports.postgresql),
      BIND_ON_IP: '127.0.0.1',
      DYNAMIC_CONFIG_FILE_PATH: this.path('dynamic.yaml'),
      NUM_HISTORY_SHARDS: '4',
      AWS_REGION: this.settings['AWS_REGION']!,
      HOME: this.folder,
      PATH: `${this.path('bin')}:/usr/bin:/bin`,
    }
    return { ...(Object.fromEntries(written) as Record<string, string>), ...here, ...this.ports.temporal }
  }

  async #runOnce(name: string): Promise<void> {
    const [program, ...args] = this.#script(name) as [string, ...string[]]
    await promisify(execFile)(program, args, { env: this.#environment(name), timeout: HEALTHY_LIMIT_MS })
  }

  /** Runs a program of PostgreSQL as its user, against this deployment's server. */
  async #postgres([name, ...args]: [string, ...string[]], output?: string): Promise<void> {
    const [program, ...all] = [...this.#user, join(this.programs.postgresql, name), ...args] as [
      string,
      ...string[],
    ]
    const { stdout } = await promisify(execFile)(program, all, {
      encoding: 'buffer',
      maxBuffer: 1024 ** 3,
      cwd: this.path('postgresql'),
      env: {
        PATH: '/usr/bin:/bin',
        PGHOST: '127.0.0.1',
        PGPORT: String(this.ports.postgresql),
        PGUSER: 'temporal',
        PGPASSWORD: PASSWORDS.database,
      },
    })
    if (output !== undefined) writeFileSync(output, stdout)
  }

  #makeServices(): Host['services'] {
    const { postgresql: port, store, temporal } = this.ports
    const at = (
      name: string,
      command: string[],
      environment: Record<string, string>,
      isHealthy: () => Promise<boolean>,
    ): Service =>
      new Service({ name, log: this.path('logs', `${name}.log`), command, environment, isHealthy })
    const server = [
      ...this.#user,
      join(this.programs.postgresql, 'postgres'),
      '-D',
      this.path('postgresql', 'data'),
      '-p',
      String(port),
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      `unix_socket_directories=`,
    ]
    const temporalPort = Number(temporal['FRONTEND_GRPC_PORT'])
    const main = join(ROOT, 'dist', 'cli', 'main.js')
    const worker = (name: string, role: string): Service =>
      at(name, [process.execPath, main, 'worker', role], this.settings, () => this.#isWell())
    return {
      postgresql: at('postgresql', server, { PATH: '/usr/bin:/bin' }, () => this.#isDatabaseReady()),
      temporal: at('temporal', this.#script('temporal'), this.#environment('temporal'), () =>
        answers(temporalPort),
      ),
      'object-storage': at(
        'object-storage',
        this.#script('object-storage'),
        this.#environment('object-storage'),
        () => isFine(`http://127.0.0.1:${store}/health`),
      ),
      orchestrator: worker('orchestrator', 'orchestrator'),
      'worker-local': worker('worker-local', 'local'),
    }
  }

  /** The health check of workers: `crucible doctor`. */
  #isWell(): Promise<boolean> {
    return this.crucible('doctor').then(
      () => true,
      () => false,
    )
  }

  #isDatabaseReady(): Promise<boolean> {
    const args = ['--host=127.0.0.1', `--port=${this.ports.postgresql}`, '--username=temporal']
    return promisify(execFile)(join(this.programs.postgresql, 'pg_isready'), args).then(
      () => true,
      () => false,
    )
  }
}

const given = new Set<number>()

async function freePort(): Promise<number> {
  for (;;) {
    const port = 18_000 + Math.floor(Math.random() * 12_000)
    if (given.has(port)) continue
    given.add(port)
    try {
      return (await choosePorts({ grpc: port })).grpc
    } catch {
      // In use: another one.
    }
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.once('connect', () => resolve((socket.destroy(), true)))
    socket.once('error', () => resolve(false))
  })
}

const isFine = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
