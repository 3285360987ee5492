import type { Reservation } from '../../../backends/ec2/sdk/api'
import type { BlockOffering, OfferingRequest } from '../../../backends/ec2/sdk/api-capacity'
import type {
  BoughtExtension,
  CancellationQuote,
  CreateRequest,
  ExtensionOffering,
  ReservingApi,
} from '../../../backends/ec2/sdk/api-reserving'
import { HOUR_MS } from '../../../core/time/time'
import { answered } from './fake-error'

/** A call of the provider, with what goes wrong about it. */
export type FakeVerb = <A extends unknown[], T>(
  name: string,
  effect: (...values: A) => T,
) => (...values: unknown[]) => Promise<T>

/** A reservation of this account, and what time and payment make of it. */
interface Held {
  /** Without its state. */
  told: Reservation
  /** Undefined while the payment is pending. */
  isPaid: boolean | undefined
  cancelledAtMs?: number
  chargedUntilMs?: number
}

interface Extension extends BoughtExtension {
  fee: string
}

/** One purchase with an effect: what the account is billed for. */
export interface FakePurchase {
  reservation: string
  tags: Record<string, string>
}

type DateChange = Parameters<ReservingApi['dateChangeQuote']>[0]

/** Capacity Blocks and on-demand reservations at the boundary of `api-reserving.ts`; payments are pending until a test decides them. */
export class FakeReserving {
  /** For sale, until it is bought or taken away. */
  blocks: BlockOffering[] = []
  blockTypes: string[] = ['p5.48xlarge']
  extensionFee = '1000.5'
  /** How often an extension can be bought. */
  extensionsLeft = 100
  hasCapacity = true
  readonly purchases: FakePurchase[] = []
  readonly held: Held[] = []
  readonly extensions: Extension[] = []
  /** A trial of a purchase is answered as if it were none. */
  ignoresTrials = false
  /** How much longer a commitment gets with a later start. */
  longerCommitmentMs = 0
  /** A new cancellation quote has no terms at first. */
  quotesArePending = false
  readonly #tokens = new Map<string, { body: string; id: string }>()
  readonly #quotes = new Map<string, string>()
  #count = 0

  constructor(
    readonly region: string,
    private readonly now: () => number,
    private readonly usedOf: (id: string) => number,
  ) {}

