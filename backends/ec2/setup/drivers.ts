import type { Driver } from './driver'
import { endpoints, groups } from './doors'
import { gateways, routes, subnets, vpcs } from './network'
import type { Piece } from './pieces'
import { linkedRoles, profiles, roles } from './roles'
import { buckets } from './store'

type Drivers = { readonly [K in Piece['kind']]: Driver<Extract<Piece, { kind: K }>> }

const DRIVERS: Drivers = {
  'linked-role': linkedRoles,
  bucket: buckets,
  role: roles,
  profile: profiles,
  vpc: vpcs,
  gateway: gateways,
  routes,
  subnet: subnets,
  endpoint: endpoints,
  group: groups,
}

export function driverOf(kind: Piece['kind']): Driver<Piece> {
  return DRIVERS[kind]
}

/** In the order of removal. */
export const REMOVAL_ORDER: readonly Piece['kind'][] = [
  ...(['endpoint', 'subnet', 'routes', 'gateway', 'group', 'vpc'] as const),
  ...(['bucket', 'profile', 'role', 'linked-role'] as const),
]
