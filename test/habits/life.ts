import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MachineWatch } from '../../activities/watch/machine'
import type { AttemptEnd } from '../../core/job/ledger'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { decide } from '../../planner/policy/decide'
import { layout } from '../../storage/layout'
import { makeOrder } from '../backends/orders'
import { machineProcesses, World, type Machine } from '../runner/world'
import type { Habit } from './habits'
import { HeldSaves } from './held'
import { judgeLife, type Breach } from './judge'
import { monotonicMs, Notes } from './notes'
import { strikesOf, type Strike, type Struck } from './strikes'
import { patient } from '../support/patience'

/** What the orders say: a tenth to a quarter of what the product's say, as the saves are closer to each other. */
const QUIET_MS = 400
const BEAT_MS = 200
const DRAIN_MS = 10_000
const POWER_OFF_MS = 4_000
/** A machine outlives this program by this long, if the program is killed. */
const LEASE_MS = 120_000
/**
 * A save that was finished this long before the end of its machine must have arrived: the quiet time, the looks of the runner on both
 * sides of it (half a second each), and half a second for a note that comes late.
 */
const SETTLE_MS = 2_000
/** What looking, copying and uploading take of a processor: as many times longer as processes wait for each. */
const SETTLE_WORK_MS = 500
/** Nothing takes this long unless it is stuck, on an idle machine. */
const STUCK_MS = 90_000
/** A strike that waits for a save that does not come falls this long after the start of the program. */
const LATEST_MS = 15_000
const NOTES_EVERY_MS = 15
const LOOK_EVERY_MS = 250
/** A life whose programs fail again and again is given up after this many attempts more than it has interruptions. */
const SPARE_ATTEMPTS = 6
/** What the last attempt trains: two saves, and some steps. */
const LAST_STEPS = 24

const OFFER: Offer = {
  backend: 'local',
  capacityType: 'spot',
  type: 'process',
  place: 'here',
  shape: { cpus: 1, memoryGiB: 1, gpus: 0 },
  priceMicroUsdPerHour: microUsd(0),
  priceSource: { kind: 'configured', observedAtMs: 0 },
  availability: 'available',
}
const POLICY = { failuresMax: 0, interruptionsMax: 1_000, unclassifiedMax: 3 }

/** A program ready to be run: the files of its bundle, and its command. */
export interface Program {
  files: Record<string, string>
  run: string
  env: Record<string, string>
}

export interface LifeOptions {
  /** The runner's zipapp. */
  runner: string
  /** Puts the right Python first. */
  path: string
  habit: Habit
  program: Program
  seed: number
  kills: number
}

export interface LifeReport {
  habit: string
  seed: number
  kills: number
  resumes: number
  saves: number
  uploads: number
  savesLostMax: number
  breaches: Breach[]
  /** What the runner said and the program noted; empty for a life without a breach. */
  story: string
}

/** One job from its first attempt to its end: the real runner, and this process in the place of the control plane and the provider. */
export async function live(options: LifeOptions): Promise<LifeReport> {
  const { habit, seed } = options
  const jobId = `habit-${habit.name.replaceAll('_', '-')}-${seed}-${process.pid}`
  const world = new World(options.runner, undefined, jobId)
  const abandon = (): void => {
    for (const { id } of world.machines)
      for (const { pid } of machineProcesses(id)) process.kill(pid, 'SIGKILL')
  }
  // A program that is stopped leaves no machines behind.
  process.once('exit', abandon)
  try {
    return await new Life(options, world).live()
  } finally {
    process.removeListener('exit', abandon)
    for (const machine of world.machines) await destroy(machine)
    world.dispose()
  }
}

class Life {
  readonly #notes: Notes
  readonly #held: HeldSaves
  readonly #struck: Struck[] = []
  readonly #strikes: Strike[]
  readonly #story: string[] = []
  readonly #breaches: Breach[] = []
  #failure: { attempt: number; words: string } | undefined
  #hasWarned = false

  constructor(
    private readonly options: LifeOptions,
    private readonly world: World,
  ) {
    world.environment['PATH'] = options.path
    const folder = join(world.folder, 'notes')
    mkdirSync(folder)
    this.#notes = new Notes(join(folder, 'notes.ndjson'))
    this.#held = new HeldSaves(world.store, world.jobId)
    const { habit, seed, kills } = options
    this.#strikes = strikesOf(seed + hashOf(habit.name), kills, habit.saveMs ?? 300)
  }

