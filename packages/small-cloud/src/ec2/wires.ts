/** The speed at which machines of EC2 exchange data with the object store. */
import type { Socket } from 'node:net'
import { clientOf } from '../machines/hops'
import { Limit, type Limits } from '../s3/pace'
import type { World } from '../world/world'
import type { Instance } from './model'

const BYTES_PER_MIB = 2 ** 20
const BYTES_PER_MB = 1e6
const BYTES_PER_GBIT = 1e9 / 8
/** S3 serves a connection at 85 to 90 MB/s ("Performance design patterns for Amazon S3", S3 user guide, 2026). */
const CONNECTION_BYTES_PER_SECOND = 87.5 * BYTES_PER_MB

type Client = Pick<Socket, 'localPort' | 'remotePort'>

/** The limits that all connections of a machine share. */
interface Wire {
  disk: Limit
  up: Limit
  down: Limit
}

export class Wires {
  private readonly wires = new WeakMap<Instance, Wire>()

  constructor(
    private readonly world: World,
    private readonly instances: () => Iterable<Instance>,
    private readonly processOf: (client: Client) => number | undefined = clientOf,
  ) {}

  /** The limits of a connection of a machine; undefined for clients that are no machine, and in a world without a throughput. */
  limitsOf(client: Client): Limits | undefined {
    const { throughput: share } = this.world
    if (share === undefined) return undefined
    const pid = this.processOf(client)
    if (pid === undefined) return undefined
    const instance = [...this.instances()].find(({ machine }) => machine?.owns(pid) === true)
    if (instance === undefined) return undefined
    const { disk, up, down } = this.wireOf(instance, share)
    const connection = (): Limit => new Limit(CONNECTION_BYTES_PER_SECOND * share)
    return { up: [disk, up, connection()], down: [disk, down, connection()] }
  }

  private wireOf(instance: Instance, share: number): Wire {
    let wire = this.wires.get(instance)
    if (wire === undefined) {
      const network = networkOf(instance) * share
      wire = {
        disk: new Limit(this.diskOf(instance) * share),
        up: new Limit(network),
        down: new Limit(network),
      }
      this.wires.set(instance, wire)
    }
    return wire
  }

  /** The root disk and the link to it are both limits. Jobs use the local disks that a machine shows, whose speed is not published. */
  private diskOf({ type: { ebs, localDisks }, volumes }: Instance): number {
    if (this.world.localDisks && localDisks !== undefined) return Infinity
    const [root] = volumes
    const speeds = [
      root?.speed === undefined ? Infinity : root.speed.mibPerSecond * BYTES_PER_MIB,
      ebs === undefined ? Infinity : ebs.mbPerSecond[1] * BYTES_PER_MB,
    ]
    return Math.min(...speeds)
  }
}

/** Types burst to their peak, for longer than transfers take. */
function networkOf({ type: { networkGbps } }: Instance): number {
  return networkGbps === undefined ? Infinity : networkGbps[1] * BYTES_PER_GBIT
}
