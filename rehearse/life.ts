import { setTimeout as sleep } from 'node:timers/promises'
import type { Host, Machine, Part } from './host'
import type { RehearsedAttempt } from './seen'
import { AttemptWatch } from './watch'

export interface RehearsalOptions {
  host: Host
  directory: string | null
  /** Time limit, unless the program saves so rarely that one resume takes longer. */
  forMs: number
  /** Absolute time limit; `forMs` if missing. */
  mostMs?: number
  interruptions: number
  now: () => number
  /** Progress, one sentence at a time. */
  say: (words: string) => void
  signal: AbortSignal
}

/** One job of the rehearsal: gets its machines, watches them, and interrupts them. */
export abstract class Life {
  protected readonly attempts: RehearsedAttempt[] = []
  protected endAtMs: number
  private jobId = ''
  private launched = 0
  private isStopped = false

  constructor(
    protected readonly options: RehearsalOptions,
    private readonly part: Part,
    protected readonly beganAtMs: number,
  ) {
    this.endAtMs = beganAtMs + options.forMs
  }

  protected async asJob<T>(work: () => Promise<T>): Promise<T> {
    this.jobId = await this.options.host.begin(this.part)
    try {
      return await work()
    } finally {
      await this.options.host.end(this.jobId)
    }
  }

  /**
   * Gets the next machine that runs the program, and watches it until it is gone. `attend` chooses the moment of the interruption. Returns
   * `undefined` if the job gets no other machine.
   */
  protected async attempt(
    attend: (watch: AttemptWatch, machine: Machine) => Promise<void>,
  ): Promise<Attended | undefined> {
    const { host, signal } = this.options
    for (;;) {
      signal.throwIfAborted()
      const machine = await host.next(this.jobId, this.launched, this.endAtMs)
      if (machine === undefined) return undefined
      this.launched = machine.attempt
      const watch = await this.follow(machine, attend)
      if (!watch.hasSpoken && watch.seen.strike === null && host.sight === 'store') continue
      this.attempts.push(watch.seen)
      return { seen: watch.seen, watch }
    }
  }

  /** Ends the job with its machine: the rehearsal has seen enough. */
  protected stop(machine: Machine): Promise<void> {
    this.isStopped = true
    return this.options.host.stop(machine)
  }

  private async follow(
    machine: Machine,
    attend: (watch: AttemptWatch, machine: Machine) => Promise<void>,
  ): Promise<AttemptWatch> {
    const { host, now, signal } = this.options
    const watch = new AttemptWatch(host, machine, now)
    let goneLookAtMs = 0
    try {
      for (;;) {
        signal.throwIfAborted()
        await watch.poll()
        await attend(watch, machine)
        if (now() - goneLookAtMs >= host.pace.goneMs) {
          if (await host.isGone(machine)) break
          goneLookAtMs = now()
        }
        await sleep(host.pace.pollMs)
      }
      await watch.finish()
      if (!this.isStopped) this.noteProvider(watch)
      return watch
    } finally {
      await host.clear(machine)
    }
  }

  /** An interruption by the provider itself counts, too. */
  private noteProvider({ seen, hasSpoken }: AttemptWatch): void {
    const { host, say } = this.options
    const isTaken = seen.end === null || seen.end.reason === 'interrupted'
    if (host.sight === 'folder' || seen.strike !== null || !hasSpoken || !isTaken) return
    const manner = seen.end === null ? 'kill' : 'notice'
    seen.strike = { moment: 'between-saves', manner, isAtMoment: false, atMs: seen.endedAtMs, noticeMs: 0 }
    say('The provider interrupted the machine, which counts.')
  }
}

export interface Attended {
  seen: RehearsedAttempt
  watch: AttemptWatch
}
