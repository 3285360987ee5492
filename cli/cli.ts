import type { EventEmitter } from 'node:events'
import type * as clientConfig from '../client/config'
import type { ClientConfig, Environment } from '../client/config'
import type * as clientContext from '../client/context'
import type { Context } from '../client/context'
import { CrucibleError, EXIT_CODES } from '../client/errors'
import type { CliConfig } from './kit/config'
import { Output, type Sink } from './kit/output'

/** The outside of a process, replaceable for tests. */
export interface Outside {
  config: CliConfig
  stdout: Sink
  stderr: Sink
  /** Emitter of the process's signals. */
  signals: Pick<EventEmitter, 'on' | 'off'>
  /** Ends the process immediately. */
  exit(code: number): void
  /** Asks the person at the terminal; missing without one. */
  ask?: ((question: string, signal: AbortSignal) => Promise<string>) | undefined
  now(): number
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** The environment of every command. */
export class Cli {
  readonly out: Output
  readonly environment: Environment
  /** Exit code of the process. */
  exitCode = 0
  #context: Context | undefined
  #interruption: AbortController | undefined
  #onSecond = (): void => {}

  constructor(
    private readonly outside: Outside,
    isJson: boolean,
    schema?: string,
  ) {
    const { stdout, stderr, config } = outside
    this.environment = config.environment
    const { isColourWanted, simulated } = config
    this.out = new Output({ stdout, stderr, isJson, isColourWanted, schema, simulated })
  }

  /** The command with which the user starts this program. */
  get invocation(): string {
    return this.outside.config.invocation
  }

  /** Whether `submit` asks before it spends money, unless a flag says otherwise. Throws `usage` for an unclear setting. */
  get confirmsSubmit(): boolean {
    const { confirmsSubmit } = this.outside.config
    if (confirmsSubmit !== undefined) return confirmsSubmit
    const text = this.environment.CRUCIBLE_SUBMIT_CONFIRM
    throw new CrucibleError('usage', `CRUCIBLE_SUBMIT_CONFIRM is "${text}": write yes or no.`)
  }

  /** The backends whose provider is simulated, so that their prices are never paid. */
  get simulated(): readonly string[] {
    return this.outside.config.simulated
  }

  /** Replaces the commands in a text by the form in which the user starts them: `` `./crucible list` `` in a clone. */
  asCalled(text: string): string {
    return text.replace(/`((?:\w+=[^\s`]* )*)crucible /g, `\`$1${this.invocation} `)
  }

  /** The time by the deployment's clock, once a command has learned it; before that, by this computer's. */
  now(): number {
    return this.#context?.now() ?? this.outside.now()
  }

  /** The time by the server's clock, which durations from now count by; that of `now` while no server answers. */
  async presentTime(): Promise<number> {
    const context = this.context()
    await context.compareClocks().catch(() => undefined)
    return context.now()
  }

  /** Asks a person for consent; `undefined` without a terminal, or if only a document is requested. */
  async confirm(question: string): Promise<boolean | undefined> {
    if (this.out.isJson || this.outside.ask === undefined) return undefined
    const answer = await this.outside.ask(`${question} [y/N] `, this.interruption())
    return /^y(es)?$/i.test(answer.trim())
  }

  /** Ends a command to which a person said no: it did not do what it was asked to do. */
  refused(sentence: string): void {
    this.exitCode = EXIT_CODES.failed
    this.out.line(sentence)
  }

  /** Makes the exit code say that a part of the answer is unknown, and writes the sentence that names it, if there is one. */
  saysUnknown(note?: string): void {
    this.exitCode = EXIT_CODES.unavailable
    if (note !== undefined) this.out.note(this.out.paintNote.yellow(note))
  }

  /** The client's configuration; throws a `CrucibleError` when it cannot be read. */
  clientConfig(): ClientConfig {
    const { readClientConfig } = require('../client/config') as typeof clientConfig
    return readClientConfig(this.environment)
  }

  /** The context for the client's functions: made at first use, closed at the end of the command. */
  context(config?: ClientConfig): Context {
    const { Context: ClientContext } = require('../client/context') as typeof clientContext
    this.#context ??= new ClientContext(config ?? this.clientConfig(), () => this.outside.now(), {
      onNote: (text) => this.out.note(text),
    })
    return this.#context
  }

  /**
   * Aborts at the first Ctrl-C, SIGTERM or hang-up. `onSecond` handles a second one; by default it ends the process immediately.
   */
  interruption(onSecond = (): void => this.outside.exit(EXIT_CODES.interrupted)): AbortSignal {
    if (this.#interruption === undefined) {
      this.#interruption = new AbortController()
      this.#onSecond = onSecond
      for (const name of SIGNALS) this.outside.signals.on(name, this.#onSignal)
    }
    return this.#interruption.signal
  }

  /** Closes the connection and stops listening to signals. */
  async close(): Promise<void> {
    for (const name of SIGNALS) this.outside.signals.off(name, this.#onSignal)
    await this.#context?.close()
  }

  readonly #onSignal = (): void => {
    if (this.#interruption?.signal.aborted === true) return this.#onSecond()
    this.exitCode = EXIT_CODES.interrupted
    this.#interruption?.abort()
  }
}
