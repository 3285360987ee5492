/** A small cloud that speaks AWS's wire protocols on loopback. */
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { assemble, type Assembly } from './assemble'
import { WallClock, type Clock } from './clock'
import type { AccountSummary } from './account'
import type { InstanceSummary } from './control'
import type { ReservationSummary } from './ec2/reservation-control'
import { Wires } from './ec2/wires'
import { Kms } from './identity/kms'
import type { Journal } from './journal'
import type { Machine, MachineSpec } from './machines/machine'
import type { StartFront } from './store-front'
import { WireServer } from './wire/server'
import { faultSchema, type FaultRule, type FaultText } from './world/fault-schema'
import { loadWorld, planWorld } from './world/load'
import type { ReservationText } from './world/capacity-schema'
import type { WorldText } from './world/schema'
import { makeWorld } from './world/world'

export type { FaultText } from './world/fault-schema'
export type { ReservationText } from './world/capacity-schema'
export type { WorldText } from './world/schema'
export { WorldError } from './world/load'
export { checkHost } from './machines/machine'
export { DrivenClock, type Clock } from './clock'
export type { JournalEntry } from './journal'
export type { StartFront, StoreFront, StoreFrontOptions } from './store-front'

export interface CloudOptions {
  /** The path of a world file, or a world; default: the built-in one. */
  world?: string | WorldText
  /** Port of the services; default: a free one. */
  port?: number
  /** Port of the object store; default: a free one. */
  storePort?: number
  /** Folder of the machines' disks. By default the cloud creates one and removes it at its end. */
  directory?: string
  /** Default: real processes. */
  createMachine?: (spec: MachineSpec) => Machine
  /** Default: the wall clock. */
  clock?: Clock
  /** Starts the object store; without this function the cloud has no store. */
  startFront?: StartFront
}

export interface Cloud {
  /** The address of all services, including S3 if there is a store: `http://127.0.0.1:PORT`. */
  readonly endpoint: string
  /** The address of the object store. */
  readonly storeEndpoint?: string
  /** Resolves with the reason when the object store's server has ended permanently, or this host cannot run machines. */
  readonly ended: Promise<string | undefined>
  /** The first region of the world. */
  readonly region: string
  /** The keys of the user `test`, drawn at the start unless the world has them. */
  readonly credentials: { accessKeyId: string; secretAccessKey: string }
  /** The bearer token for requests below `/_sim/` and for Modal's control plane. */
  readonly controlKey: string
  /** The other providers by name: `endpoint`, the base address of the API, and the other values that a client needs. */
  readonly providers: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly journal: Journal
  /** Adds a rule; returns a function that ends it. */
  addFault(rule: FaultText): () => void
  /** Returns every rule of the world and of `addFault`, with the number of times it has struck. */
  faults(): { rule: FaultRule; struck: number }[]
  instances(): InstanceSummary[]
  reservations(): ReservationSummary[]
  /** Gives the account a reservation; relative times count from now. */
  reserve(reservation: ReservationText): ReservationSummary
  /** Extends a Capacity Block: to a duration from now, or to an instant. */
  extend(reservation: string, ends: number | string): void
  /** Lets AWS end a Capacity Block earlier: at a duration from now, or at an instant. */
  shorten(reservation: string, ends: number | string): void
  /** Lets AWS take a reservation back at once; the instances of a Capacity Block end with it. */
  withdraw(
    reservation: string,
    how?: { state?: 'cancelled' | 'failed' | 'unavailable'; refundUsd?: number },
  ): void
  /** Returns the account's resources except machines: roles, profiles, networks, templates. */
  account(): AccountSummary
  /** Points a public parameter to another image, which is created if it does not exist. */
  publishImage(publication: { name: string; image: string }): void
  /** Takes a machine back as its provider would (of EC2, a spot machine): after a notice, or at once without one. */
  interrupt(
    instance: string,
    how?: { noticeMs?: number; isSilent?: boolean; rebalanceBeforeMs?: number },
  ): void
  /** Ends all machines, the store and the server. Returns when no process of the cloud is left. */
  stop(): Promise<void>
}

