import { ec2Error, invalid } from '../errors'
import type { Host } from '../host'
import { whyUnusable } from '../market/usable'

/** Why machines of a type never run jobs here, if they never do; nothing is known of any type if they cannot be read. */
export async function unfitTypes(
  host: Host,
  signal: AbortSignal,
): Promise<(type: string) => string | undefined> {
  try {
    const types = await host.market.types(signal)
    return (name) => {
      const type = types.find((one) => one.name === name)
      return type === undefined
        ? 'it is unknown, or CRUCIBLE_EC2_TYPES excludes it'
        : whyUnusable(type, host.config)
    }
  } catch (error) {
    if (signal.aborted || ec2Error(error).class === 'auth') throw error
    return () => undefined
  }
}

/** Returns the requested types on which jobs can run; throws `invalid` if jobs can run on none of them. */
export async function fitTypes(
  host: Host,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const whyUnfit = await unfitTypes(host, signal)
  const fit = wanted.filter((type) => whyUnfit(type) === undefined)
  if (fit.length > 0) return fit
  const reasons = wanted.map((type) => `${type}: ${whyUnfit(type)}`)
  throw invalid(
    `no job could run in it (${reasons.join('; ')})`,
    'Name types of CRUCIBLE_EC2_TYPES, as AWS writes them, such as g6e.12xlarge.',
  )
}
