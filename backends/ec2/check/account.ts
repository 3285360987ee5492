import { isGlobMatch } from '../../../core/glob'
import { formatDuration, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import type { Problem } from '../../backend'
import { TYPES_DEFAULT } from '../config'
import { MAKE_SPOT_ROLE } from '../meanings'
import type { Host } from '../host'

/** Name of the role in every AWS account. */
const SPOT_ROLE = 'AWSServiceRoleForEC2Spot'
/** Far more than an answer's travel time, and far less than the five minutes that AWS tolerates. */
const CLOCK_OFF_MS = MINUTE_MS
/** Types listed in one sentence. */
const NAMED_MAX = 5

/** Checks the clock. Calls are signed with the provider's time once it is known, but leases and prices use this machine's clock. */
export function checkClock(aheadMs: number): Problem[] {
  if (Math.abs(aheadMs) < CLOCK_OFF_MS) return []
  const way = aheadMs > 0 ? 'behind' : 'ahead of'
  return [
    {
      severity: 'warning',
      message: `the clock of this machine is ${formatDuration(Math.round(Math.abs(aheadMs) / SECOND_MS) * SECOND_MS)} ${way} that of AWS`,
      remedy: 'Enable NTP: timedatectl set-ntp true.',
    },
  ]
}

/** Checks whether spot machines can be launched. */
export async function checkSpotRole({ api, config }: Host, signal: AbortSignal): Promise<Problem[]> {
  if (!config.hasSpot || (await api.account.hasRole(SPOT_ROLE, signal))) return []
  return [
    {
      severity: 'warning',
      message: `the account has no service-linked role for spot machines (${SPOT_ROLE}); AWS creates it with the first one only for identities that may iam:CreateServiceLinkedRole`,
      remedy: `${MAKE_SPOT_ROLE}; or set CRUCIBLE_EC2_SPOT=no.`,
      failure: 'auth',
    },
  ]
}

/** Checks whether the configured types are available in zones with subnets. */
export async function checkTypes(host: Host, signal: AbortSignal): Promise<Problem[]> {
  const { config, market, places } = host
  const [types, zones, subnets] = await Promise.all([
    market.types(signal),
    market.zones(signal),
    places.byZone(signal),
  ])
  const absent = config.types.filter(
    (pattern) => !TYPES_DEFAULT.includes(pattern) && !types.some(({ name }) => isGlobMatch(pattern, name)),
  )
  const elsewhere = types
    .map(({ name }) => name)
    .filter((name) => ![...(zones.get(name) ?? [])].some((zone) => subnets.has(zone)))
  return [
    ...absent.map((pattern): Problem => ({
      severity: 'warning',
      message: `${config.region} has no machine type ${pattern}`,
      remedy: `Take it out of CRUCIBLE_EC2_TYPES, or set CRUCIBLE_EC2_REGION to a Region that has it.`,
    })),
    ...(elsewhere.length === 0
      ? []
      : [outOfReach(elsewhere, { zones, isAll: elsewhere.length === types.length })]),
  ]
}

function outOfReach(
  names: string[],
  { zones, isAll }: { zones: ReadonlyMap<string, ReadonlySet<string>>; isAll: boolean },
): Problem {
  const wanted = [...new Set(names.flatMap((name) => [...(zones.get(name) ?? [])]))].sort()
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ''
  const where = wanted.length === 0 ? 'in no zone' : `only in ${wanted.join(', ')}, which has no subnet`
  return {
    severity: isAll ? 'error' : 'warning',
    message: `${names.slice(0, NAMED_MAX).join(', ')}${more}: available ${where}`,
    remedy: 'Add subnets of those zones to CRUCIBLE_EC2_SUBNETS, or default ones to the network.',
  }
}
