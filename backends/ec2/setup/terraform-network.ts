import { networkOf, type Choices } from './description'
import type { Block, Value } from './hcl'
import type { Piece, SubnetPiece } from './pieces'
import { named, plain, resource, the, variable, type RegionalPlace } from './terraform-terms'

type NetworkPiece = Exclude<
  Extract<Piece, { kind: 'vpc' | 'gateway' | 'routes' | 'endpoint' | 'group' }>,
  SubnetPiece
>

/** What machines of one Region need there. */
export function networkBlocks(choices: Choices, place: RegionalPlace): Block[] {
  const pieces = networkOf(choices)
  const subnets = pieces.filter((piece) => piece.kind === 'subnet')
  const others = pieces.filter((piece): piece is NetworkPiece => piece.kind !== 'subnet')
  return [...others.map((piece) => blockOf(piece, place)), ...subnetBlocks(subnets, place)]
}

/** Zones and their address ranges, as the value of the Region's variable. */
export function zonesOf(choices: Choices): Record<string, string> {
  const subnets = networkOf(choices).filter((piece) => piece.kind === 'subnet')
  return Object.fromEntries(subnets.map(({ zone, cidr }) => [zone, cidr]))
}

/** The name of a resource of the Region, and its address. */
const nameIn = ({ suffix }: RegionalPlace, id: string): string => `${id}${suffix}`
const addressIn = (place: RegionalPlace, type: string, id: string): string => `${type}.${nameIn(place, id)}`
const own = ({ provider }: RegionalPlace): Record<string, Value> =>
  provider === undefined ? {} : { provider }

function blockOf(piece: NetworkPiece, place: RegionalPlace): Block {
  const id = nameIn(place, piece.id)
  const vpc = the(`${addressIn(place, 'aws_vpc', 'vpc')}.id`)
  switch (piece.kind) {
    case 'vpc':
      return resource('aws_vpc', id, { ...own(place), cidr_block: piece.cidr, ...named(piece.name) })
    case 'gateway':
      return resource('aws_internet_gateway', id, { ...own(place), vpc_id: vpc, ...named(piece.name) })
    case 'routes': {
      const gateway = the(`${addressIn(place, 'aws_internet_gateway', 'gateway')}.id`)
      return resource('aws_route_table', id, { ...own(place), vpc_id: vpc, ...named(piece.name) }, [
        { kind: 'route', attributes: { cidr_block: '0.0.0.0/0', gateway_id: gateway } },
      ])
    }
    case 'endpoint':
      return resource('aws_vpc_endpoint', id, {
        ...own(place),
        vpc_id: vpc,
        service_name: plain(piece.service),
        route_table_ids: [the(`${addressIn(place, 'aws_route_table', 'routes')}.id`)],
        ...named(piece.name),
      })
    case 'group': {
      const vpc_id = piece.vpcId === undefined ? vpc : plain(piece.vpcId)
      const facts = { name: plain(piece.name), description: piece.description, vpc_id }
      const out = { from_port: 0, to_port: 0, protocol: '-1', cidr_blocks: ['0.0.0.0/0'] }
      return resource('aws_security_group', id, { ...own(place), ...facts, ...named(piece.name) }, [
        { kind: 'egress', attributes: out },
      ])
    }
  }
}

function subnetBlocks(subnets: readonly SubnetPiece[], place: RegionalPlace): Block[] {
  if (subnets.length === 0) return []
  const id = nameIn(place, 'zone')
  return [
    resource('aws_subnet', id, {
      ...own(place),
      for_each: variable(nameIn(place, 'zones')),
      vpc_id: the(`${addressIn(place, 'aws_vpc', 'vpc')}.id`),
      availability_zone: the('each.key'),
      cidr_block: the('each.value'),
      map_public_ip_on_launch: true,
      ...named('${var.prefix} ${each.key}'),
    }),
    resource('aws_route_table_association', id, {
      ...own(place),
      ...{ for_each: the(addressIn(place, 'aws_subnet', 'zone')), subnet_id: the('each.value.id') },
      route_table_id: the(`${addressIn(place, 'aws_route_table', 'routes')}.id`),
    }),
  ]
}
