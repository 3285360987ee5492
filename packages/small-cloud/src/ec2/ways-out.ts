/** Describes gateways, routes and endpoints. */
import { z } from 'zod'
import { dryRun, filter, list, paging, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import type { Ec2 } from './ec2'
import { chosen, page, select } from './filters'
import { KINDS, visible } from './network-parts'
import { endpointWords, gatewayWords, natWords, tableWords } from './network-words'

const filters = { Filter: list(filter).default([]) }

export function wayActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeRouteTables: describeRouteTables(ec2),
    DescribeInternetGateways: describeGateways(ec2),
    DescribeNatGateways: describeNatGateways(ec2),
    DescribeVpcEndpoints: describeVpcEndpoints(ec2),
  }
}

function describeRouteTables(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...filters, ...paging, RouteTableId: list(text).default([]) }),
    run({ Filter, RouteTableId, ...wish }, { region }) {
      const all = ec2.region(region)
      const tables = chosen(visible(ec2, all.routeTables), RouteTableId, {
        by: ({ id }) => id,
        ...KINDS.table,
      })
      const found = select(tables, Filter, {
        'route-table-id': ({ id }) => id,
        'vpc-id': ({ vpcId }) => vpcId,
        'association.subnet-id': ({ associations }) => associations.map(({ subnetId }) => subnetId),
        'association.main': ({ isMain }) => String(isMain),
      })
      const { items, nextToken } = page(found, wish, { most: 100 })
      return { routeTableSet: items.map((each) => tableWords(ec2, all, each)), nextToken }
    },
  })
}

function describeGateways(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...filters, ...paging, InternetGatewayId: list(text).default([]) }),
    run({ Filter, InternetGatewayId, ...wish }, { region }) {
      const all = visible(ec2, ec2.region(region).gateways)
      const wanted = chosen(all, InternetGatewayId, { by: ({ id }) => id, ...KINDS.gateway })
      const found = select(wanted, Filter, {
        'internet-gateway-id': ({ id }) => id,
        'attachment.vpc-id': ({ vpcId }) => vpcId,
      })
      const { items, nextToken } = page(found, wish, { most: 1000 })
      return { internetGatewaySet: items.map((each) => gatewayWords(ec2, each)), nextToken }
    },
  })
}

function describeNatGateways(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...filters, ...paging, NatGatewayId: list(text).default([]) }),
    run({ Filter, NatGatewayId, ...wish }, call) {
      const { nat } = ec2.region(call.region)
      const gateways = nat === undefined ? [] : [nat]
      const words = { code: 'NatGatewayNotFound', what: 'NAT gateway' }
      const found = select(chosen(gateways, NatGatewayId, { by: ({ id }) => id, ...words }), Filter, {
        'nat-gateway-id': ({ id }) => id,
        'subnet-id': ({ subnet }) => subnet.id,
        'vpc-id': ({ subnet }) => subnet.vpcId,
        state: () => 'available',
      })
      const { items, nextToken } = page(found, wish, { most: 1000 })
      return { natGatewaySet: items.map((each) => natWords(ec2, each, call)), nextToken }
    },
  })
}

function describeVpcEndpoints(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...filters, ...paging, VpcEndpointId: list(text).default([]) }),
    run({ Filter, VpcEndpointId, ...wish }, { region }) {
      const endpoints = visible(ec2, ec2.region(region).endpoints)
      const wanted = chosen(endpoints, VpcEndpointId, { by: ({ id }) => id, ...KINDS.endpoint })
      const found = select(wanted, Filter, {
        'vpc-endpoint-id': ({ id }) => id,
        'service-name': ({ service }) => service,
        'vpc-id': ({ vpcId }) => vpcId,
        'vpc-endpoint-type': ({ type }) => type,
        'vpc-endpoint-state': () => 'available',
      })
      const { items, nextToken } = page(found, wish, { most: 1000 })
      return { vpcEndpointSet: items.map((each) => endpointWords(ec2, each)), nextToken }
    },
  })
}
