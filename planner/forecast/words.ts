import { chanceInWords, type Forecast, type ForecastPart } from '../../core/job/forecast'
import { formatUsd } from '../../core/money/money'
import { formatDuration } from '../../core/time/time'

/** `90 % range: $5.20 to $8.10, 6h 30m to 10h, mainly from the training time and interruptions` */
export function rangeInWords({ cost, finish, drivers }: Forecast): string {
  const range = (low: string, high: string): string => (low === high ? low : `${low} to ${high}`)
  const ranges = [
    ...(cost.highMicroUsd === 0 ? [] : [range(formatUsd(cost.lowMicroUsd), formatUsd(cost.highMicroUsd))]),
    range(formatDuration(finish.lowMs), formatDuration(finish.highMs)),
  ]
  // A free offer is uncertain only in time.
  const parts = drivers.cost.length === 0 ? drivers.finish : drivers.cost
  const causes = parts.map((part) => PART_IN_WORDS[part])
  const mainly = causes.length === 0 ? '' : `, mainly from ${listed(causes)}`
  return `90 % range: ${ranges.join(', ')}${mainly}`
}

/** `83 % chance to keep the deadline`; nothing without a limit that can be judged. */
export function chancesInWords({ chances }: Pick<Forecast, 'chances'>): string[] {
  const { deadline, budget } = chances
  return [
    ...(deadline === undefined ? [] : [`${chanceInWords(deadline)} chance to keep the deadline`]),
    ...(budget === undefined ? [] : [`${chanceInWords(budget)} chance to keep the budget`]),
  ]
}

/** `the boot`, as in the range of a plan. */
export function partInWords(part: ForecastPart): string {
  return PART_IN_WORDS[part]
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)!}`
}

const PART_IN_WORDS: Readonly<Record<ForecastPart, string>> = {
  wait: 'the wait for a machine',
  boot: 'the boot',
  image: 'the image pull',
  setup: 'the set-up',
  fetch: 'the download of its data',
  restore: 'resuming',
  duration: 'the training time',
  speed: 'the speed of its GPU',
  saving: 'writing checkpoints',
  interruptions: 'interruptions',
  stop: 'the last upload',
  billing: 'steps of billing',
  price: 'its price',
  store: 'storage and requests',
}
