import { BLOCK_COUNT_MAX, BLOCK_DAYS_MAX, soldDays, WEEKS_AHEAD_MAX } from './block-durations'

/** The decision tree for kinds of capacity, with what AWS documents. */

export const PURPOSES = ['training', 'retraining', 'inference', 'development', 'experiments'] as const
export type Purpose = (typeof PURPOSES)[number]

export interface AdviceQuery {
  purpose: Purpose
  type: string
  machines: number
  /** Days of one run; for training. */
  days?: number | undefined
  /** Whether the dates of a training are known. */
  isScheduled?: boolean | undefined
  /** Whether it can continue from a checkpoint after an interruption. */
  isInterruptible?: boolean | undefined
  /** The number of machines follows the load; for inference. */
  isScaling?: boolean | undefined
  /** A launch must never fail for lack of capacity; for development and experiments. */
  isGuaranteed?: boolean | undefined
}

type CapacityKind = 'capacity-block' | 'odcr' | 'spot' | 'on-demand'

export interface Advice {
  /** The row of the use-case matrix. */
  useCase: string
  kind: CapacityKind
  reasons: string[]
  commands: string[]
  /** Corrections of common errors. */
  corrections: string[]
  sources: string[]
}

const GUIDE = 'https://docs.aws.amazon.com/AWSEC2/latest/UserGuide'
const SOURCES = {
  blocks: `${GUIDE}/ec2-capacity-blocks.html`,
  blocksHow: `${GUIDE}/capacity-blocks-how.html`,
  blocksPrice: `${GUIDE}/capacity-blocks-pricing-billing.html`,
  odcr: `${GUIDE}/ec2-capacity-reservations.html`,
  odcrPrice: `${GUIDE}/capacity-reservations-pricing-billing.html`,
  spot: `${GUIDE}/spot-best-practices.html`,
}

const ODCR_IS_BILLED =
  'An on-demand reservation is billed at the on-demand price for every instance from the moment it is active, used or not; "pay only when running" is wrong.'

/** Which of the questions decide, in the order in which a person is asked. */
export function questionsFor(purpose: Purpose): (keyof AdviceQuery)[] {
  switch (purpose) {
    case 'training':
    case 'retraining':
      return ['isScheduled', 'days', 'machines', 'isInterruptible']
    case 'inference':
      return ['machines', 'isScaling']
    case 'development':
    case 'experiments':
      return ['machines', 'isGuaranteed', 'isInterruptible']
  }
}

export function adviseFor(wish: AdviceQuery): Advice {
  switch (wish.purpose) {
    case 'training':
    case 'retraining':
      return trainingAdvice(wish)
    case 'inference':
      return inferenceAdvice(wish)
    case 'development':
    case 'experiments':
      return flexibleAdvice(wish)
  }
}

function trainingAdvice(wish: AdviceQuery): Advice {
  const { days = 1, isScheduled = false, isInterruptible = false, machines } = wish
  const fits = soldDays(days) !== undefined && machines <= BLOCK_COUNT_MAX
  if (isScheduled && fits && !(isInterruptible && machines === 1)) return blockAdvice(wish)
  if (isInterruptible) return spotAdvice(wish, trainingRow(wish))
  return {
    ...odcrAdvice(wish, trainingRow(wish)),
    reasons: [
      isScheduled
        ? `A Capacity Block has at most ${BLOCK_COUNT_MAX} instances and lasts ${BLOCK_DAYS_MAX} days at most: the run needs more.`
        : 'The dates are open, so a block with fixed dates would be paid for but unused.',
      'Create the reservation in a cluster placement group, so that several machines train fast together.',
    ],
    corrections: [
      ODCR_IS_BILLED,
      'An on-demand reservation is not limited to standard networking: it can be in a cluster placement group, and EFA works.',
    ],
    sources: [SOURCES.odcr, SOURCES.odcrPrice],
  }
}

function trainingRow({ purpose, machines }: AdviceQuery): string {
  if (purpose === 'retraining') return 'Quarterly retraining'
  return machines > 1 ? 'Distributed training' : 'Training on one machine'
}

