/** The seam between the cloud and the other providers that it simulates in addition to AWS. */
import type { Clock } from './clock'
import type { InstanceSummary } from './control'
import type { HttpService } from './http/service'
import type { Ids } from './ids'
import type { CloudKeys } from './keys'
import type { Hosted, MachinePool } from './machines/pool'
import type { Registries } from './registry/registries'
import type { Faults } from './world/faults'
import type { World } from './world/world'

/** Parts that the cloud gives to every provider. */
export interface ProviderParts {
  world: World
  clock: Clock
  faults: Faults
  ids: Ids
  keys: CloudKeys
  /** Runs the machines of all providers. */
  pool: MachinePool
  /** Answers the container engines of machines. */
  registries: Pick<Registries, 'ask'>
}

/** A provider with an HTTP API. */
export interface Provider {
  /** Its API, served at `/_NAME` of the cloud's address. */
  readonly service: HttpService
  /** Values that a client needs in addition to the address: keys, tokens. */
  readonly credentials: Readonly<Record<string, string>>
  /** Returns every machine that still has a record. */
  hosted(): Iterable<Hosted>
  /** Returns every machine with its true state and cost. */
  instances(): InstanceSummary[]
  /** Takes a machine back as the provider does, without notice. Returns false for a machine that it does not have. */
  interrupt(instance: string): boolean
}
