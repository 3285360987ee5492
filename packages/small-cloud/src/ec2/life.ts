/** The lifecycle of instances: boot, interruption and end, on request or by the world's rules. */
import type { Clock } from '../clock'
import { rebalanceNotice, spotNotice } from '../machines/metadata'
import type { MachinePool } from '../machines/pool'
import type { Faults, Occasion } from '../world/faults'
import type { Market } from '../world/market'
import { drawMs, type World } from '../world/world'
import type { Lifecycle } from './ec2'
import { Evictions } from './evictions'
import type { LaunchPlan } from './launch-plan'
import { isAlive, stateOf, type Instance, type InstanceState, type Reason, type Region } from './model'
import type { PowerSupply } from './power'
import { BLOCK_ENDED, HARDWARE, NO_KEY, SELF_INITIATED, SPOT_TERMINATION, USER_INITIATED } from './reasons'

/** Machines with less memory register as soon as small ones. */
const REGISTERS_SOON_GIB = 256

export interface LifeParts {
  world: World
  clock: Clock
  faults: Faults
  market: Market
  pool: MachinePool
  power: PowerSupply
  regionOf: (instance: Instance) => Region
}

/** How a spot machine is interrupted. */
export interface Interruption {
  /** Time from the notice to the end; `null` without a notice. */
  noticeMs: number | null
  /** A rebalance recommendation this long before the notice. */
  rebalanceBeforeMs?: number
  /** The last part of the spot request's status: `instance-terminated-...`. */
  cause?: 'no-capacity' | 'by-price' | 'by-service'
}

export class Life implements Lifecycle {
  private readonly evictions: Evictions
  private onAgent: (instance: Instance) => void = () => undefined

  constructor(private readonly parts: LifeParts) {
    this.evictions = new Evictions(parts, (instance, cause) =>
      this.interrupt(instance, { noticeMs: this.draw('notice'), cause }),
    )
  }

  /** Calls the listener when an agent on a machine registers. */
  whenAgentRegisters(listener: (instance: Instance) => void): void {
    this.onAgent = listener
  }

  begin(instance: Instance, { isKeyRefused }: Pick<LaunchPlan, 'isKeyRefused'>): void {
    const { clock, faults } = this.parts
    if (isKeyRefused) {
      clock.after(0, () => void this.end(instance, { reason: NO_KEY, isSudden: true }))
      return
    }
    const failure = faults.first('launch-fails', occasionOf(instance))
    if (failure !== undefined) {
      const reason = { code: failure.reason, message: `${failure.reason}: the launch has failed` }
      clock.after(failure.after, () => void this.end(instance, { reason, isSudden: true }))
      return
    }
    this.comeUp(instance)
  }

  private comeUp(instance: Instance): void {
    this.parts.clock.after(this.draw('pending'), () => {
      if (stateOf(instance) !== 'pending') return
      this.change(instance, 'running')
      this.start(instance)
    })
  }

  halt(instance: Instance, isSudden: boolean): void {
    if (stateOf(instance) !== 'running') return
    this.change(instance, 'stopping', USER_INITIATED)
    void this.haltInTime(instance, isSudden)
  }

  private async haltInTime(instance: Instance, isSudden: boolean): Promise<void> {
    const atLeast = this.parts.pool.pause(this.draw('shuttingDown'))
    await this.parts.pool.turnOff(instance, isSudden)
    await atLeast.over
    if (stateOf(instance) !== 'stopping') return
    this.change(instance, 'stopped', USER_INITIATED)
    this.leavePlace(instance)
  }

  resume(instance: Instance): void {
    if (stateOf(instance) !== 'stopped') return
    delete instance.heldUntilMs
    delete instance.lastConsole
    instance.isImpaired = false
    instance.launchedAtMs = this.parts.clock.nowMs()
    this.change(instance, 'pending')
    this.comeUp(instance)
  }

  /** `isSudden`: without shutting down the operating system first. */
  terminate(instance: Instance, isSudden = false): void {
    if (stateOf(instance) === 'stopped') return void this.finish(instance, USER_INITIATED)
    void this.end(instance, { reason: USER_INITIATED, isSudden })
  }

  reclaim(instance: Instance): void {
    if (stateOf(instance) === 'stopped') return void this.finish(instance, BLOCK_ENDED)
    void this.end(instance, { reason: BLOCK_ENDED, isSudden: false })
  }

  /** Interrupts a spot machine. Does nothing if it has ended or is already being interrupted. */
  interrupt(instance: Instance, { noticeMs, rebalanceBeforeMs, cause = 'no-capacity' }: Interruption): void {
    if (!isAlive(instance) || instance.isMarked) return
    const { clock } = this.parts
    if (rebalanceBeforeMs !== undefined) {
      this.recommendRebalance(instance)
      clock.after(rebalanceBeforeMs, () => this.interrupt(instance, { noticeMs, cause }))
      return
    }
    instance.isMarked = true
    const take = (): void => {
      this.mark(instance, `instance-terminated-${cause}`, 'Your Spot instance was terminated.')
      void this.end(instance, { reason: SPOT_TERMINATION, isSudden: noticeMs === null })
    }
    if (noticeMs === null) return take()
    Object.assign((instance.metadata ??= {}), spotNotice(new Date(clock.nowMs() + noticeMs)))
    this.mark(instance, 'marked-for-termination', 'Your Spot Instance is marked for termination.')
    clock.after(noticeMs, take)
  }

  recommendRebalance(instance: Instance): void {
    Object.assign((instance.metadata ??= {}), rebalanceNotice(new Date(this.parts.clock.nowMs())))
  }

