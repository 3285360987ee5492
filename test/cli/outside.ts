import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Outside } from '../../cli/cli'
import { readCliConfig } from '../../cli/kit/config'
import type { Sink } from '../../cli/kit/output'
import { runCli } from '../../cli/run'
import { NOW } from '../client/world'
import { makeMarkedFolder } from '../support/marked-store'

/** A stream that keeps what is written. */
export class Paper implements Sink {
  text = ''
  isTTY?: boolean
  columns?: number

  write(text: string): void {
    this.text += text
  }
}

export interface Answer {
  exitCode: number
  stdout: string
  stderr: string
}

/** The outside of a command line with a home of its own, and no server anywhere. */
export class World {
  readonly home = mkdtempSync(join(tmpdir(), 'crucible-cli-'))
  readonly environment: Record<string, string> = {
    CRUCIBLE_HOME: join(this.home, 'home'),
    // A port that no server can use.
    TEMPORAL_ADDRESS: 'localhost:1',
    PATH: process.env['PATH'] ?? '',
    TERM: 'xterm',
  }
  readonly signals = new EventEmitter()
  nowMs = NOW
  /** The file that Node runs. */
  script = '/usr/local/bin/crucible'

  constructor() {
    makeMarkedFolder(join(this.environment['CRUCIBLE_HOME']!, 'store'))
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true })
  }

  async run(...args: string[]): Promise<Answer> {
    const { outside, stdout, stderr } = this.outside()
    return { exitCode: await runCli(args, outside), stdout: stdout.text, stderr: stderr.text }
  }

  outside(): { outside: Outside; stdout: Paper; stderr: Paper } {
    const [stdout, stderr] = [new Paper(), new Paper()]
    const outside: Outside = {
      config: readCliConfig(this.environment, this.script),
      stdout,
      stderr,
      signals: this.signals,
      exit: () => {},
      now: () => this.nowMs,
    }
    return { outside, stdout, stderr }
  }
}
