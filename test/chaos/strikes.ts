import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { attemptIdOf, attemptWorkflowId } from '../../core/queues'
import { readMachine } from '../../storage/machines'
import { killMachine, machineProcesses, partsOf, processesOf, signal } from './machines'
import { inWords, type Fault, type Strike } from './plan'
import type { Part } from './part'
import type { Sight } from './sight'
import { startAll, TIMING, type DiskName, type Stage } from './stage'
import { patient } from '../support/patience'

/** A strike that was tried. */
export interface Struck {
  fault: Fault
  process?: Strike['process']
  job: number
  /** The attempt that was the newest; 0 before the first. */
  attempt: number
  /** Wall clock. */
  atMs: number
  untilMs: number
  /** False when there was nothing to strike; then it explains nothing. */
  hasLanded: boolean
  words: string
}

/** Past its lease and its drain a machine has ended on its own; this much later at the latest, on a busy computer. */
const FENCED_SLACK_MS = patient(20_000)
const LOOK_EVERY_MS = 50

/** Strikes as planned: those at one job one after the other, while what is down comes back. */
export class Striker {
  readonly struck: Struck[] = []
  private readonly revivals: Promise<unknown>[] = []

  constructor(
    private readonly stage: Stage,
    private readonly sights: readonly Sight[],
    private readonly signal: AbortSignal,
  ) {}

  async strikeAll(strikes: readonly Strike[]): Promise<void> {
    const chains = this.sights.map((sight, job) =>
      this.strikeOne(
        sight,
        strikes.filter((each) => each.job === job),
      ),
    )
    await Promise.all(chains)
    await Promise.all(this.revivals)
  }

  private async strikeOne(sight: Sight, strikes: readonly Strike[]): Promise<void> {
    for (const strike of strikes) {
      do {
        if (!(await sight.until(strike.moment, this.signal))) {
          this.note(strike, 'the job was over')
          break
        }
        await sleep(strike.afterMs, undefined, { signal: this.signal })
        await this.hit(strike, sight)
        if (strike.isRepeated === true) await sight.until({ on: 'record', kind: 'decided' }, this.signal)
      } while (strike.isRepeated === true && !sight.isOver)
    }
  }

  private async hit(strike: Strike, sight: Sight): Promise<void> {
    const struck = this.note(strike)
    const attemptId = attemptIdOf(sight.jobId, struck.attempt)
    struck.hasLanded = await this.land(strike, sight, { attemptId, struck })
    struck.words += struck.hasLanded ? '' : ' (nothing was there to strike)'
  }

  private note(strike: Strike, remark?: string): Struck {
    const struck: Struck = {
      fault: strike.fault,
      process: strike.process,
      job: strike.job,
      attempt: this.sights[strike.job]!.attempts().at(-1) ?? 0,
      atMs: Date.now(),
      untilMs: Date.now() + strike.ms,
      hasLanded: false,
      words: `${inWords(strike)}${remark === undefined ? '' : ` (${remark})`}`,
    }
    this.struck.push(struck)
    return struck
  }

  private async land(
    strike: Strike,
    sight: Sight,
    { attemptId, struck }: { attemptId: string; struck: Struck },
  ): Promise<boolean> {
    const { parts, provider, context, seam } = this.stage
    switch (strike.fault) {
      case 'kill-orchestrator':
        return this.killPart(parts.orchestrator, strike.ms)
      case 'kill-backend-worker':
        return this.killPart(parts.backendWorker, strike.ms)
      case 'kill-server':
      case 'server-outage':
        return this.killPart(parts.server, strike.ms)
      case 'kill-runner':
        return this.killRunner(strike, attemptId)
      case 'kill-workload':
        return this.killWorkload(sight, struck)
      case 'kill-machine':
        return killMachine(attemptId) > 0
      case 'notice': {
        await this.untilStoreIsBack()
        const machine = await readMachine(context.store, { jobId: sight.jobId, attempt: struck.attempt })
        if (machine === undefined || machineProcesses(attemptId).length === 0) return false
        const noticeMs = strike.ms === 0 ? null : strike.ms
        await provider.interrupt!(machine, { noticeMs }, { signal: this.signal })
        return true
      }
      case 'freeze-machine':
        return this.freeze(attemptId, strike.ms)
      case 'terminate-child':
        return this.terminateChild(sight.jobId, struck.attempt)
      case 'full-store':
        return this.fill('store', strike.ms)
      case 'full-machines':
        return this.fill('machines', strike.ms)
      case 'missing-store':
        // A worker that is about to start would end.
        await Promise.all(this.revivals)
        return this.takeAway(join(this.stage.home, 'store'), strike.ms)
      case 'disturb-provider':
        seam.arm(strike.disturbance!)
        return true
      case 'blackout':
        await this.blackOut()
        struck.untilMs = Date.now()
        return true
    }
  }

