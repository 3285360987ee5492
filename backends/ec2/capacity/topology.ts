import type { NetworkPlace } from '../sdk/api-capacity'
import type { Inquiry } from './inquiry'
import type { RegionAnswers } from './many-regions'
import { fitting, type TypePattern } from './patterns'

/** Returns the network places of machines in own reservations, by Region. */
export async function findTopology(
  inquiry: Inquiry,
  { patterns, zones }: { patterns: readonly TypePattern[]; zones: readonly string[] },
): Promise<RegionAnswers<NetworkPlace[]>> {
  return inquiry.each(async ({ capacity }) => {
    const places = await capacity.topology(inquiry.signal)
    return places
      .filter(({ type }) => fitting([{ name: type }], patterns).length > 0)
      .filter(({ zone }) => zones.length === 0 || zones.includes(zone))
      .sort(
        (a, b) => a.nodes.join().localeCompare(b.nodes.join()) || a.reservation.localeCompare(b.reservation),
      )
  })
}

/** A node of the network with its children. */
export interface NetworkNode {
  /** Id of the node; of the first one that of the zone. */
  id: string
  below: NetworkNode[]
  /** Reservations whose lowest known node this is. */
  reservations: NetworkPlace[]
}

/** The places as trees, one for each zone: reservations that share a lower node are closer together. */
export function networkTrees(places: readonly NetworkPlace[]): NetworkNode[] {
  const roots: NetworkNode[] = []
  for (const place of places) {
    let [siblings, at] = [roots, undefined as NetworkNode | undefined]
    for (const id of [place.zone, ...place.nodes]) {
      at = siblings.find((node) => node.id === id)
      if (at === undefined) siblings.push((at = { id, below: [], reservations: [] }))
      siblings = at.below
    }
    at!.reservations.push(place)
  }
  return roots
}