  async live(): Promise<LifeReport> {
    const { habit, seed, kills } = this.options
    let isOver = false
    for (let attempt = 1; !isOver; attempt++) isOver = await this.#attempt(attempt)
    const judgement = judgeLife({
      notes: this.#notes.all,
      struck: this.#struck,
      failure: this.#failure,
      isSavedElsewhere: habit.warns === true ? true : undefined,
    })
    const breaches = [...this.#breaches, ...judgement.breaches, ...this.#held.breaches]
    if (habit.warns === true && !this.#hasWarned)
      breaches.push({
        kind: 'silent',
        attempt: 1,
        words: 'no word was said of a program that saves nothing here',
      })
    return {
      habit: habit.name,
      seed,
      kills: this.#struck.length,
      resumes: judgement.resumes,
      saves: this.#notes.all.filter(({ event }) => event === 'saved').length,
      uploads: this.#held.uploads,
      savesLostMax: judgement.savesLostMax,
      breaches,
      story: breaches.length === 0 && kills > 0 ? '' : this.#story.join('\n'),
    }
  }

  /** One attempt to its end. True when the job is over with it. */
  async #attempt(attempt: number): Promise<boolean> {
    const strike = this.#strikes[this.#struck.length]
    const { program, habit, kills } = this.options
    // As on the machines of the product, all attempts have one path.
    const jobRoot = join(this.world.folder, 'jobs', 'habit')
    const wanted = {
      attempt,
      run: program.run,
      bundle: await this.world.bundle(program.files),
      env: {
        ...program.env,
        HABIT_NOTES: join(this.world.folder, 'notes'),
        ...(strike === undefined && { HABIT_STEPS_LEFT: String(habit.lastSteps ?? LAST_STEPS) }),
      },
      checkpoint: {
        directory: habit.directory ?? null,
        everyMs: 0,
        quietMs: habit.quietMs ?? QUIET_MS,
        keep: 3,
      },
      beatMs: BEAT_MS,
      drainMs: DRAIN_MS,
      leaseMs: LEASE_MS,
      notice: { kind: 'file' as const, path: this.#noticePath(attempt) },
    }
    const machine = await this.world.launch(wanted, '--job-root', jobRoot)
    const end = await this.#attend(machine, strike)
    await destroy(machine)
    this.#notes.read()
    await this.#held.lookAgain(this.#notes.all, attempt)
    await this.#tell(machine, end)
    if (end === undefined) {
      this.#breaches.push({
        kind: 'stuck',
        attempt,
        words: `nothing came of it within ${STUCK_MS / 1_000} s`,
      })
      return true
    }
    const facts = { end, drainReason: null, offerKeys: [], ledger: EMPTY_LEDGER, policy: POLICY }
    const { decision } = decide(facts)
    if (decision.kind === 'finish') {
      if (decision.state !== 'succeeded') this.#failure = { attempt, words: decision.message }
      return true
    }
    if (attempt < kills + SPARE_ATTEMPTS) return false
    this.#failure = { attempt, words: `gave up after ${attempt} attempts: ${decision.message}` }
    return true
  }

