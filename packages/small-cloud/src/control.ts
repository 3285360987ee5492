/** The control API below `/_sim/`: what the operator of a cloud can query and change. */
import { z } from 'zod'
import { summaryOfAccount, type AccountSummary } from './account'
import { billOf, type Bill } from './ec2/bill'
import type { Ec2 } from './ec2/ec2'
import type { Life } from './ec2/life'
import { stateOf, type Instance } from './ec2/model'
import { publish } from './ec2/region'
import { ReservationControl } from './ec2/reservation-control'
import { complaintsOf, inWords } from './issues'
import type { Journal } from './journal'
import { duration } from './world/durations'
import { faultSchema } from './world/fault-schema'
import type { Provider } from './provider'
import type { Faults } from './world/faults'

export interface ControlParts {
  ec2: Ec2
  life: Life
  journal: Journal
  faults: Faults
  providers: readonly Provider[]
}

const interruption = z.strictObject({
  instance: z.string(),
  /** Default: `durations.notice`. */
  notice: duration.optional(),
  isSilent: z.boolean().default(false),
  rebalanceBefore: duration.optional(),
})

const publication = z.strictObject({
  /** The name of a public parameter. */
  name: z.string(),
  image: z.string().regex(/^ami-[0-9a-f]{8,17}$/, 'is not the id of an image, such as ami-0123456789abcdef0'),
})

export interface InstanceSummary {
  /** `ec2`, or the name of another provider. */
  provider: string
  id: string
  /** State in the provider's words. */
  state: string
  type: string
  image: string
  /** The zone, or the region of a provider without zones. */
  zone: string
  /** `reserved` for an instance in a reservation. */
  capacity: string
  reservation?: string
  tags: Record<string, string>
  launchedAtMs: number
  isImpaired: boolean
  reason?: string
  /** The cost so far. */
  bill: Bill
}

export class Control {
  constructor(private readonly parts: ControlParts) {}

  /** Answers a request; the path has no leading slash. */
  async handle(path: string, method: string, body: Buffer): Promise<{ status: number; value: unknown }> {
    const [name = '', query = ''] = path.split('?')
    const handler = this.handlers[`${method} ${name}`]
    if (handler === undefined)
      return {
        status: 404,
        value: { error: `there is no ${method} ${name}; known are ${this.doors().join(', ')}` },
      }
    try {
      return { status: 200, value: handler(new URLSearchParams(query), readJson(body)) }
    } catch (error) {
      return {
        status: 400,
        value: { error: wordsOf(error) },
      }
    }
  }

  /** Lists the endpoints: `GET journal`, ... */
  doors(): string[] {
    return Object.keys(this.handlers)
  }

  instances(): InstanceSummary[] {
    const { ec2, providers } = this.parts
    const own = [...ec2.instances()].map((instance) => summaryOf(ec2, instance))
    return [...own, ...providers.flatMap((provider) => provider.instances())]
  }

  account(): AccountSummary {
    return summaryOfAccount(this.parts.ec2)
  }

  /** Returns the notice that the machine got; null if its provider gives none. */
  interrupt(wish: unknown): { noticeMs: number | null } {
    const { instance: id, notice, isSilent, rebalanceBefore } = interruption.parse(wish, { error: inWords })
    const { ec2, life, providers } = this.parts
    const instance = ec2.findInstance(id)
    if (instance === undefined) {
      if (providers.some((each) => each.interrupt(id))) return { noticeMs: null }
      throw new Error(`there is no instance ${id}`)
    }
    if (instance.capacity !== 'spot')
      throw new Error(`${id} is not a spot instance; only those are interrupted`)
    const noticeMs = isSilent ? null : (notice ?? ec2.drawMs('notice'))
    life.interrupt(instance, {
      noticeMs,
      cause: 'by-service',
      ...(rebalanceBefore === undefined ? {} : { rebalanceBeforeMs: rebalanceBefore }),
    })
    return { noticeMs }
  }

  get reservations(): ReservationControl {
    return new ReservationControl(this.parts.ec2)
  }

  publish(wish: unknown): void {
    const wished = publication.parse(wish, { error: inWords })
    const { ec2 } = this.parts
    for (const region of ec2.regions.values()) publish(ec2.parts.world, region, wished)
  }

  private readonly handlers: Readonly<Record<string, (query: URLSearchParams, body: unknown) => unknown>> = {
    'GET journal': (query) => {
      const service = query.get('service')
      const action = query.get('action')
      const mutating = query.get('mutating')
      return this.parts.journal.calls({
        ...(service === null ? {} : { service }),
        ...(action === null ? {} : { action }),
        ...(mutating === null ? {} : { isMutating: mutating === 'true' }),
      })
    },
    'GET instances': () => this.instances(),
    'GET account': () => this.account(),
    'GET faults': () => this.parts.faults.told(),
    'POST faults': (_, body) => {
      this.parts.faults.add(faultSchema.parse(body, { error: inWords }))
      return {}
    },
    'POST images': (_, body) => {
      this.publish(body)
      return {}
    },
    'GET reservations': () => this.reservations.list(),
    'POST reservations': (_, body) => this.reservations.add(body),
    'POST extend': (_, body) => {
      this.reservations.extend(body)
      return {}
    },
    'POST shorten': (_, body) => {
      this.reservations.shorten(body)
      return {}
    },
    'POST withdraw': (_, body) => {
      this.reservations.withdraw(body)
      return {}
    },
    'POST interrupt': (_, body) => this.interrupt(body),
  }
}

function wordsOf(error: unknown): string {
  if (!(error instanceof z.ZodError)) return String(error)
  return complaintsOf(error)
    .map(({ words }) => words)
    .join('; ')
}

function summaryOf(ec2: Ec2, instance: Instance): InstanceSummary {
  const reason = instance.history.at(-1)?.reason?.code
  return {
    provider: 'ec2',
    id: instance.id,
    state: stateOf(instance),
    type: instance.type.name,
    image: instance.image.id,
    zone: instance.subnet.zone.name,
    capacity: instance.place === undefined ? instance.capacity : 'reserved',
    ...(instance.place === undefined ? {} : { reservation: instance.place.id }),
    tags: Object.fromEntries(instance.tags),
    launchedAtMs: instance.launchedAtMs,
    isImpaired: instance.isImpaired,
    ...(reason === undefined ? {} : { reason }),
    bill: billOf(ec2, instance),
  }
}

function readJson(body: Buffer): unknown {
  if (body.length === 0) return undefined
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new Error('the body is not JSON')
  }
}