  private start(instance: Instance): void {
    const { faults, power, pool, clock } = this.parts
    const occasion = occasionOf(instance)
    this.evictions.watch(instance)
    this.scheduleFaults(instance, occasion)
    if (faults.first('no-boot', occasion) !== undefined) {
      instance.isImpaired = true
      return
    }
    const hasNoAgent = faults.first('no-agent', occasion) !== undefined
    const machine = power.connect(instance)
    const isWanted = (): boolean => stateOf(instance) === 'running' && instance.machine === machine
    pool.boot(instance, {
      isWanted,
      poweredOff: () => this.poweredOff(instance),
      booted: () => {
        if (hasNoAgent || !power.canReachServices(instance)) return
        const largeGiB = Math.max(0, instance.type.memoryGiB - REGISTERS_SOON_GIB)
        clock.after(this.draw('register') + largeGiB * this.draw('registerPerGiB'), () => {
          if (isWanted() && !instance.isImpaired) this.onAgent(instance)
        })
      },
    })
  }

  private scheduleFaults(instance: Instance, occasion: Occasion): void {
    const { clock, faults, pool } = this.parts
    if (instance.capacity === 'spot')
      for (const { after, notice, isSilent, rebalanceBefore } of faults.strike('interruption', occasion)) {
        const noticeMs = isSilent ? null : (notice ?? this.draw('notice'))
        const earlier = rebalanceBefore === undefined ? {} : { rebalanceBeforeMs: rebalanceBefore }
        clock.after(after, () => this.interrupt(instance, { noticeMs, ...earlier, cause: 'by-service' }))
      }
    for (const { after } of faults.strike('rebalance', occasion))
      clock.after(after, () => this.recommendRebalance(instance))
    pool.scheduleFaults(occasion, {
      crash: () => void this.end(instance, { reason: HARDWARE, isSudden: true }),
      hang: () => {
        if (isAlive(instance)) void pool.hang(instance)
      },
    })
  }

  /** The machine powered itself off. */
  private poweredOff(instance: Instance): void {
    if (!isAlive(instance)) return
    if (instance.shutdownBehavior === 'terminate')
      void this.end(instance, { reason: SELF_INITIATED, isSudden: true })
    else {
      this.change(instance, 'stopping', SELF_INITIATED)
      this.change(instance, 'stopped', SELF_INITIATED)
      this.leavePlace(instance)
    }
  }

  /** Marks the instance as shutting down; the rest follows later. */
  private end(instance: Instance, how: { reason: Reason; isSudden: boolean }): Promise<void> {
    if (['shutting-down', 'terminated'].includes(stateOf(instance))) return Promise.resolve()
    const wasRunning = ['running', 'stopping'].includes(stateOf(instance))
    this.change(instance, 'shutting-down', how.reason)
    return this.endInTime(instance, { ...how, wasRunning })
  }

  private async endInTime(
    instance: Instance,
    { reason, isSudden, wasRunning }: { reason: Reason; isSudden: boolean; wasRunning: boolean },
  ): Promise<void> {
    const stuck = this.parts.faults.first('stuck-shutting-down', occasionOf(instance))
    const atLeast = this.parts.pool.pause(stuck?.for ?? this.draw('shuttingDown'))
    if (wasRunning) await this.parts.pool.turnOff(instance, isSudden)
    await atLeast.over
    await this.finish(instance, reason)
  }

  private async finish(instance: Instance, reason: Reason): Promise<void> {
    this.change(instance, 'terminated', reason)
    this.release(instance)
    this.parts.clock.after(this.draw('terminatedVisible'), () => this.forget(instance))
    await this.parts.pool.discard(instance)
  }

  /** Frees its place in the pool after a delay. */
  private leavePlace(instance: Instance): void {
    instance.heldUntilMs ??= this.parts.clock.nowMs() + this.draw('slotReturn')
  }

  private release(instance: Instance): void {
    const { volumes } = this.parts.regionOf(instance)
    this.leavePlace(instance)
    instance.subnet.used -= 1
    for (const volume of instance.volumes) {
      delete volume.instanceId
      if (volume.isDeletedWithInstance) volumes.delete(volume.id)
    }
    const request = instance.spotRequest
    if (request !== undefined && this.parts.faults.first('request-dangles', occasionOf(instance))) return
    if (request?.state === 'active' && request.status.code === 'fulfilled')
      this.mark(instance, 'instance-terminated-by-user', 'Your Spot Instance was terminated.')
    if (request !== undefined && request.state === 'active') request.state = 'closed'
  }

  private forget(instance: Instance): void {
    const { instances, spotRequests } = this.parts.regionOf(instance)
    instances.delete(instance.id)
    const { spotRequest } = instance
    if (spotRequest !== undefined && spotRequest.state !== 'active') spotRequests.delete(spotRequest.id)
  }

  private mark({ spotRequest }: Instance, code: string, message: string): void {
    if (spotRequest !== undefined) spotRequest.status = { code, message, atMs: this.parts.clock.nowMs() }
  }

  private change(instance: Instance, state: InstanceState, reason?: Reason): void {
    instance.history.push({
      atMs: this.parts.clock.nowMs(),
      state,
      ...(reason === undefined ? {} : { reason }),
    })
  }

  private draw(name: Parameters<typeof drawMs>[1]): number {
    return drawMs(this.parts.world, name)
  }
}

export function occasionOf({ id, region, subnet, type, capacity, place, tags }: Instance): Occasion {
  const where = { service: 'ec2', region, zone: subnet.zone.name, type: type.name }
  return { ...where, capacity: place === undefined ? capacity : 'reserved', tags, instance: id }
}
