import { microUsd } from '../../core/money/money'
import type { PurchaseRule } from '../../core/reservation/reserving'
import type { CapacityRequest } from '../../core/reservation/reservation'
import { DAY_MS, MINUTE_MS } from '../../core/time/time'
import { StoreError } from '../../storage/store'
import { RealClock } from '../backends/scripted/clock'
import type { PrepaidLot } from '../backends/scripted/reserving/lots'
import { ReservationMarket, type ReservingFault } from '../backends/scripted/reserving/market'
import { Dice } from '../kit/dice'
import type { Deployment } from '../workflows/harness'

/** What happens to the control plane around a purchase. */
const TROUBLES = [
  /** The worker stops, whatever it does at that moment, and another one starts. */
  'worker restarts',
  /** Its last step before the mark, after it, or after the answer fails, as if the worker had died there. */
  'dies before the mark',
  'dies after the mark',
  'dies before the effect is on record',
  'dies after the effect is on record',
  /** Somebody terminates the purchase in the Temporal UI. */
  'buyer is terminated',
  /** The history goes back to its beginning, as after the restore of an older backup. */
  'history goes back',
  /** The same purchase is started a second time under another name. */
  'duplicate buyer',
  /** The provider's list of what is owned fails for a while. */
  'list fails',
] as const
export type Trouble = (typeof TROUBLES)[number]

/** One seed: a market, and what goes wrong. */
export interface PurchaseWorld {
  seed: number
  dice: Dice
  market: ReservationMarket
  /** One or two deployments of one account. */
  deployments: { skewMs: number; wishes: { id: string; owner: string }[] }[]
  troubles: Trouble[]
  story: string[]
}

const LOT: Omit<PrepaidLot, 'startsAtMs'> = {
  kind: 'prepaid',
  type: 'v100',
  region: 'r',
  zone: 'a',
  count: 4,
  durationMs: 2 * DAY_MS,
  upfrontMicro: microUsd(1_000),
}
/** Every purchase of the account fits. */
export const LIMITS = { monthMicroUsd: microUsd(1_000_000), owners: {} }
export const RULE: PurchaseRule = { unaskedMaxMicroUsd: microUsd(2_000), upfrontMaxMicroUsd: microUsd(2_000) }
/** Longer than `SENT_WITHIN_MS` and the lag of the market's lists. */
export const LOOK_PAUSES_MS = [0, 100, 200, 400, 700, 1_000, 1_600]
/** No request leaves a worker later than this after its mark. */
export const SENT_WITHIN_MS = 1_200

export function wishOf(backend: string): CapacityRequest {
  const latestStartAtMs = Date.now() + 40 * DAY_MS
  return { backend, kind: 'prepaid', types: ['v100'], count: 4, durationMs: DAY_MS, latestStartAtMs }
}

export function worldOf(seed: number): PurchaseWorld {
  const dice = new Dice(seed)
  const lots = Array.from({ length: dice.between(1, 2) }, (_, index) => ({
    ...LOT,
    stock: dice.between(1, 3),
    startsAtMs: Date.now() + (2 + index) * DAY_MS,
  }))
  const market = new ReservationMarket({
    clock: new RealClock(),
    lots,
    listsLagMs: dice.oneOf([0, 0, 100, 600]),
    payment: dice.chance(0.1) ? { kind: 'failed', afterMs: 50 } : { kind: 'confirmed', afterMs: 50 },
  })
  const story = [
    `${lots.map(({ stock }) => stock).join(' and ')} blocks for sale, lists late by ${market.listsLagMs} ms, payment ${market.payment.kind}`,
  ]
  for (let n = dice.between(0, 2); n > 0; n--) {
    const fault = faultOf(dice)
    market.faults.add('reserve', fault)
    story.push(`a purchase ${JSON.stringify(fault)}`)
  }
  const deployments = Array.from({ length: dice.chance(0.3) ? 2 : 1 }, (_, deployment) => ({
    skewMs: dice.oneOf([0, 0, -10 * MINUTE_MS, 10 * MINUTE_MS]),
    wishes: Array.from({ length: dice.chance(0.3) ? 2 : 1 }, (_wish, index) => ({
      id: `res-${seed}-${deployment}-${index}`,
      owner: `owner-${index}`,
    })),
  }))
  const troubles = TROUBLES.filter(() => dice.chance(0.2))
  story.push(`deployments: ${JSON.stringify(deployments)}`, `troubles: ${troubles.join(', ') || 'none'}`)
  return { seed, dice, market, deployments, troubles, story }
}

function faultOf(dice: Dice): ReservingFault {
  const failure = dice.chance(0.5)
    ? ({ class: 'unclassified', message: 'InternalError' } as const)
    : ({ class: 'transient', message: 'the connection was refused' } as const)
  return dice.oneOf<ReservingFault>([
    { kind: 'loses-answer', hasEffect: true },
    { kind: 'loses-answer', hasEffect: true },
    { kind: 'loses-answer', hasEffect: false },
    { kind: 'hangs', hasEffect: dice.chance(0.5) },
    { kind: 'late', effectAfterMs: dice.between(50, 800) },
    { kind: 'slow', durationMs: dice.between(50, 500) },
    { kind: 'throws', failure },
    { kind: 'refuses', failure: { class: 'capacity', message: 'another customer has it' } },
    { kind: 'gone' },
  ])
}

/** Makes the first purchase of a deployment end at one step, as if its worker had died there. */
export function killAt({ store }: Deployment, trouble: Trouble): void {
  const isEffect = trouble.includes('effect')
  const isAfter = trouble.includes('after')
  const put = store.putIfAbsent.bind(store)
  let isOver = false
  store.putIfAbsent = async (key, body) => {
    const isMeant = /\/purchases\/\d+(-effect)?\.json$/.test(key) && key.endsWith('-effect.json') === isEffect
    if (isOver || !isMeant) return put(key, body)
    isOver = true
    if (isAfter) await put(key, body)
    throw new StoreError('the worker died', { isTransient: true })
  }
}