  /** Watches a machine as the product does until its attempt is over, and strikes when the time has come. */
  async #attend(machine: Machine, strike: Strike | undefined): Promise<AttemptEnd | undefined> {
    const watch = this.#watch(machine.attempt)
    const beganMs = monotonicMs()
    let lookedMs = 0
    let isGone = false
    machine.guard.once('exit', () => (isGone = true))
    let endsAtMs = Infinity
    let isStruck = false
    while (monotonicMs() - beganMs < patient(STUCK_MS)) {
      this.#notes.read()
      if (strike !== undefined && !isStruck && !isGone && monotonicMs() >= this.#momentOf(machine, strike)) {
        isStruck = true
        endsAtMs = await this.#strike(machine, strike)
        isGone ||= strike.manner === 'kill'
      }
      if (monotonicMs() >= endsAtMs && !isGone) {
        await destroy(machine)
        isGone = true
      }
      if (monotonicMs() - lookedMs >= LOOK_EVERY_MS) {
        const outcome = await watch.check(
          isGone ? { state: 'gone', cause: 'interrupted' } : { state: 'running' },
          true,
        )
        await this.#held.look(this.#notes.all, machine.attempt)
        lookedMs = monotonicMs()
        if (outcome?.kind === 'over') return outcome.end
      }
      await sleep(NOTES_EVERY_MS)
    }
    return undefined
  }

  #momentOf({ attempt }: Machine, { after, nth, delayMs }: Strike): number {
    const notes = this.#notes.of(attempt)
    const note = notes.filter(({ event }) => event === after)[nth - 1]
    if (note !== undefined) return note.atMs + delayMs
    return (notes[0]?.atMs ?? Infinity) + LATEST_MS
  }

  /** Returns when the machine will be gone. */
  async #strike(machine: Machine, { manner, windowMs }: Strike): Promise<number> {
    const { attempt } = machine
    const atMs = monotonicMs()
    const untilMs = atMs + windowMs
    const settleMs = (this.options.habit.settleMs ?? SETTLE_MS) + patient(SETTLE_WORK_MS)
    this.#struck.push({ attempt, manner, atMs, untilMs, settleMs })
    this.#story.push(`${at(atMs)} attempt ${attempt}: ${manner}${windowMs > 0 ? ` with ${windowMs} ms` : ''}`)
    if (manner === 'kill') await destroy(machine)
    else if (manner === 'drain') await this.world.drain(attempt, { reason: 'migrated', windowMs })
    else {
      const path = this.#noticePath(attempt)
      writeFileSync(`${path}.new`, JSON.stringify({ terminateAtMs: Date.now() + windowMs }))
      renameSync(`${path}.new`, path)
    }
    // Only the machine itself ends after a drain request; one that does not is ended a while after its window.
    return manner === 'drain' ? untilMs + POWER_OFF_MS : untilMs
  }

  #watch(attempt: number): MachineWatch {
    const { store, jobId } = this.world
    const order = makeOrder({ store, offers: [OFFER], jobId, attempt })
    const realised = {
      capacityType: 'spot' as const,
      type: 'process',
      place: 'here',
      priceMicroUsdPerHour: microUsd(0),
    }
    return new MachineWatch(
      { store, now: Date.now, monotonicMs: () => performance.now(), backend: {} },
      {
        order,
        handle: {
          backend: 'local',
          kind: 'machine',
          id: order.attemptId,
          attemptId: order.attemptId,
          realised,
          launchedAtMs: Date.now(),
        },
        timing: { ...DEFAULT_TIMING, leaseMs: LEASE_MS, goneConfirmMs: 0 },
        isRunning: false,
      },
    )
  }

  #noticePath(attempt: number): string {
    return join(this.world.folder, `notice-${attempt}.json`)
  }

  async #tell(machine: Machine, end: AttemptEnd | undefined): Promise<void> {
    const remarks = await machine.remarks()
    if (WARNING.test(remarks)) this.#hasWarned = true
    const notes = this.#notes.of(machine.attempt).filter(({ event }) => event !== 'step')
    for (const note of notes) {
      const said = Object.entries(note).filter(([key]) => !['attempt', 'pid', 'atMs', 'files'].includes(key))
      this.#story.push(`${at(note.atMs)} ${said.map(([key, value]) => `${key} ${String(value)}`).join(', ')}`)
    }
    if (remarks === '') this.#story.push(machine.console.replaceAll(/^/gm, '  console: '))
    const { store, jobId } = this.world
    const restores = await store.get(layout.restores(jobId, machine.attempt))
    if (restores !== undefined) this.#story.push(`  restores: ${restores.toString()}`)
    this.#story.push(
      remarks.replaceAll(/^/gm, '  runner: '),
      `attempt ${machine.attempt} ended: ${JSON.stringify(end)}`,
    )
  }
}

/** What is said of a program that saves nothing where it is looked for. */
const WARNING = /no (complete )?checkpoint|nothing was written/i

function at(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`
}

/** Ends a machine as a loss of power does: the runner before the program, so that it cannot make anything of its end. */
async function destroy(machine: Machine): Promise<void> {
  for (;;) {
    const living = machineProcesses(machine.id)
    const isOwn = ({ pid, parent }: { pid: number; parent: number }): boolean =>
      pid === machine.guard.pid || parent === machine.guard.pid
    for (const { pid } of [...living.filter(isOwn), ...living.filter((each) => !isOwn(each))]) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended meanwhile.
      }
    }
    if (living.length === 0) break
    await sleep(5)
  }
  await machine.exited
}

function hashOf(text: string): number {
  return [...text].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 100_003, 7)
}
