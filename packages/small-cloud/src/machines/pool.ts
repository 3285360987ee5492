/** Runs the machines of any provider. A provider adds its records, its states and its rules. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../clock'
import type { Faults, Occasion } from '../world/faults'
import { MachineDead } from './errors'
import type { Machine, MachineSpec } from './machine'
import { removeJobsOf } from './shared-jobs'

/** A provider's record of a machine. */
export interface Hosted {
  id: string
  /** Whether its processes are dead while its provider still reports it as running. */
  isImpaired: boolean
  machine?: Machine
  /** Final console output of an ended machine. */
  lastConsole?: string
}

export interface PoolParts {
  clock: Clock
  faults: Faults
  /** Folder of the machines' disks. */
  directory: string
  /** The addresses of the services, for programs on a machine. */
  environment: () => Record<string, string>
  createMachine: (spec: MachineSpec) => Machine
  /** Draws a duration: `boot` from power-on to user data; `osShutdown`, the longest shutdown before the power is cut. */
  draw: (name: 'boot' | 'osShutdown') => number
}

/** The parts of a machine that its provider decides. */
export type PoolSpec = Pick<
  MachineSpec,
  'userData' | 'metadata' | 'hopLimit' | 'gpus' | 'docker' | 'hostname' | 'onExit'
>

/** Reactions of a provider to events of a machine. */
export interface PoolRules {
  /** Whether the provider still wants this machine on. */
  isWanted: () => boolean
  /** The machine has powered itself off. */
  poweredOff: () => void
  /** User data has started. */
  booted?: () => void
}

export class MachinePool {
  /** Resolves with the reason when this host turns out to be unable to run a machine. */
  readonly unable: Promise<string>
  private tellUnable: (reason: string) => void = () => undefined

  constructor(private readonly parts: PoolParts) {
    this.unable = new Promise((resolve) => (this.tellUnable = resolve))
  }

  /** Creates the machine of a record without booting it. */
  connect(hosted: Hosted, spec: PoolSpec): Machine {
    const { environment, createMachine, draw } = this.parts
    const machine = createMachine({
      id: hosted.id,
      directory: this.directoryOf(hosted),
      environment: environment(),
      bootMs: draw('boot'),
      ...spec,
    })
    hosted.machine = machine
    return machine
  }

  /** Boots a connected machine in the background. One that ends while its provider wants it counts as impaired. */
  boot(hosted: Hosted, { isWanted, poweredOff, booted }: PoolRules): void {
    const { machine } = hosted
    if (machine === undefined) throw new Error(`machine ${hosted.id} is not connected`)
    machine.onPowerOff((how) => {
      if (how === 'shutdown') poweredOff()
      else hosted.isImpaired = true
    })
    machine.boot().then(
      () => booted?.(),
      (error: Error) => {
        // The machine ended before it was up: either a call has ended it, which is already recorded, or the machine hangs.
        if (isWanted()) hosted.isImpaired = true
        if (!(error instanceof MachineDead))
          this.tellUnable(`A machine cannot run on this host: ${error.message}`)
      },
    )
  }

  /** Plans the faults `crash` and `hang` of a machine that has just started. */
  scheduleFaults(occasion: Occasion, rules: { crash: () => void; hang: () => void }): void {
    const { clock, faults } = this.parts
    for (const kind of ['crash', 'hang'] as const)
      for (const { after } of faults.strike(kind, occasion)) clock.after(after, rules[kind])
  }

  /** Kills all processes of a machine that its provider continues to report as running. */
  async hang(hosted: Hosted): Promise<void> {
    hosted.isImpaired = true
    await hosted.machine?.kill()
  }

  /** Ends every process of a machine; unless `isSudden`, its system shuts down first. */
  async turnOff(hosted: Hosted, isSudden: boolean): Promise<void> {
    const { machine } = hosted
    if (machine === undefined) return
    if (!isSudden && !hosted.isImpaired) {
      const cut = this.pause(this.parts.draw('osShutdown'))
      await Promise.race([machine.shutDown().catch(() => undefined), cut.over])
      cut.cancel()
    }
    await machine.kill()
    hosted.lastConsole = await machine.console().catch(() => '')
  }

  /** Deletes the disk of a machine that was turned off. */
  async discard(hosted: Hosted): Promise<void> {
    if (hosted.machine === undefined) return
    await removeJobsOf(this.directoryOf(hosted))
    await rm(this.directoryOf(hosted), { recursive: true, force: true })
  }

  /** Ends every machine at once when the cloud ends. */
  async stop(all: Iterable<Hosted>): Promise<void> {
    await Promise.all([...all].flatMap(({ machine }) => (machine === undefined ? [] : [machine.kill()])))
  }

  pause(durationMs: number): { over: Promise<void>; cancel: () => void } {
    let cancel = (): void => undefined
    const over = new Promise<void>((resolve) => (cancel = this.parts.clock.after(durationMs, resolve)))
    return { over, cancel: () => cancel() }
  }

  private directoryOf({ id }: Hosted): string {
    return join(this.parts.directory, id)
  }
}
