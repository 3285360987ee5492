import { ProgramError } from '../errors'
import type { Ground } from './launch'
import { Service } from './service'
import type { ServiceSettings } from './settings'

/** The units of one machine. Successful units are forgotten when they end, failed ones are kept until they are reset. */
export class Manager {
  private readonly units = new Map<string, Service>()
  private counter = 0
  private isOff = false

  constructor(private readonly ground: Ground) {}

  /** Returns a name for an unnamed unit. */
  inventName(): string {
    return `run-u${++this.counter}`
  }

  get(name: string): Service | undefined {
    return this.units.get(withSuffix(name))
  }

  all(): Service[] {
    return [...this.units.values()].sort((left, right) => left.name.localeCompare(right.name))
  }

  /** Resolves when the service has been started. Throws if a unit of this name exists. */
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

  /** Forgets a failed unit. */
  reset(unit: Service): void {
    if (unit.state.active === 'failed') this.units.delete(unit.name)
  }

  /** Stops all units when the machine is turned off. */
  async stopAll(): Promise<void> {
    this.isOff = true
    await Promise.all(this.all().map((unit) => unit.stop()))
  }

  /** Cuts the power: no unit acts afterwards. */
  abandon(): void {
    this.isOff = true
    for (const unit of this.units.values()) unit.abandon()
    this.units.clear()
  }

  private refuseMissing({ argv }: ServiceSettings): void {
    if (!this.ground.hasProgram(argv[0]!))
      throw new ProgramError(`Failed to find executable ${argv[0]}: No such file or directory`)
  }

  private refuseTaken(name: string): void {
    if (this.isOff) throw new ProgramError('Failed to start transient unit: the system is shutting down')
    if (this.units.has(name))
      throw new ProgramError(
        `Failed to start transient service unit: Unit ${name} was already loaded or has a fragment file.`,
      )
  }

  private settled(service: Service): void {
    if (service.state.active !== 'failed' || service.settings.isCollected) this.units.delete(service.name)
  }
}

export function withSuffix(name: string): string {
  return name.endsWith('.service') ? name : `${name}.service`
}
