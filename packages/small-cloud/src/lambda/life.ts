/** The lifecycle of Lambda's instances. */
import { stateOf } from '../machines/history'
import type { SimulatedGpu } from '../machines/nvidia-smi'
import type { ProviderParts } from '../provider'
import type { Occasion } from '../world/faults'
import { drawMs } from '../world/world'
import { ENDED, type LambdaInstance, type LambdaStatus } from './model'
import type { LambdaType } from './types'

export interface LifeParts extends ProviderParts {
  forget: (instance: LambdaInstance) => void
}

export class LambdaLife {
  constructor(private readonly parts: LifeParts) {}

  begin(instance: LambdaInstance): void {
    const { clock, faults } = this.parts
    const failure = faults.first('launch-fails', occasionOf(instance))
    if (failure !== undefined) {
      clock.after(failure.after, () => void this.finish(instance, 'terminated'))
      return
    }
    clock.after(this.draw('pending'), () => this.comeUp(instance))
  }

  private comeUp(instance: LambdaInstance): void {
    if (stateOf(instance) !== 'booting') return
    const { clock, faults, pool } = this.parts
    const occasion = occasionOf(instance)
    for (const { after } of faults.strike('interruption', occasion))
      clock.after(after, () => this.preempt(instance))
    const [unhealthy] = faults.strike('unhealthy', occasion)
    if (unhealthy?.after === 0) return this.change(instance, 'unhealthy')
    if (unhealthy !== undefined) clock.after(unhealthy.after, () => this.sicken(instance, unhealthy))
    this.change(instance, 'active')
    pool.scheduleFaults(occasion, {
      crash: () => this.sicken(instance, { isAlive: false }),
      hang: () => {
        if (stateOf(instance) === 'active') void pool.hang(instance)
      },
    })
    if (faults.first('no-boot', occasion) === undefined) this.powerOn(instance)
    else instance.isImpaired = true
  }

  private powerOn(instance: LambdaInstance): void {
    const { pool } = this.parts
    const machine = pool.connect(instance, {
      userData: instance.userData,
      metadata: {},
      hostname: instance.hostname,
      gpus: gpusOf(instance.type),
      // Lambda Stack has Docker.
      docker: (question) =>
        this.parts.registries.ask(question, { occasion: occasionOf(instance), hasInternet: true }),
    })
    pool.boot(instance, {
      isWanted: () => stateOf(instance) === 'active' && instance.machine === machine,
      // Only the API ends an instance, so this one stays active and billed.
      poweredOff: () => (instance.isImpaired = true),
    })
  }

  /** Boots the machine again, with the same disk. */
  async restart(instance: LambdaInstance): Promise<void> {
    if (!['active', 'unhealthy'].includes(stateOf(instance))) return
    this.change(instance, 'booting')
    await this.parts.pool.turnOff(instance, false)
    if (stateOf(instance) !== 'booting') return
    instance.isImpaired = false
    this.change(instance, 'active')
    this.powerOn(instance)
  }

  async terminate(instance: LambdaInstance): Promise<void> {
    if (isOver(instance)) return
    this.change(instance, 'terminating')
    const { pool, faults } = this.parts
    const stuck = faults.first('stuck-shutting-down', occasionOf(instance))
    const atLeast = pool.pause(stuck?.for ?? this.draw('shuttingDown'))
    await pool.turnOff(instance, false)
    await atLeast.over
    await this.finish(instance, 'terminated')
  }

  /** The provider takes the machine back, without notice. */
  preempt(instance: LambdaInstance): void {
    if (!isOver(instance)) void this.finish(instance, 'preempted')
  }

  private sicken(instance: LambdaInstance, { isAlive }: { isAlive: boolean }): void {
    if (stateOf(instance) !== 'active') return
    this.change(instance, 'unhealthy')
    if (!isAlive) void this.parts.pool.hang(instance)
  }

  private async finish(instance: LambdaInstance, status: 'terminated' | 'preempted'): Promise<void> {
    if (ENDED.includes(stateOf(instance))) return
    this.change(instance, status)
    this.parts.clock.after(this.draw('terminatedVisible'), () => this.parts.forget(instance))
    await this.parts.pool.turnOff(instance, true)
    await this.parts.pool.discard(instance)
  }

  private change(instance: LambdaInstance, state: LambdaStatus): void {
    instance.history.push({ atMs: this.parts.clock.nowMs(), state })
  }

  private draw(name: Parameters<typeof drawMs>[1]): number {
    return drawMs(this.parts.world, name)
  }
}

function isOver(instance: LambdaInstance): boolean {
  return stateOf(instance) === 'terminating' || ENDED.includes(stateOf(instance))
}

function occasionOf({ id, region, type, tags }: LambdaInstance): Occasion {
  return { service: 'lambda', region, type: type.name, capacity: 'on-demand', instance: id, tags }
}

/** Converts `H100 (80 GB PCIe)` to the form of the driver: the name without the size, and the memory in MiB. */
function gpusOf({ gpu, gpus }: LambdaType): SimulatedGpu[] {
  const [, name = gpu, gigabytes = '0'] = /^(.*) \((\d+) GB/.exec(gpu) ?? []
  const memoryMiB = Math.round((Number(gigabytes) * 1e9) / 1024 ** 2)
  return Array.from({ length: gpus }, () => ({ name: `NVIDIA ${name}`, memoryMiB }))
}
