import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import { cutOffOf, isLive, whyUnfit } from '../market/reservations'
import type { MachineType, Reservation, Subnet } from '../sdk/api'
import type { BlockOffering } from '../sdk/api-capacity'
import { BLOCK_COUNT_MAX } from './block-durations'
import { coverageOf, isCovered, perUsefulHour } from './coverage'
import { feeInWords, offeringUsableUntil } from './offerings'
import { roomIn } from './owned'
import { machinesThatFit, type VcpuQuota } from './quotas'

/** Needs of a training run. */
export interface RunNeeds {
  type: string
  count: number
  days: number
  /** Start of the run; as soon as possible if missing. */
  startsAtMs?: number | undefined
  zones: readonly string[]
}

/** Facts about one Region. */
export interface RegionFacts {
  region: string
  /** The machine type; missing if the Region does not sell it. */
  type: MachineType | undefined
  zones: string[]
  reservations: Reservation[]
  offerings: BlockOffering[]
  subnets: Subnet[]
  quota: VcpuQuota | undefined
  usdPerHour: number | undefined
}

type OptionKind = 'capacity-block' | 'odcr' | 'offering' | 'on-demand'

/** One option for getting the machines. */
export interface RunOption {
  kind: OptionKind
  region: string
  zone: string
  /** Reservation or offering. */
  id: string | undefined
  /** Machines that a launch can get at `startsAtMs`; undefined on demand, where only the launch tells. */
  room: number | undefined
  startsAtMs: number
  /** When EC2 begins to end machines; missing for an on-demand reservation. */
  usableUntilMs: number | undefined
  /** Cost of the run in addition to amounts that are already paid. */
  costUsd: number | undefined
  /** That cost per hour in which one machine works for the run. */
  usdPerUsefulHour: number | undefined
  /** Time of the run after the machines are ended; 0 if it fits. */
  shortMs: number
  ultraCluster: boolean
  efaInterfaces: number
  /** Conditions that must be met first. */
  conditions: string[]
  /** Obstacles, which exclude the option. */
  obstacles: string[]
}

type Verdict = 'yes' | 'conditions' | 'no'

export interface Validation {
  verdict: Verdict
  /** The best first. */
  options: RunOption[]
  /** Own capacity of the type that does not do, with the reasons. */
  rejected: RunOption[]
  missing: string[]
}

/** How much shorter than the run a block may be: the run saves and stops a little earlier. */
const SHORT_BY_MAX_MS = DAY_MS
const RANK: Readonly<Record<OptionKind, number>> = {
  'capacity-block': 0,
  odcr: 1,
  offering: 2,
  'on-demand': 3,
}

/** Returns whether the machines of a run are available, and how. On-demand machines are never certain, so they alone do not make a yes. */
export function validateRun(wish: RunNeeds, facts: readonly RegionFacts[], nowMs: number): Validation {
  const candidates = facts.flatMap((one) =>
    candidatesIn(wish, one, nowMs).map((option) => compared(option, wish)),
  )
  const options = candidates
    .filter(({ obstacles }) => obstacles.length === 0)
    .sort(
      (a, b) =>
        Number(a.conditions.length > 0) - Number(b.conditions.length > 0) ||
        Number(!isCovered(a)) - Number(!isCovered(b)) ||
        RANK[a.kind] - RANK[b.kind] ||
        compareKnown(a.usdPerUsefulHour, b.usdPerUsefulHour) ||
        a.startsAtMs - b.startsAtMs,
    )
  const certain = options.filter(({ kind }) => kind !== 'on-demand')
  const verdict: Verdict =
    certain.length === 0 ? 'no' : certain[0]!.conditions.length === 0 ? 'yes' : 'conditions'
  return {
    verdict,
    options: [...certain, ...options.filter(({ kind }) => kind === 'on-demand')],
    rejected: candidates.filter(({ obstacles }) => obstacles.length > 0),
    missing: verdict === 'no' ? missingOf(wish, facts) : [],
  }
}

/** Options of different lengths are compared by the time that they give to the run. */
function compared(option: RunOption, { count, days }: RunNeeds): RunOption {
  const coverage = coverageOf({ fromMs: option.startsAtMs, untilMs: option.usableUntilMs }, days)
  return {
    ...option,
    shortMs: coverage.shortMs,
    usdPerUsefulHour: perUsefulHour(option.costUsd, count, coverage),
  }
}

