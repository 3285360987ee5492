import { AwsError, type Ec2Api, type Reservation } from '../../../backends/ec2/sdk/api'
import { answered } from './fake-error'
import { FakeReserving } from './fake-reserving'
import { GROUPS, IMAGES, ON_DEMAND_USD, SPOT_USD, SUBNETS, TYPES } from './fake-market'

export { answered }

/** Something that goes wrong with the next call of a name, in the place of it or after it. */
export interface Fault {
  call: string
  /** `instead`: it has no effect. `after`: it has, and its answer is lost. `hangs`: it has, and nothing ever answers. */
  when: 'instead' | 'after' | 'hangs'
  error?: AwsError
}

/** What the provider answers to those who buy capacity in advance, at the boundary of `api.ts`. What is asked of it is kept. */
export class FakeAws {
  readonly calls: { name: string; detail: unknown }[] = []
  readonly faults: Fault[] = []
  isBroken = false
  subnets = SUBNETS
  prices: ReadonlyMap<string, string> = ON_DEMAND_USD
  reservations: Reservation[] = []
  /** The reservations of machines, one for each. */
  readonly used: string[] = []
  /** What is bought in advance. */
  readonly reserving: FakeReserving

  constructor(now: () => number, region: string) {
    this.reserving = new FakeReserving(region, now, (id) => this.#takenOf(id))
  }

  countOf(name: string): number {
    return this.calls.filter((call) => call.name === name).length
  }

  fail(call: string, code: string, { httpStatus = 400 } = {}): void {
    this.faults.push({ call, when: 'instead', error: answered(code, httpStatus) })
  }

  /** Nothing else is asked by those who buy. */
  api(): Ec2Api {
    const parts = {
      account: {
        identity: this.#verb('identity', () => ({ account: '123456789012', arn: ARN, clockAheadMs: 0 })),
        plan: this.#verb('plan', () => 'paid'),
        quota: this.#verb('quota', () => 768),
        parameter: this.#verb(
          'parameter',
          (name: string) => IMAGES.find(({ architecture }) => name.includes(`/${architecture}/`))!.id,
        ),
      },
      market: {
        types: this.#verb('types', () => TYPES),
        typeZones: this.#verb('typeZones', () =>
          TYPES.flatMap(({ name }) => this.subnets.map(({ zone }) => ({ type: name, zone }))),
        ),
        onDemandPrice: this.#verb('onDemandPrice', ({ type }: { type: string }) => this.prices.get(type)),
        onDemandPrices: this.#verb('onDemandPrices', () => new Map(this.prices)),
        diskRates: this.#verb('diskRates', () => ({
          usdPerGiBMonth: 0.08,
          usdPerMibpsMonth: 0.04,
          usdPerIopsMonth: 0.005,
        })),
        transferUsdPerGb: this.#verb('transferUsdPerGb', () => '0.02'),
        spotPrices: this.#verb('spotPrices', () => [...SPOT_USD]),
        reservations: this.#verb('reservations', () =>
          [...this.reservations, ...this.reserving.listed()].map((one) => this.#shownOf(one)),
        ),
        image: this.#verb('image', (id: string) => IMAGES.find((image) => image.id === id)),
      },
      network: {
        subnets: this.#verb('subnets', () => this.subnets),
        securityGroups: this.#verb('securityGroups', () => GROUPS),
      },
      machines: {},
      commands: {},
      leftovers: {},
      reserving: this.reserving.api((name, effect) => this.#verb(name, effect)),
    }
    return parts as unknown as Ec2Api
  }

  /** One call, with what goes wrong about it. */
  #verb<A extends unknown[], T>(
    name: string,
    effect: (...values: A) => T,
  ): (...values: unknown[]) => Promise<T> {
    return async (...values) => {
      const signal = values.at(-1) as AbortSignal
      const given = values.slice(0, -1) as unknown as A
      if (signal.aborted)
        throw new AwsError('the caller stopped waiting', { code: 'Aborted', reach: 'unsent' })
      this.calls.push({ name, detail: given[0] })
      const at = this.faults.findIndex((fault) => fault.call === name)
      const [fault] = at < 0 ? [] : this.faults.splice(at, 1)
      if (this.isBroken) throw answered('UnauthorizedOperation', 403)
      if (fault?.when === 'instead') throw fault.error!
      let answer: T
      try {
        answer = effect(...given)
      } catch (error) {
        // An answer is lost of what had an effect.
        if (fault !== undefined) this.faults.unshift(fault)
        throw error
      }
      if (fault?.when === 'hangs') {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw new AwsError('Request aborted', { code: 'AbortError', reach: 'unanswered' })
      }
      if (fault !== undefined)
        throw new AwsError('socket hang up', { code: 'ECONNRESET', reach: 'unanswered' })
      return answer
    }
  }

  /** As it is shown: with the places that its machines leave. */
  #shownOf(reservation: Reservation): Reservation {
    return { ...reservation, free: Math.max(0, reservation.free - this.#takenOf(reservation.id)) }
  }

  #takenOf(reservation: string): number {
    return this.used.filter((one) => one === reservation).length
  }
}

const ARN = 'arn:aws:sts::123456789012:assumed-role/crucible/worker'