/** Starts a cloud. Throws `WorldError` for an invalid world. */
export async function startCloud(options: CloudOptions = {}): Promise<Cloud> {
  const loaded =
    typeof options.world === 'string'
      ? loadWorld(options.world)
      : { plan: planWorld(options.world ?? {}), directory: process.cwd() }
  const wall = new WallClock(loaded.plan.ahead)
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'crucible-sim-')))
  // The user of machines may be another one.
  if (options.directory === undefined) await chmod(directory, 0o711)
  const undo = async (): Promise<void> => {
    wall.stop()
    if (options.directory === undefined) await rm(directory, { recursive: true, force: true })
  }
  try {
    await mkdir(directory, { recursive: true })
    const running = await run(
      assemble({ options, directory, clock: options.clock ?? wall, world: makeWorld(loaded) }),
      options,
    )
    return {
      ...running,
      stop: async () => {
        // After this call no scheduled action starts.
        wall.stop()
        await running.stop()
        await undo()
      },
    }
  } catch (error) {
    await undo()
    throw error
  }
}

/** Serves an assembled cloud over HTTP. */
async function run(parts: Assembly, { port = 0, storePort = 0, startFront }: CloudOptions): Promise<Cloud> {
  const { addresses, keys, world, identities, faults, clock, control, ec2, pool, journal } = parts
  const server = new WireServer({
    dispatch: parts.dispatch,
    aheadMs: world.ahead,
    fronts: parts.fronts,
    controlKey: keys.control,
    control: (path, method, body) => control.handle(path, method, body),
    store: startFront && ((request, response) => addresses.store?.handle(request, response)),
  })
  const endpoint = `http://127.0.0.1:${await server.listen(port)}`
  addresses.services = endpoint
  const region = [...world.regions.keys()][0]!
  const { account, ahead: aheadMs } = world
  const kms = new Kms(world, identities)
  const wires = new Wires(world, () => ec2.instances())
  const limitsOf = world.throughput === undefined ? undefined : (client: Socket) => wires.limitsOf(client)
  const front = { port: storePort, region, account, identities, faults, clock, aheadMs, kms, limitsOf }
  const store = await startFront?.(front).catch(async (error: unknown) => {
    await server.close()
    throw error
  })
  if (store !== undefined) addresses.store = store
  return {
    endpoint,
    ...(store === undefined ? {} : { storeEndpoint: store.endpoint }),
    ended: Promise.race([pool.unable, ...(store === undefined ? [] : [store.ended])]),
    region,
    credentials: { ...identities.credentials },
    controlKey: keys.control,
    providers: Object.fromEntries(
      parts.providers.map(({ service: { name }, credentials }) => [
        name,
        { endpoint: `${endpoint}/_${name}`, ...credentials },
      ]),
    ),
    journal,
    addFault: (rule) => faults.add(faultSchema.parse(rule)),
    faults: () => faults.told(),
    instances: () => control.instances(),
    reservations: () => control.reservations.list(),
    reserve: (reservation) => control.reservations.add(reservation),
    extend: (reservation, ends) => control.reservations.extend({ reservation, ends }),
    shorten: (reservation, ends) => control.reservations.shorten({ reservation, ends }),
    withdraw: (reservation, how = {}) => control.reservations.withdraw({ reservation, ...how }),
    account: () => control.account(),
    publishImage: (publication) => control.publish(publication),
    interrupt: (instance, { noticeMs, isSilent, rebalanceBeforeMs } = {}) =>
      control.interrupt({ instance, notice: noticeMs, isSilent, rebalanceBefore: rebalanceBeforeMs }),
    stop: async () => {
      const hosted = [ec2.instances(), ...parts.providers.map((each) => each.hosted())]
      await Promise.all([server.close(), ...hosted.map((each) => pool.stop(each))])
      await store?.stop()
    },
  }
}