/** An unknown price comes last. */
function compareKnown(a: number | undefined, b: number | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  return a - b
}

function candidatesIn(wish: RunNeeds, facts: RegionFacts, nowMs: number): RunOption[] {
  const isInZone = ({ zone }: { zone: string }): boolean =>
    wish.zones.length === 0 || wish.zones.includes(zone)
  const owned = facts.reservations
    .filter((one) => one.type === wish.type && isLive(one))
    .filter(isInZone)
    .map((one) => ofReservation(wish, { facts, reservation: one, nowMs }))
  const offered = facts.offerings
    .filter(isInZone)
    .map((one) => ofOffering(wish, { facts, offering: one, nowMs }))
  const zones = facts.zones.filter((zone) => isInZone({ zone }))
  const onDemand = zones.length === 0 ? [] : [onDemandOption(wish, { facts, zone: zones[0]!, nowMs })]
  return [...owned, ...offered, ...onDemand]
}

function ofReservation(
  wish: RunNeeds,
  { facts, reservation, nowMs }: { facts: RegionFacts; reservation: Reservation; nowMs: number },
): RunOption {
  const { isBlock, zone, id, endsAtMs } = reservation
  const startsAtMs = Math.max(nowMs, reservation.startsAtMs ?? nowMs, wish.startsAtMs ?? 0)
  const usableUntilMs = cutOffOf(reservation)
  const option = optionOf({
    kind: isBlock ? 'capacity-block' : 'odcr',
    zone,
    id,
    facts,
    startsAtMs,
    usableUntilMs,
  })
  const unfit = whyUnfit(reservation)
  if (unfit !== undefined) option.obstacles.push(unfit)
  option.room = roomIn(reservation)
  if (option.room < wish.count) option.obstacles.push(`it has room for ${option.room} of ${wish.count}`)
  judgeState(option, reservation, { wish, nowMs })
  judgeTime(option, wish, endsAtMs)
  judgeNetwork(option, wish, facts)
  // A block is paid for; a reservation on demand costs the same with and without the run.
  option.costUsd = isBlock ? 0 : costOnDemand(wish, facts)
  return option
}

function judgeState(
  option: RunOption,
  { state, startsAtMs }: Reservation,
  { wish, nowMs }: { wish: RunNeeds; nowMs: number },
): void {
  if (state === 'payment-pending') option.conditions.push('its payment must succeed first')
  else if (state !== 'active' && state !== 'scheduled')
    option.conditions.push(`it is ${state}: AWS has not confirmed it`)
  const begins = startsAtMs ?? nowMs
  if (begins <= nowMs) return
  if (wish.startsAtMs === undefined) option.conditions.push(`it cannot be used before ${instant(begins)}`)
  else if (begins > wish.startsAtMs)
    option.conditions.push(`it begins ${instant(begins)}, after the wanted start`)
}

/** A block ends its machines. The machines of an on-demand reservation keep running, at the price on demand. */
function judgeTime(option: RunOption, wish: RunNeeds, endsAtMs: number | undefined): void {
  if (option.kind === 'odcr') {
    const neededUntilMs = option.startsAtMs + wish.days * DAY_MS
    if (endsAtMs !== undefined && endsAtMs < neededUntilMs)
      option.conditions.push(
        `the reservation ends ${instant(endsAtMs)}; running machines continue, but a new launch has no reserved room`,
      )
    return
  }
  const { shortMs } = coverageOf({ fromMs: option.startsAtMs, untilMs: option.usableUntilMs }, wish.days)
  if (isCovered({ shortMs })) return
  const short = `EC2 begins to end machines ${instant(option.usableUntilMs!)}, ${hours(shortMs)} before ${inDays(wish.days)} are over`
  if (shortMs <= SHORT_BY_MAX_MS) option.conditions.push(short)
  else option.obstacles.push(option.kind === 'offering' ? short : `${short}; extending it may be possible`)
}

function judgeNetwork(option: RunOption, wish: RunNeeds, { subnets }: RegionFacts): void {
  const own = subnets.filter(({ zone }) => zone === option.zone)
  const most = Math.max(0, ...own.map(({ freeAddresses }) => freeAddresses))
  if (own.length === 0)
    option.conditions.push(
      `${option.zone} has no subnet: aws ec2 create-default-subnet --availability-zone ${option.zone} --region ${option.region}`,
    )
  else if (most < wish.count)
    option.conditions.push(
      `no subnet of ${option.zone} has ${wish.count} free addresses; the largest has ${most}`,
    )
  if (wish.count > 1 && option.efaInterfaces === 0)
    option.conditions.push('the type has no EFA: training on several machines is slow')
  if (wish.count > 1 && option.kind === 'odcr')
    option.conditions.push(
      'it is not in an UltraCluster; machines are close together only if it was created in a cluster placement group',
    )
}