  private async killPart(part: Part, downMs: number): Promise<boolean> {
    if (!(await part.kill())) return false
    this.later(this.reviveAfter(part, downMs))
    return true
  }

  /** Waited for at the end; if the run is given up before that, its outcome does not matter. */
  private later(revival: Promise<unknown>): void {
    revival.catch(() => undefined)
    this.revivals.push(revival)
  }

  private async reviveAfter(part: Part, downMs: number): Promise<void> {
    await sleep(downMs, undefined, { signal: this.signal })
    await this.untilStoreIsBack()
    await part.start()
  }

  private killRunner({ process: which }: Strike, attemptId: string): boolean {
    const { guard, runner, leash } = partsOf(attemptId)
    const victims = {
      runner: [runner],
      guard: [guard],
      both: [guard, runner],
      leash: [leash],
    }[which!]
    const living = victims.filter((each) => each !== undefined)
    for (const { pid } of living) signal(pid, 'SIGKILL')
    return living.length > 0
  }

  /** Only what has written that it lives, and not yet that it has ended. */
  private killWorkload(sight: Sight, struck: Struck): boolean {
    const last = sight.journal().at(-1)
    if (last === undefined || last.event === 'end') return false
    struck.attempt = last.attempt
    const machine = attemptIdOf(sight.jobId, last.attempt)
    const isAlive = machineProcesses(machine).some(({ pid }) => pid === last.pid)
    return isAlive && signal(last.pid, 'SIGKILL')
  }

  private freeze(attemptId: string, ms: number): boolean {
    const frozen = machineProcesses(attemptId).map(({ pid }) => pid)
    for (const pid of frozen) signal(pid, 'SIGSTOP')
    const thaw = async (): Promise<void> => {
      try {
        await sleep(ms, undefined, { signal: this.signal })
      } finally {
        for (const pid of frozen) signal(pid, 'SIGCONT')
      }
    }
    this.later(thaw())
    return frozen.length > 0
  }

  private async terminateChild(jobId: string, attempt: number): Promise<boolean> {
    try {
      const client = await this.stage.context.temporal()
      await client.workflow.getHandle(attemptWorkflowId(jobId, attempt)).terminate('by hand')
      return true
    } catch {
      // It is over, or the server is down.
      return false
    }
  }

  private fill(name: DiskName, ms: number): boolean {
    const disk = this.stage.disks.get(name)
    if (disk === undefined) return false
    const freeing = new AbortController()
    const waiting = sleep(ms, undefined, { signal: this.signal }).finally(() => freeing.abort())
    this.later(waiting)
    this.later(disk.fill(freeing.signal))
    return true
  }

  private awayOf(folder = join(this.stage.home, 'store')): string {
    return `${folder}.away`
  }

  /** A worker does not start without its store, and neither does this harness find a machine. */
  private async untilStoreIsBack(): Promise<void> {
    while (existsSync(this.awayOf())) await sleep(LOOK_EVERY_MS, undefined, { signal: this.signal })
  }

  /** The folder is gone for a while, as an unmounted disk is. A disk of its own cannot be renamed. */
  private takeAway(folder: string, ms: number): boolean {
    const away = this.awayOf(folder)
    if (this.stage.disks.has('store') || existsSync(away)) return false
    renameSync(folder, away)
    const back = (): void => {
      if (existsSync(folder)) this.stage.failures.push('the missing store was made anew')
      else renameSync(away, folder)
    }
    this.later(sleep(ms, undefined, { signal: this.signal }).finally(back))
    return true
  }

  /** All of Crucible and the server are down until every machine has drained and ended on its own; then they come back. */
  private async blackOut(): Promise<void> {
    await Promise.all(this.revivals)
    const { parts, home, failures } = this.stage
    await Promise.all([parts.orchestrator.kill(), parts.backendWorker.kill(), parts.server.kill()])
    const { leaseShortMs, drainMs, powerOffMs } = TIMING
    const untilMs = performance.now() + leaseShortMs + drainMs + powerOffMs + FENCED_SLACK_MS
    while (processesOf(home).some(({ machine }) => machine !== undefined)) {
      if (performance.now() > untilMs) {
        failures.push('a machine still runs long after its lease has lapsed')
        break
      }
      await sleep(LOOK_EVERY_MS, undefined, { signal: this.signal })
    }
    await this.untilStoreIsBack()
    await startAll(this.stage)
  }
}
