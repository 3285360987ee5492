import { findTopology, networkTrees, parsePattern, type NetworkNode } from '../../backends/ec2/capacity'
import type { Output } from '../kit/output'
import type { CapacityOptions } from './owned'
import { endingOfNothing, unansweredRows, type Session } from './session'

const COLUMNS = ['reservation_id', 'instance_type', 'region', 'availability_zone', 'state', 'network_nodes']

/** Shows how reserved machines are placed: those under one lower node are closest together. */
export async function showTopology(session: Session, options: CapacityOptions): Promise<void> {
  const inquiry = session.inquiry(options)
  const asked = await findTopology(inquiry, {
    patterns: (options.instanceTypes ?? []).map(parsePattern),
    zones: options.az ?? [],
  })
  const places = asked.answers.flatMap(({ region, value }) => value.map((place) => ({ region, ...place })))
  const hidden = places.filter(({ nodes }) => nodes.length === 0).length
  session.answer({
    command: 'capacity',
    results: places.map(({ region, reservation, type, zone, state, nodes }) => ({
      reservation_id: reservation,
      instance_type: type,
      region,
      availability_zone: zone,
      state,
      network_nodes: nodes,
    })),
    columns: COLUMNS,
    more: { topology: true },
    unanswered: unansweredRows(asked.unanswered),
    notes: [
      'AWS shows pending and active reservations only; the ids of nodes are those of this account.',
      ...(hidden > 0 ? [`AWS shows no network nodes for ${hidden} of the reservations.`] : []),
      ...(await inquiry.notes()),
    ],
    show: (out) => {
      if (places.length === 0) return out.line('No active reservation.')
      networkTrees(places).forEach((node) => showNode(out, node, ''))
    },
    ending: places.length === 0 ? endingOfNothing(asked) : undefined,
  })
}

function showNode(out: Output, { id, below, reservations }: NetworkNode, indent: string): void {
  out.line(`${indent}${id}`)
  const inside = `${indent}  `
  for (const { reservation, type, state } of reservations)
    out.line(`${inside}${out.paint.bold(reservation)}  ${type}  ${state}`)
  for (const node of below) showNode(out, node, inside)
}