function ofOffering(
  wish: RunNeeds,
  { facts, offering, nowMs }: { facts: RegionFacts; offering: BlockOffering; nowMs: number },
): RunOption {
  const usableUntilMs = offeringUsableUntil(offering)
  const startsAtMs = Math.max(nowMs, offering.startsAtMs, wish.startsAtMs ?? 0)
  const { zone, id } = offering
  const option = optionOf({ kind: 'offering', zone, id, facts, startsAtMs, usableUntilMs })
  option.room = offering.count
  option.costUsd = Number(offering.upfrontFee)
  option.conditions.push(
    `it must be bought first, for ${feeInWords(offering)} at once, and cannot be cancelled`,
  )
  if (wish.startsAtMs !== undefined && offering.startsAtMs > wish.startsAtMs)
    option.conditions.push(`it begins ${instant(offering.startsAtMs)}, after the wanted start`)
  judgeTime(option, wish, offering.endsAtMs)
  judgeNetwork(option, wish, facts)
  return option
}

function onDemandOption(
  wish: RunNeeds,
  { facts, zone, nowMs }: { facts: RegionFacts; zone: string; nowMs: number },
): RunOption {
  const startsAtMs = Math.max(nowMs, wish.startsAtMs ?? 0)
  const option = optionOf({
    kind: 'on-demand',
    zone,
    id: undefined,
    facts,
    startsAtMs,
    usableUntilMs: undefined,
  })
  const { quota, type } = facts
  const fit = quota === undefined || type === undefined ? undefined : machinesThatFit(quota, type.cpus)
  option.costUsd = costOnDemand(wish, facts)
  option.conditions.push('nothing is reserved: capacity is unknown until launch')
  if (fit !== undefined && fit < wish.count)
    option.obstacles.push(`the vCPU quota ${quota!.code} of ${facts.region} allows ${fit} more machines`)
  return option
}

function optionOf({
  kind,
  zone,
  id,
  facts,
  startsAtMs,
  usableUntilMs,
}: Pick<RunOption, 'kind' | 'zone' | 'id' | 'startsAtMs' | 'usableUntilMs'> & {
  facts: RegionFacts
}): RunOption {
  return {
    kind,
    region: facts.region,
    zone,
    id,
    startsAtMs,
    usableUntilMs,
    room: undefined,
    costUsd: undefined,
    usdPerUsefulHour: undefined,
    shortMs: 0,
    conditions: [],
    obstacles: [],
    ultraCluster: kind === 'capacity-block' || kind === 'offering',
    efaInterfaces: facts.type?.efaInterfaces ?? 0,
  }
}

function costOnDemand({ count, days }: RunNeeds, { usdPerHour }: RegionFacts): number | undefined {
  return usdPerHour === undefined ? undefined : usdPerHour * count * days * 24
}

function missingOf({ type, count, days }: RunNeeds, facts: readonly RegionFacts[]): string[] {
  const sells = facts.filter((one) => one.type !== undefined)
  if (sells.length === 0) return [`No Region that answered sells ${type}.`]
  const fits = (one: RegionFacts): number | undefined =>
    one.quota === undefined || one.type === undefined ? undefined : machinesThatFit(one.quota, one.type.cpus)
  const isQuotaShort = sells.every((one) => (fits(one) ?? count) < count)
  return [
    `No Capacity Block or reservation of this account has room for ${count}x ${type} for ${inDays(days)}.`,
    count > BLOCK_COUNT_MAX
      ? `A Capacity Block has at most ${BLOCK_COUNT_MAX} instances; larger runs need several.`
      : 'No Capacity Block for sale fits these dates.',
    ...(isQuotaShort
      ? [`No Region has vCPU quota for ${count} more on demand: \`truffle quotas ${type}\`.`]
      : []),
  ]
}

const inDays = (days: number): string => `${days} ${days === 1 ? 'day' : 'days'}`
const instant = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
const hours = (ms: number): string => `${Math.round(ms / HOUR_MS)} h`
