import { randomBytes } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { constants } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { untilFound, type EnclosedProcess, type Enclosure, type ProcessEnd } from '../enclosure'
import { innerPid, readProcesses, signalProcesses, type HostProcess } from '../processes'
import { Timer } from '../timer'
import { Journal } from './journal'
import { launchOf, type Ground } from './launch'
import type { ServiceSettings } from './settings'
import type { UnitState } from './unit'

type Result = 'success' | 'exit-code' | 'signal' | 'core-dump' | 'timeout' | 'start-limit-hit'

/** Last lines of a service that the console gets. */
const CONSOLE_LINES = 100
const LOOK_MIN_MS = 10
const LOOK_MAX_MS = 250
/** End states of a main process that systemd considers clean. */
const CLEAN_SIGNALS: readonly (string | null)[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGPIPE']

/** A transient service: its processes carry its invocation id, descend from such processes, or are in their sessions. */
export class Service {
  readonly name: string
  readonly settings: ServiceSettings
  state: UnitState = { active: 'inactive', sub: 'dead' }
  result: Result = 'success'
  private main: EnclosedProcess | undefined
  private mainPid = 0
  private end: ProcessEnd | undefined
  private invocation = ''
  private restarts = 0
  private starts: number[] = []
  private stopping: Promise<void> | undefined
  private running: Promise<void> = Promise.resolve()
  private restarting: Timer | undefined
  private readonly journal: Journal
  /** Resolves when the service will not restart on its own. */
  readonly settled: Promise<void>
  private tellSettled: () => void = () => undefined

  constructor(
    { name, settings }: { name: string; settings: ServiceSettings },
    private readonly ground: Ground,
    /** Called when the service will not restart on its own. */
    private readonly onSettled: (service: Service) => void,
  ) {
    this.name = name
    this.settings = settings
    this.journal = new Journal(ground.journalFile(name))
    this.settled = new Promise((resolve) => (this.tellSettled = resolve))
  }

  get description(): string {
    return this.settings.description ?? this.settings.argv.join(' ')
  }

  private get enclosure(): Enclosure {
    return this.ground.enclosure
  }

  /** Resolves when its main process has been started. */
  async start(): Promise<void> {
    const now = performance.now()
    this.starts = [...this.starts.filter((at) => at > now - this.settings.startLimitIntervalMs), now]
    if (this.starts.length > this.settings.startLimitBurst && this.settings.startLimitBurst > 0)
      return this.settle('start-limit-hit')
    this.invocation = randomBytes(16).toString('hex')
    this.end = undefined
    this.result = 'success'
    this.main = this.journal.write((descriptor) =>
      this.enclosure.run(launchOf(this.settings, this.ground, { invocation: this.invocation, descriptor })),
    )
    this.state = { active: 'active', sub: 'running' }
    this.running = this.main.ended.then((end) => this.mainEnded(end))
    await this.findMain()
  }

  async stop(): Promise<void> {
    this.restarting?.cancel()
    if (this.state.sub === 'auto-restart') return this.settle(this.result)
    if (this.main === undefined) return
    await (this.stopping ??= this.halt())
  }

  /** Sends a signal to its processes without changing its state. */
  async signal(signal: NodeJS.Signals, whom: 'all' | 'main'): Promise<void> {
    signalProcesses(whom === 'all' ? await this.members() : await this.mains(), signal)
  }

  /** Stops all actions, because its machine is off. */
  abandon(): void {
    this.restarting?.cancel()
    this.stopping = Promise.resolve()
    this.main = undefined
    this.tellSettled()
  }

  log(lines: number): string[] {
    return this.journal.tail(lines)
  }

  properties(): Record<string, string> {
    const { end, settings } = this
    return {
      Id: this.name,
      Names: this.name,
      Description: this.description,
      LoadState: 'loaded',
      ActiveState: this.state.active,
      SubState: this.state.sub,
      Result: this.result,
      Type: settings.type,
      Restart: settings.restart,
      NRestarts: String(this.restarts),
      MainPID: String(end === undefined && this.main !== undefined ? this.mainPid : 0),
      ExecMainPID: String(this.mainPid),
      ExecMainCode: end === undefined ? '0' : end.signal === null ? '1' : '2',
      ExecMainStatus: String(end === undefined ? 0 : (end.exitCode ?? constants.signals[end.signal!])),
      InvocationID: this.invocation,
      Transient: 'yes',
      WorkingDirectory: settings.workingDirectory,
    }
  }

  private async findMain(): Promise<void> {
    const found = await untilFound(this.main!)
    this.mainPid = found === undefined ? 0 : innerPid(found.pid)
  }

  private async members(): Promise<HostProcess[]> {
    const table = await readProcesses()
    const mark = `INVOCATION_ID=${this.invocation}`
    const main = this.main?.find(table)?.pid
    return this.enclosure.members(table, (one) => one.pid === main || table.carries(one, mark))
  }

  private async mains(): Promise<HostProcess[]> {
    const main = this.main?.find(await readProcesses())
    return main === undefined ? [] : [main]
  }

  /** Asks its processes to stop, then kills the remaining ones. */
  private async halt(): Promise<void> {
    this.state = { active: 'deactivating', sub: 'stop-sigterm' }
    await this.signal('SIGTERM', this.settings.killMode === 'control-group' ? 'all' : 'main')
    const isInTime = await this.clear()
    await this.running
    this.stopping = undefined
    this.settle(isInTime ? this.resultOfEnd() : 'timeout')
  }

  /** Waits until no process is left, and kills those that take too long. Returns whether all ended in time. */
  private async clear(): Promise<boolean> {
    const { killMode, stopTimeoutMs } = this.settings
    const started = performance.now()
    let isInTime = true
    for (let pollMs = LOOK_MIN_MS; this.main !== undefined && (await this.members()).length > 0;) {
      const isLate = performance.now() - started > stopTimeoutMs
      // With `mixed`, processes that the main process leaves behind are not asked.
      if (isLate || (killMode === 'mixed' && this.end !== undefined)) {
        isInTime &&= !isLate
        this.state = { active: 'deactivating', sub: 'stop-sigkill' }
        await this.signal('SIGKILL', 'all')
      }
      await pause(pollMs)
      pollMs = Math.min(pollMs * 2, LOOK_MAX_MS)
    }
    return isInTime
  }

  /** One descriptor has both outputs of a process: its last lines, whichever it wrote, stand in for its errors. */
  private writeConsole(): void {
    const lines = this.settings.isOnConsole ? this.log(CONSOLE_LINES) : []
    if (lines.length > 0) appendFileSync(this.ground.consoleFile, `${lines.join('\n')}\n`)
  }

  private async mainEnded(end: ProcessEnd): Promise<void> {
    this.end = end
    this.writeConsole()
    if (this.stopping !== undefined || this.main === undefined) return
    const result = this.resultOfEnd()
    this.state = { active: 'deactivating', sub: 'stop-sigterm' }
    if (this.settings.killMode === 'control-group') await this.signal('SIGTERM', 'all')
    await this.clear()
    if (this.stopping !== undefined || this.main === undefined) return
    if (!this.restartsAfter(result)) return this.settle(result)
    this.result = result
    this.state = { active: 'activating', sub: 'auto-restart' }
    this.restarts++
    this.restarting = new Timer(this.settings.restartMs, () => {
      // A restart fails when the machine powers off, or when its files are gone.
      this.start().catch(() => this.settle('exit-code'))
    })
  }

  private resultOfEnd(): Result {
    if (this.end === undefined || this.end.exitCode === 0 || CLEAN_SIGNALS.includes(this.end.signal))
      return 'success'
    return this.end.signal === null ? 'exit-code' : 'signal'
  }

  private restartsAfter(result: Result): boolean {
    const { restart } = this.settings
    return restart === 'always' || (restart === 'on-failure' && result !== 'success')
  }

  private settle(result: Result): void {
    this.result = result
    this.main = undefined
    this.state =
      result === 'success' ? { active: 'inactive', sub: 'dead' } : { active: 'failed', sub: 'failed' }
    this.tellSettled()
    this.onSettled(this)
  }
}
