import type { Site } from './driver'
import { machinesWithoutGrant } from './machines'
import type { RolePiece } from './pieces'

const MACHINES_NAMED_MAX = 3

/** Policies of an older set-up that machines still use, with an explanation of each. */
export async function formerOf(
  { formerPolicies = [] }: RolePiece,
  inline: ReadonlyMap<string, unknown>,
  site: Site,
): Promise<{ kept: string[]; notes: string[] }> {
  const there = formerPolicies.filter((name) => inline.has(name))
  const users = there.length === 0 ? [] : await machinesWithoutGrant(site)
  if (users.length === 0) return { kept: [], notes: [] }
  const more = users.length > MACHINES_NAMED_MAX ? ', ...' : ''
  const which = `${users.slice(0, MACHINES_NAMED_MAX).join(', ')}${more}`
  const note = (name: string): string =>
    `keeps its policy "${name}" while machines use it that were started without grants (${which}): run set-up again after their jobs`
  return { kept: there, notes: there.map(note) }
}
