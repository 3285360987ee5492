import { formatUsd } from '../money/money'
import type { RejectionCode, RejectionGroup } from './plan'

interface Kind {
  /** Follows "12 offers". */
  of: string
  /** Change in the job file, or another remedy; missing if the reason contains it. */
  change?: string
  /** Whether the reason has figures or names of a single offer, so that an example is shown. */
  hasDetail?: true
  /** Whether each reason is a separate obstacle with its own remedy. */
  isEachApart?: true
}

const KINDS: Readonly<Record<RejectionCode, Kind>> = {
  deadline: { of: 'too slow for the deadline', hasDetail: true, change: 'set a later `deadline`' },
  budget: { of: 'above the budget', hasDetail: true, change: 'raise `budget`' },
  'max-price': { of: 'that may cost more per hour than the job allows', change: 'raise `max_price`' },
  backend: { of: 'on backends or capacity types that the job does not allow', change: 'extend `backends`' },
  region: { of: 'outside the Regions that the job allows', change: 'extend `regions`' },
  isolation: { of: 'on hardware that others also use', hasDetail: true },
  interruptible: {
    of: 'of spot capacity, which can be interrupted at any time',
    change: 'set `interruptible: true` if the job saves checkpoints',
  },
  preemptible: {
    of: 'on demand that can be interrupted',
    change: 'set `interruptible: true`, or `accept: preemptible-on-demand`',
  },
  'billed-on': {
    of: 'billed until a call ends the machine, which no budget can limit while the control plane is down',
    change: 'set `accept: billed-until-terminated`',
  },
  cpus: { of: 'with a different number of CPU cores', hasDetail: true, change: 'change `cpus`' },
  memory: { of: 'with a different memory size', hasDetail: true, change: 'change `memory`' },
  gpus: { of: 'with a different number of GPUs', hasDetail: true, change: 'change `gpus`' },
  disk: { of: 'with too small a disk', hasDetail: true, change: 'lower `disk`' },
  'gpu-memory': {
    of: 'with GPUs of a different memory size',
    hasDetail: true,
    change: 'change `gpu_memory`',
  },
  accelerator: { of: 'with other GPU models', hasDetail: true, change: 'extend `accelerators`' },
  'instance-type': { of: 'of other machine types', hasDetail: true, change: 'extend `instance_type`' },
  image: { of: 'on backends that run no container images', change: 'leave out `image`' },
  unsupported: {
    of: 'on backends that cannot follow a key of the job',
    hasDetail: true,
    isEachApart: true,
    change: 'leave out the key',
  },
  target: { of: 'not at the requested target of the migration' },
  'kept-for-gpus': { of: 'in reservations with GPUs, for a job without GPUs', hasDetail: true },
  reservation: {
    of: 'outside the reservation that the job names',
    change: 'leave out `reservation`',
  },
  held: { of: 'in reservations that are kept for others', hasDetail: true, isEachApart: true },
  awaited: { of: 'in reservations that other jobs get first', hasDetail: true, isEachApart: true },
  unusable: { of: 'that this deployment cannot use', hasDetail: true, isEachApart: true },
  'run-limit': { of: 'whose machines the provider ends too early', hasDetail: true },
  'reservation-end': { of: 'in reservations that end too early', hasDetail: true },
  quota: {
    of: 'beyond the quota of the account',
    hasDetail: true,
    isEachApart: true,
    change: 'request a higher quota',
  },
  stock: { of: 'without free capacity now', hasDetail: true, change: 'wait, or allow more types and places' },
}

/**
 * Describes excluded offers in one sentence for each kind of reason, the most frequent first: the number of offers, an example, and the
 * remedy. The example of offers above the budget is the cheapest.
 */
export function ruledOutInWords(groups: readonly RejectionGroup[]): string[] {
  const kinds = new Map<string, { example: RejectionGroup; count: number }>()
  for (const group of groups) {
    const { code, reason, count } = group
    const key = KINDS[code].isEachApart === true ? `${code} ${reason}` : code
    const known = kinds.get(key)
    if (known === undefined) kinds.set(key, { example: group, count })
    else known.count += count
  }
  return [...kinds.values()].sort((a, b) => b.count - a.count).map(sentenceOf)
}

function sentenceOf({ example, count }: { example: RejectionGroup; count: number }): string {
  const { of, change, hasDetail } = KINDS[example.code]
  const name = exampleKeyOf(example).replace(/\/$/, '')
  const detail = hasDetail === true ? ` (${example.reason})` : ''
  const offers = count === 1 ? `1 offer ${of}: ${name}` : `${count} offers ${of}, such as ${name}`
  return `${offers}${detail}${change === undefined ? '' : `; ${change} to include ${count === 1 ? 'it' : 'them'}`}`
}

/** Describes excluded offers in one sentence each; offers that were only counted follow as one sentence. */
export function ruledOutSingly(groups: readonly RejectionGroup[]): string[] {
  return groups.flatMap(({ offerKeys, count, reason, costMicroUsd, costsMicroUsd = [] }) => {
    const unnamed = count - offerKeys.length
    const lines = offerKeys.map((key, at) => {
      const cost = costsMicroUsd[at]
      // The group's reason has the figures of the cheapest.
      const own =
        cost === undefined || cost === costMicroUsd
          ? reason
          : `costs about ${formatUsd(cost)}, more than the budget`
      return `${key.replace(/\/$/, '')}: ${own}`
    })
    return unnamed > 0 ? [...lines, `${unnamed} more: ${reason}`] : lines
  })
}

/** The offer that the reason is about. */
function exampleKeyOf({ offerKeys, costMicroUsd, costsMicroUsd = [] }: RejectionGroup): string {
  const at = costMicroUsd === undefined ? 0 : Math.max(0, costsMicroUsd.indexOf(costMicroUsd))
  return offerKeys[at] ?? ''
}
