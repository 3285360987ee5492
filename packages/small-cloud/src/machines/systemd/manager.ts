import { ProgramError } from '../errors'
import type { Ground } from './launch'
import { Service } from './service'
import type { ServiceSettings } from './settings'
import { TimerUnit, type TimerSettings } from './timer-unit'
import type { Unit } from './unit'

export interface TransientTimer {
  name: string
  settings: TimerSettings
  service: ServiceSettings
}

/** The units of one machine. Those that have ended well are forgotten, those that failed are kept until they are reset. */
export class Manager {
  private readonly units = new Map<string, Unit>()
  private counter = 0
  private isOff = false

  constructor(
    private readonly ground: Ground,
    /** Turns the machine off in good order. */
    private readonly powerOff: () => void,
  ) {}

  /** A name for a unit that was given none. */
  inventName(): string {
    return `run-u${++this.counter}`
  }

  get(name: string): Unit | undefined {
    return this.units.get(withSuffix(name))
  }

  all(): Unit[] {
    return [...this.units.values()].sort((left, right) => left.name.localeCompare(right.name))
  }

  /** Resolves when it has been started. Throws when there is one of this name already. */
  async startService(name: string, settings: ServiceSettings): Promise<Service> {
    this.refuseTaken(name)
    this.refuseMissing(settings)
    const service = new Service({ name, settings }, this.ground, (one) => this.settled(one))
    this.units.set(name, service)
    try {
      await service.start()
    } catch (error) {
      this.units.delete(name)
      throw error
    }
    return service
  }

  startTimer({ name, settings, service }: TransientTimer): TimerUnit {
    const serviceName = name.replace(/\.timer$/, '.service')
    this.refuseTaken(name)
    this.refuseTaken(serviceName)
    this.refuseMissing(service)
    const timer = new TimerUnit(name, settings, (isLast) => {
      if (isLast) this.units.delete(name)
      // One that still runs from the last time is left alone.
      if (this.units.get(serviceName)?.state.active !== 'active') this.trigger(serviceName, service)
    })
    this.units.set(name, timer)
    return timer
  }

  async stop(unit: Unit): Promise<void> {
    await unit.stop()
    if (unit instanceof TimerUnit) this.units.delete(unit.name)
  }

  /** Stops a service and starts it anew, or has a timer count from the beginning. */
  async restart(unit: Unit): Promise<void> {
    if (unit instanceof TimerUnit) return unit.restart()
    await unit.stop()
    this.units.delete(unit.name)
    if (unit instanceof Service) await this.startService(unit.name, unit.settings)
  }

  /** Forgets a failed unit. */
  reset(unit: Unit): void {
    if (unit.state.active === 'failed') this.units.delete(unit.name)
  }

  /** Stops everything, as when the machine is turned off. */
  async stopAll(): Promise<void> {
    this.isOff = true
    await Promise.all(this.all().map((unit) => unit.stop()))
  }

  /** The power is gone: nothing of it acts any more. */
  abandon(): void {
    this.isOff = true
    for (const unit of this.units.values())
      if (unit instanceof Service || unit instanceof TimerUnit) unit.abandon()
    this.units.clear()
  }

  private trigger(name: string, settings: ServiceSettings): void {
    if (this.isOff) return
    this.units.delete(name)
    // Whoever would have been told is long gone.
    this.startService(name, settings).catch(() => undefined)
  }

  private refuseMissing({ argv }: ServiceSettings): void {
    if (!this.ground.hasProgram(argv[0]!))
      throw new ProgramError(`Failed to find executable ${argv[0]}: No such file or directory`)
  }

  private refuseTaken(name: string): void {
    if (this.isOff) throw new ProgramError('Failed to start transient unit: the system is shutting down')
    if (this.units.has(name))
      throw new ProgramError(
        `Failed to start transient ${name.endsWith('.timer') ? 'timer' : 'service'} unit: Unit ${name} was already loaded or has a fragment file.`,
      )
  }

  private settled(service: Service): void {
    const hasFailed = service.state.active === 'failed'
    if (!hasFailed || service.settings.isCollected) this.units.delete(service.name)
    if (this.isOff) return
    const action = hasFailed ? service.settings.failureAction : service.settings.successAction
    if (action === 'poweroff') this.powerOff()
  }
}

export function withSuffix(name: string, suffix = '.service'): string {
  return /\.(?:service|timer)$/.test(name) ? name : `${name}${suffix}`
}
