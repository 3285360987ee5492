import { BILLED_AT_LEAST_MS } from '../../backends/ec2/market/prices'
import type { Capabilities } from '../../core/capabilities'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Dice } from '../kit/dice'

/** Whom a provider bills as. The names are also those of the backends. */
export const KINDS = ['ec2', 'modal', 'lambda'] as const
export type Kind = (typeof KINDS)[number]

/** As the backends of these names have them. */
export const CAPABILITIES: Record<Kind, Capabilities> = {
  ec2: {
    capacityTypes: ['spot', 'on-demand'],
    imageRunner: 'runner',
    runnerStart: 'after-launch',
    idempotency: 'token',
    billsUntil: 'exit',
    price: 'live',
  },
  modal: {
    capacityTypes: ['on-demand'],
    imageRunner: 'provider',
    runnerStart: 'with-launch',
    idempotency: 'token',
    billsUntil: 'exit',
    offersPerOrder: 'one',
    queues: true,
    price: 'live',
  },
  lambda: {
    capacityTypes: ['on-demand'],
    imageRunner: 'runner',
    runnerStart: 'with-launch',
    idempotency: 'tag',
    claimsBy: 'send',
    billsUntil: 'terminate',
    offersPerOrder: 'one',
    price: 'live',
  },
}

/** How a provider counts the time that it bills, and what it charges. */
export interface Terms {
  leastMs: number
  stepMs: number
  /** It ends a machine that long after its billing began. */
  runMsMax?: number
  /** What remains of its list prices. */
  paidShare: number
}

/** Mostly what the real provider bills; sometimes something that none does. Only EC2 has spot prices, and bills seconds. */
export function drawTerms(dice: Dice, kind: Kind): Terms {
  const usual: Record<Kind, [leastMs: number, stepMs: number]> = {
    ec2: [BILLED_AT_LEAST_MS, SECOND_MS],
    modal: [0, SECOND_MS],
    lambda: [0, MINUTE_MS],
  }
  const [leastMs, stepMs] =
    kind === 'ec2' || dice.chance(0.8)
      ? usual[kind]
      : [dice.oneOf([0, MINUTE_MS, 10 * MINUTE_MS]), dice.oneOf([SECOND_MS, MINUTE_MS, HOUR_MS])]
  const runMsMax = dice.oneOf([30 * MINUTE_MS, 2 * HOUR_MS, 24 * HOUR_MS])
  return {
    leastMs,
    stepMs,
    paidShare: dice.chance(0.25) ? 1 - dice.between(1, 60) / 100 : 1,
    runMsMax: kind === 'modal' ? runMsMax : undefined,
  }
}

/** Which providers the jobs of a world may use. */
export function drawKinds(dice: Dice): Kind[] {
  return dice.oneOf<Kind[]>([
    ['ec2'],
    ['ec2'],
    ['modal'],
    ['lambda'],
    ['ec2', 'lambda'],
    ['modal', 'lambda'],
    [...KINDS],
  ])
}
