import type { Pins } from '../../../core/offer'

/** Images have a different id in each Region, so a job pins one for each Region: `image/x86_64@eu-west-1`. */
const separator = '@'

/** The pins of one Region, without the Region in their names. Pins without a Region belong to the first Region. */
export function withoutRegion(
  pins: Pins | undefined,
  region: string,
  firstRegion: string,
): Record<string, string> {
  const entries = Object.entries(pins ?? {})
  const bare = entries.filter(([name]) => !name.includes(separator))
  const suffix = `${separator}${region}`
  const own = entries
    .filter(([name]) => name.endsWith(suffix))
    .map(([name, value]) => [name.slice(0, -suffix.length), value] as const)
  return Object.fromEntries([...(region === firstRegion ? bare : []), ...own])
}

export function withRegion(pins: Pins, region: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(pins).map(([name, value]) => [`${name}${separator}${region}`, value]),
  )
}