function blockAdvice(wish: AdviceQuery): Advice {
  const { type, machines, days = 1, purpose } = wish
  const sold = soldDays(days)!
  return {
    useCase: trainingRow(wish),
    kind: 'capacity-block',
    reasons: [
      'The dates are fixed, so a block guarantees the machines for exactly this time.',
      'AWS places every Capacity Block in an UltraCluster.',
      `A run of ${days} days needs a block of ${sold} days; EC2 begins to end machines 30 minutes before its end.`,
    ],
    commands: [
      `truffle validate --instance-type ${type} --count ${machines} --days ${days}`,
      `truffle capacity --blocks --offerings --instance-types ${type} --count ${machines} --days ${sold}`,
    ],
    corrections: [
      `A block lasts 1 to 14 days, or whole weeks up to ${BLOCK_DAYS_MAX} days, and can be extended; it is not limited to 14 days.`,
      'A block is paid in full when it is bought, and cannot be cancelled.',
      ...(purpose === 'retraining'
        ? [
            `A block can be booked ${WEEKS_AHEAD_MAX} weeks ahead at most, so next year's quarters cannot be booked at once.`,
          ]
        : []),
    ],
    sources: [SOURCES.blocks, SOURCES.blocksHow, SOURCES.blocksPrice],
  }
}

function inferenceAdvice(wish: AdviceQuery): Advice {
  const useCase = wish.isScaling === true ? 'Auto-scaling inference' : 'Production inference API'
  return {
    ...odcrAdvice(wish, useCase),
    reasons: [
      'The service has no end, and a launch must not fail for lack of capacity.',
      wish.isScaling === true
        ? 'Reserve the machines of the lowest load; take the rest on demand or as spot, because reserved machines cost the same idle.'
        : 'Reserve machines that always run: they cost the same as without a reservation.',
    ],
    corrections: [
      ODCR_IS_BILLED,
      'A Capacity Block also serves inference for a fixed time; AWS names it for short surges.',
    ],
    sources: [SOURCES.odcr, SOURCES.odcrPrice],
  }
}

function flexibleAdvice(wish: AdviceQuery): Advice {
  const useCase = wish.purpose === 'development' ? 'ML development' : 'Research experiments'
  if (wish.isGuaranteed === true)
    return {
      ...odcrAdvice(wish, useCase),
      reasons: ['Launches never fail for lack of capacity while the reservation has room.'],
      corrections: [
        ODCR_IS_BILLED,
        'For experiments of a few hours a day, a reservation costs several times what on demand costs.',
      ],
      sources: [SOURCES.odcr, SOURCES.odcrPrice],
    }
  if (wish.isInterruptible === true) return spotAdvice(wish, useCase)
  return {
    useCase,
    kind: 'on-demand',
    reasons: ['Machines cost only while they run, and no launch has to be certain.'],
    commands: [`truffle search ${wish.type} --show-price`, `truffle quotas ${wish.type}`],
    corrections: [ODCR_IS_BILLED],
    sources: [SOURCES.odcrPrice],
  }
}

function odcrAdvice(
  { type, machines }: AdviceQuery,
  useCase: string,
): Pick<Advice, 'useCase' | 'kind' | 'commands'> {
  return {
    useCase,
    kind: 'odcr',
    commands: [
      `truffle capacity --odcr --instance-types ${type} --min-capacity ${machines}`,
      `truffle quotas ${type}`,
    ],
  }
}

function spotAdvice({ type }: AdviceQuery, useCase: string): Advice {
  return {
    useCase,
    kind: 'spot',
    reasons: [
      'It continues from a checkpoint, so the lowest price matters more than a guarantee.',
      'AWS interrupts machines with a notice of two minutes; with several types and zones that is rarer.',
    ],
    commands: [`truffle spot ${type} --show-savings --sort-by-price`, 'crucible rehearse train.py'],
    corrections: [
      'A maximum price does not make spot cheaper: it makes interruptions more frequent. Leave it out.',
    ],
    sources: [SOURCES.spot],
  }
}
