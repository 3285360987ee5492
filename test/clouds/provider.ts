import type { Backend } from '../../backends/backend'
import { limitedTo } from '../../backends/calls'
import type { Ec2Config } from '../../backends/ec2/config'
import type { BackendDeps } from '../../backends/registry'
import type { JobSpec } from '../../core/job/job'
import type { ResourceRequest } from '../../core/resources'
import type { Timing } from '../../core/time/timing'
import type { Cloud, FaultText, JournalEntry, WorldText } from '#small-cloud'
import type { Dice } from '../kit/dice'
import { patient } from '../support/patience'
import type { Draws, Where } from './faults'

/** A provider's name in the small cloud, which is that of its backend, too. */
export type ProviderName = 'ec2' | 'lambda' | 'modal'

export type Instance = ReturnType<Cloud['instances']>[number]

/** Settings that some provider's backend has. */
export type CloudConfig = Partial<Pick<Ec2Config, 'staleForMs' | 'templatesKeptMs' | 'tags'>>

/** The surroundings of jobs in the account of a company. */
export interface Company {
  world: WorldText
  config: CloudConfig
  resources: Partial<ResourceRequest>
}

/** Stands around a call to the provider. */
export type Around = <T>(call: string, effect: () => Promise<T>) => Promise<T>

export interface BackendParts {
  deployment: string
  config: CloudConfig
  handOver: NonNullable<BackendDeps['handOver']>
  /** Around each call that is not made with AWS's SDK. */
  around: Around
}

/** Where a backend finds its provider. */
export type Addresses = Pick<Cloud, 'endpoint' | 'providers'>

/** What a harness must know of a provider; everything else is the same for all of them. */
export interface CloudProvider {
  name: ProviderName
  /** A small cloud that is quick and in good health. */
  calm: WorldText
  /** Limits on calls that one job can reach. */
  tight: WorldText
  /** How much there is, and for how long; draws as often as it likes. */
  stockOf: (dice: Dice) => WorldText
  pricesOf: (dice: Dice) => WorldText
  /** Policies, keys, disks and reservations of a company; draws as often as it likes. Missing where the provider has none. */
  companyOf?: (dice: Dice) => Company
  open: (at: Addresses, parts: BackendParts) => Backend
  /** Of the product's worker, in addition to those that lead it to the cloud. */
  settings: Readonly<Record<string, string>>
  /** Of every job. */
  spec: Partial<JobSpec>
  timing: Partial<Timing>
  /** How long after an end its backend may see it, where lists are up to date. */
  lagMs: number
  faults: Draws
  /** What is the first choice of a job is out of stock. */
  scarce: FaultText
  /** The first machine never speaks. */
  unreachable: FaultText
  /** Faults that make a machine unreachable. */
  mute: readonly string[]
  calls: Readonly<Record<'launch' | 'look' | 'prices', Where>>
  /** The call of a process that asks how its machine is, by the name that stands around it. */
  asks: string
  /** The answer of a service that is down. */
  down: { code: string; status: number }
  /** Whose a machine is: the name of the tag with the attempt. */
  attemptOf: (tags: Instance['tags']) => string | undefined
  /** States in which a machine costs money, or will. */
  leaking: readonly string[]
  /** States in which a machine is being ended. */
  ending: readonly string[]
  /** The type of a machine on record, in the cloud's words. */
  typeOf: (recorded: string) => string
  /** The attempt of a launch, and all of its order that each send must repeat. */
  orderIn: (call: JournalEntry) => { attemptId: string | undefined; order: unknown }
  billing: {
    atLeastMs: number
    /** Each step that has begun is billed. */
    stepMs: number
    /** An hour of the dearest machine that a job here gets. */
    dearestMicroUsd: number
    /** Budgets from a little more than the least that a job needs to what several machines cost. */
    budgets: readonly [number, number]
  }
  /** Whether one of our calls, and not its provider, ended a machine at work. */
  isOurEnd: (instance: Instance, cloud: Cloud) => boolean
  /** The end of a machine as its backend can learn it at best. */
  toldEndMs: (instance: Instance, cloud: Cloud) => number
  /** Whether an attempt whose send may have been lost ends without a machine and without cost, and another takes its place. */
  losesSends: boolean
  /** Whether its provider has reported a machine as ill, which may still work. */
  isIll: (instance: Instance) => boolean
  /**
   * Whether a machine can end before any list has shown it, and be in none afterwards. If the answer to its launch was lost too, its cost is
   * unknown to us: that of the time for which lists may be late, in whole steps of billing, at most.
   */
  losesMachines: boolean
  /** What is left in addition to machines. */
  remains: (cloud: Cloud) => Promise<string[]>
}

/** A call without an answer is given up after this long; a busy machine's answer comes sooner. */
export const PATIENCE_MS = 5_000

/** An API whose calls are given up like that, each with something around it. */
export function heldApi<T extends object>(api: T, around: Around): T {
  const bounded = (argument: unknown): unknown =>
    argument instanceof AbortSignal ? limitedTo(patient(PATIENCE_MS), argument) : argument
  return new Proxy(api, {
    get: (target, name) => {
      const call = Reflect.get(target, name) as ((...all: unknown[]) => Promise<unknown>) | undefined
      return (...all: unknown[]) => around(String(name), () => call!(...all.map(bounded)))
    },
  })
}
