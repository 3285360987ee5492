import { mkdtempSync, rmSync } from 'node:fs'
import { EventEmitter } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import { readCliConfig } from '../../../cli/kit/config'
import { runTruffle } from '../../../cli/truffle/run'
import type { TruffleOutside } from '../../../cli/truffle/session'
import { Paper, type Answer } from '../outside'

const REGIONS: NonNullable<WorldText['regions']> = {
  'us-east-1': { zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'] },
  'us-west-2': { zones: ['us-west-2a', 'us-west-2b'] },
  'eu-west-1': { zones: ['eu-west-1a', 'eu-west-1b'] },
}

/** A small cloud with a few Regions, and truffle in this process, with its keys. */
export class TruffleAccount {
  readonly home = mkdtempSync(join(tmpdir(), 'truffle-'))
  readonly environment: Record<string, string> = {}
  private before: NodeJS.ProcessEnv = {}
  /** What a person at the terminal answers, in turn; without answers there is no terminal. */
  replies: string[] | undefined
  isTerminal = false

  private constructor(
    readonly cloud: Cloud,
    endpoint: string,
  ) {
    const { accessKeyId, secretAccessKey } = cloud.credentials
    Object.assign(this.environment, {
      CRUCIBLE_HOME: join(this.home, 'home'),
      TEMPORAL_ADDRESS: 'localhost:1',
      TERM: 'xterm',
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    })
    this.before = { ...process.env }
    this.adopt()
  }

  /** @param through an address in front of the cloud's own */
  static async open(
    world: WorldText = {},
    through: (endpoint: string) => Promise<string> = async (endpoint) => endpoint,
  ): Promise<TruffleAccount> {
    const cloud = await startCloud({ world: { regions: REGIONS, throttling: 'off', ...world } })
    return new TruffleAccount(cloud, await through(cloud.endpoint))
  }

  /** The SDK reads its variables in this process. */
  adopt(): void {
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
    Object.assign(process.env, this.environment, {
      AWS_CONFIG_FILE: join(this.home, 'config'),
      AWS_SHARED_CREDENTIALS_FILE: join(this.home, 'credentials'),
      AWS_EC2_METADATA_DISABLED: 'true',
    })
  }

  async run(...args: string[]): Promise<Answer> {
    const [stdout, stderr] = [new Paper(), new Paper()]
    if (this.isTerminal) Object.assign(stdout, { isTTY: true, columns: 140 })
    const replies = this.replies === undefined ? undefined : [...this.replies]
    const outside: TruffleOutside = {
      config: readCliConfig(this.environment, '/usr/local/bin/truffle'),
      stdout,
      stderr,
      signals: new EventEmitter(),
      exit: () => {},
      now: Date.now,
      ask: replies && ((question) => (stderr.write(question), Promise.resolve(replies.shift() ?? ''))),
    }
    const exitCode = await runTruffle(args, outside)
    return { exitCode, stdout: stdout.text, stderr: stderr.text }
  }

  /** The document of a command that asks again, whatever is kept. */
  async json(...args: string[]): Promise<TruffleDocument> {
    const { stdout } = await this.run(...args, '--output', 'json', '--fresh')
    return JSON.parse(stdout) as TruffleDocument
  }

  async close(): Promise<void> {
    process.env = this.before
    await this.cloud.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

export interface TruffleDocument {
  schema: string
  command: string
  results: Record<string, never>[]
  unanswered: { region: string; code: string | null; message: string; hint: string | null }[]
  notes: string[]
  error?: { kind: string; message: string; hint: string | null }
  [name: string]: unknown
}