  /** What the account's lists show of it now. */
  listed(): Reservation[] {
    return this.held.map((one) => this.#shown(one))
  }

  pay(id: string, outcome: 'confirmed' | 'failed'): void {
    const extension = this.extensions.findLast((one) => one.reservation === id)
    const held = this.#heldBy(id)
    if (extension === undefined) held.isPaid = outcome === 'confirmed'
    else extension.state = outcome === 'confirmed' ? 'payment-succeeded' : 'payment-failed'
    if (extension?.state === 'payment-succeeded') held.told.endsAtMs = extension.endsAtMs
  }

  api(verb: FakeVerb): ReservingApi {
    const trial = <O extends { isTrial?: boolean }>(order: O): never | undefined => {
      if (order.isTrial === true && !this.ignoresTrials) throw answered('DryRunOperation', 412)
      return undefined
    }
    const buyBlock = (order: Parameters<ReservingApi['buyBlock']>[0]): Reservation =>
      trial(order) ?? this.#buyBlock(order)
    const buyExtension = (order: Parameters<ReservingApi['buyExtension']>[0]): BoughtExtension =>
      trial(order) ?? this.#buyExtension(order)
    return {
      blockTypes: verb('blockTypes', () => this.blockTypes),
      offerings: verb('offerings', (wish: OfferingRequest) => this.#offerings(wish)),
      extensionOfferings: verb('extensionOfferings', (wish: { reservation: string; durationHours: number }) =>
        this.#extensionOfferings(wish),
      ),
      extensions: verb('extensions', () => this.extensions.map(({ fee: _, ...told }) => told)),
      buyBlock: (order, signal) => verb(order.isTrial ? 'tryBlock' : 'buyBlock', buyBlock)(order, signal),
      buyExtension: (order, signal) =>
        verb(order.isTrial ? 'tryExtension' : 'buyExtension', buyExtension)(order, signal),
      create: verb('create', (request: CreateRequest) => this.#create(request)),
      modify: verb('modify', (id: string, change: Parameters<ReservingApi['modify']>[1]) => {
        const { told } = this.#live(id)
        if (change.start !== undefined) {
          if (change.start.quote !== `later-${change.start.startsAtMs}`)
            throw answered('InvalidParameterValue')
          const laterMs = change.start.startsAtMs - (told.startsAtMs ?? 0)
          told.startsAtMs = change.start.startsAtMs
          told.committedUntilMs = (told.committedUntilMs ?? 0) + laterMs
        }
        if (change.count !== undefined && change.count < this.usedOf(id))
          throw answered('InvalidParameterValue')
        if (change.count !== undefined) Object.assign(told, { total: change.count, free: change.count })
        if (change.endsAtMs === null) delete told.endsAtMs
        else if (change.endsAtMs !== undefined) told.endsAtMs = change.endsAtMs
      }),
      split: verb('split', (request: Parameters<ReservingApi['split']>[0]) => this.#split(request)),
      dateChangeQuote: verb('dateChangeQuote', ({ reservation, startsAtMs }: DateChange) => {
        const { startsAtMs: before = 0, committedUntilMs = 0 } = this.#live(reservation).told
        const end = committedUntilMs + startsAtMs - before + this.longerCommitmentMs
        return { id: `later-${startsAtMs}`, state: 'active', startsAtMs, committedUntilMs: end }
      }),
      cancellationQuote: verb('cancellationQuote', ({ reservation }: { reservation: string }) =>
        this.#quote(reservation),
      ),
      cancel: verb('cancel', (id: string, { quote }: { quote?: string }) => {
        const held = this.#live(id)
        const { committedUntilMs = 0 } = held.told
        const isCommitted = committedUntilMs > this.now()
        if (isCommitted && (quote === undefined || this.#quotes.get(quote) !== id))
          throw answered('OperationNotPermitted')
        held.cancelledAtMs = this.now()
        if (isCommitted) held.chargedUntilMs = committedUntilMs
      }),
    }
  }

  #offerings({
    type,
    count,
    durationHours,
    startsAfterMs = 0,
    endsBeforeMs = Infinity,
  }: OfferingRequest): BlockOffering[] {
    if (count > 64) throw answered('InvalidParameterValue')
    return this.blocks.filter((one) => {
      const hours = (one.endsAtMs - one.startsAtMs) / HOUR_MS
      const isNear = Math.abs(hours - durationHours) < 12
      const isThen = one.startsAtMs >= startsAfterMs && one.endsAtMs <= endsBeforeMs
      return one.type === type && one.count === count && isNear && isThen
    })
  }

  #buyBlock({ offering, tags }: { offering: string; tags: Record<string, string> }): Reservation {
    const block = this.blocks.find(({ id }) => id === offering)
    if (block === undefined) throw answered('InvalidCapacityBlockOfferingId.NotFound')
    const { type, zone, count, startsAtMs, endsAtMs } = block
    return this.#hold(
      { isBlock: true, type, zone, total: count, startsAtMs, endsAtMs, tags },
      { isPaid: undefined, isBought: true },
    )
  }

  #extensionOfferings({
    reservation,
    durationHours,
  }: {
    reservation: string
    durationHours: number
  }): ExtensionOffering[] {
    const { told } = this.#live(reservation)
    const isPending = this.extensions.some(
      (one) => one.reservation === reservation && one.state === 'payment-pending',
    )
    if (isPending || this.extensionsLeft === 0) return []
    return [
      {
        id: `cbe-${reservation}-${durationHours}`,
        reservation,
        type: told.type,
        count: told.total,
        zone: told.zone,
        startsAtMs: told.endsAtMs!,
        endsAtMs: told.endsAtMs! + durationHours * HOUR_MS,
        upfrontFee: this.extensionFee,
        currency: 'USD',
        tenancy: 'default',
      },
    ]
  }

