import type { Backend, CallContext } from '../../backends/backend'
import type { HandOver } from '../../backends/registry'
import type { CapacityType } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import type { ObjectStore } from '../../storage/store'

export interface WantedOrder {
  capacityType?: CapacityType
  deployment?: string
  /** For a machine on which nothing ever begins to work. */
  isStuck?: boolean
}

/** What a backend can do that its tests depend on; the first test of the contract compares each with the backend. */
export interface Traits {
  /** Its provider recognises no repeated order, so a machine is looked for by its tag. */
  looksForTags: boolean
  /** Its launch does not start the runner. */
  startsLater: boolean
  keepsLogs: boolean
  /** Its provider tells when a machine ended. */
  tellsEnds: boolean
  /** A test can take its spot machines back. */
  interruptsMachines: boolean
  /** Its machines start with the launch, and take what they need from hand-overs. */
  takesHandOvers: boolean
  /** A launch may wait in the provider's queue, free of charge. */
  queues: boolean
  /** Its provider bills a machine until our call ends it. */
  billsUntilCalled: boolean
  /** `gone` says that nothing of a machine runs; a provider without this only says that its end was requested. */
  confirmsEnds: boolean
  /** What a second machine of one order is there: another machine, or another process of the one that has the name. */
  duplicatesAre: 'machines' | 'processes'
}

/** Why a backend without a trait has nothing to test. */
export const LACKS: Record<
  Exclude<keyof Traits, 'duplicatesAre' | 'confirmsEnds' | 'tellsEnds' | 'billsUntilCalled'>,
  string
> = {
  queues: 'it has no queue',
  looksForTags: 'its provider recognises a repeated order',
  startsLater: 'its launch starts the runner',
  keepsLogs: 'it keeps no logs',
  interruptsMachines: 'it cannot take a machine back',
  takesHandOvers: 'its machines get their keys by another way',
}

/** The hand-overs of a backend, as an observer sees them. */
export interface HandOversHarness {
  /** All that were issued so far, oldest first. */
  readonly issued: readonly HandOver[]
  /** What anybody gets who has a signed URL: undefined if it opens nothing. */
  read(url: string): Promise<Buffer | undefined>
  /** The next one is deleted before its machine boots. */
  deleteNext(): void
  /** All that the provider keeps of an attempt's machines and shows to its account, unpacked. */
  keptOf(attemptId: string): string
  /** What of an attempt is secret, as text. */
  secretsOf(attemptId: string): string[]
  /** A provider makes a second machine of the last send of an order. */
  repeatSend(order: Order): Promise<void>
  /** Waits until each machine of an attempt has taken a hand-over or does nothing; how many took one. */
  takenOf(attemptId: string): Promise<number>
}

/** A healthy provider with room for a few machines, a backend over it, and ways to look and to meddle behind its back. */
export interface Harness {
  backend: Backend
  /** The store that its machines reach. */
  readonly store: ObjectStore
  /** A backend over the same provider, as another process would have it. */
  reopen(): Promise<Backend>
  /** An order of a new attempt that runs until it is ended. What its machine reads is in place. */
  order(wanted?: WantedOrder): Promise<Order>
  /** How many machines the provider ever started for an attempt; waits for what was started to show. */
  startsOf(attemptId: string): Promise<number>
  /** How many things run for an attempt: machines, or their processes. */
  runningOf(attemptId: string): Promise<number>
  /** All available machines are taken by another deployment. */
  fill(): Promise<void>
  /** From now on the provider cannot be used, for a reason that needs an operator. */
  breakDown(): Promise<void>
  /** From now on a launch is not answered. */
  stall(): void
  /** The next launch fails in passing, before it has had any effect. */
  failNextLaunch(): void
  /** How often a launch reached the provider, failed ones included. */
  launchesSent(): number
  /** The next launch has its effect, but the answer is lost. False where answers cannot be lost. */
  loseNextAnswer(): boolean
  /** Makes a second machine for the order of a machine, behind the product's back; of another send where `idempotency` is `tag`. */
  duplicate(order: Order): Promise<void>
  /** From now on launches wait in the queue, until the answer is called. Where `queues`. */
  holdQueue?(): () => void
  /** The provider shows ended machines no more, where it can; missing where it never forgets. */
  forgetEnded?(): void
  /** When the provider's bill for the machine of an attempt ended; undefined while it is billed. Where `billsUntilCalled`. */
  billedToMs?(attemptId: string): number | undefined
  /** Data of the handle of any machine, as the backend notes it. */
  readonly handleData?: Record<string, string>
  /** Missing where machines get their keys by another way. */
  handOvers?: HandOversHarness
  dispose(): Promise<void>
}

/** The context of a caller who waits. */
export function patiently(): CallContext {
  return { signal: new AbortController().signal }
}

/** How a call ended, in a word: the outcome's kind, `answer`, or the error's name. */
export async function settled(call: Promise<unknown>): Promise<string> {
  try {
    const answer = await call
    return (answer as { kind?: string } | undefined)?.kind ?? 'answer'
  } catch (error) {
    return (error as Error).name
  }
}