  #buyExtension({ offering, reservation }: { offering: string; reservation: string }): BoughtExtension {
    const hours = Number(offering.split('-').at(-1))
    const [found] = this.#extensionOfferings({ reservation, durationHours: hours })
    if (found === undefined) throw answered('InvalidCapacityBlockExtensionOfferingId.NotFound')
    this.extensionsLeft--
    const bought = { reservation, state: 'payment-pending', boughtAtMs: this.now(), endsAtMs: found.endsAtMs }
    this.extensions.push({ ...bought, fee: found.upfrontFee })
    this.purchases.push({ reservation, tags: {} })
    return bought
  }

  #create({ token, ...request }: CreateRequest): Reservation {
    const body = JSON.stringify(request)
    const known = this.#tokens.get(token)
    if (known !== undefined) {
      if (known.body !== body) throw answered('IdempotentParameterMismatch')
      return this.#shown(this.#heldBy(known.id))
    }
    if (!this.hasCapacity) throw answered('InsufficientInstanceCapacity', 500)
    const { type, count, zone, endsAtMs, later, tags } = request
    const startsAtMs = later?.startsAtMs ?? this.now()
    const made = this.#hold(
      {
        isBlock: false,
        type,
        zone,
        total: count,
        startsAtMs,
        tags,
        matching: 'targeted',
        endsAtMs,
        committedUntilMs: later !== undefined ? startsAtMs + later.committedMs : undefined,
      },
      { isPaid: true, isBought: true },
    )
    this.#tokens.set(token, { body, id: made.id })
    return made
  }

  #split({ source, count, token, tags }: Parameters<ReservingApi['split']>[0]): Reservation {
    const known = this.#tokens.get(token)
    if (known !== undefined) return this.#shown(this.#heldBy(known.id))
    const { told } = this.#live(source)
    if (count >= told.total - this.usedOf(source)) throw answered('InvalidParameterValue')
    told.total -= count
    told.free = told.total
    const { type, zone, startsAtMs, endsAtMs } = told
    const made = this.#hold(
      {
        isBlock: false,
        type,
        zone,
        total: count,
        tags,
        matching: 'targeted',
        startsAtMs,
        endsAtMs,
      },
      { isPaid: true, isBought: false },
    )
    this.#tokens.set(token, { body: '', id: made.id })
    return made
  }

  #quote(reservation: string): CancellationQuote {
    const { told } = this.#live(reservation)
    const { committedUntilMs = 0, startsAtMs = 0, total } = told
    if (committedUntilMs <= this.now()) throw answered('InvalidParameterValue')
    const id = `crq-${this.#quotes.size + 1}`
    this.#quotes.set(id, reservation)
    const chargedHours = (committedUntilMs - Math.max(this.now(), startsAtMs)) / HOUR_MS
    const terms = { type: 'commitment-wind-down', chargedHours, committedCount: total }
    return this.quotesArePending
      ? { id, state: 'pending', terms: [] }
      : { id, state: 'active', terms: [{ ...terms, chargedUntilMs: committedUntilMs }] }
  }

  #hold(
    told: Partial<Reservation> & Pick<Reservation, 'isBlock' | 'type' | 'zone' | 'total'>,
    { isPaid, isBought }: { isPaid: boolean | undefined; isBought: boolean },
  ): Reservation {
    const id = `cr-${this.region}-${(++this.#count).toString(16).padStart(4, '0')}`.replace(/[^a-z0-9-]/g, '')
    const held: Held = {
      told: {
        id,
        isUltraServer: false,
        isInterruptible: false,
        state: '',
        platform: 'Linux/UNIX',
        tenancy: 'default',
        free: told.total,
        owner: '123456789012',
        createdAtMs: this.now(),
        ...told,
      },
      isPaid,
    }
    this.held.push(held)
    if (isBought) this.purchases.push({ reservation: id, tags: told.tags ?? {} })
    return this.#shown(held)
  }

  #shown(held: Held): Reservation {
    return { ...held.told, state: this.#stateOf(held) }
  }

  #stateOf({ told, isPaid, cancelledAtMs, chargedUntilMs }: Held): string {
    const nowMs = this.now()
    if (cancelledAtMs !== undefined) return nowMs < (chargedUntilMs ?? 0) ? 'cancelling' : 'cancelled'
    if (isPaid === undefined) return 'payment-pending'
    if (!isPaid) return 'payment-failed'
    if (nowMs >= (told.endsAtMs ?? Infinity)) return 'expired'
    return nowMs < (told.startsAtMs ?? 0) ? 'scheduled' : 'active'
  }

  #heldBy(id: string): Held {
    const held = this.held.find(({ told }) => told.id === id)
    if (held === undefined) throw answered('InvalidCapacityReservationId.NotFound')
    return held
  }

  #live(id: string): Held {
    const held = this.#heldBy(id)
    if (!['active', 'scheduled'].includes(this.#stateOf(held)))
      throw answered('InvalidCapacityReservationState')
    return held
  }
}
