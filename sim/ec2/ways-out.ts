/** How traffic leaves a network, as EC2 tells of it. */
import { z } from 'zod'
import { dryRun, filter, list, paging, text } from '../wire/query'
import { action, type Action } from '../wire/service'
import type { Ec2 } from './ec2'
import { chosen, page, select } from './filters'
import { natWords, routeTables, tableWords } from './network-words'

const filters = { Filter: list(filter).default([]) }

export function wayActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeRouteTables: describeRouteTables(ec2),
    DescribeNatGateways: describeNatGateways(ec2),
    DescribeVpcEndpoints: describeVpcEndpoints(ec2),
  }
}

function describeRouteTables(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...filters, ...paging, RouteTableId: list(text).default([]) }),
    run({ Filter, RouteTableId, ...wish }, { region }) {
      const tables = routeTables(ec2.region(region))
      const words = { code: 'InvalidRouteTableID.NotFound', what: 'routeTable ID' }
      const found = select(chosen(tables, RouteTableId, { by: ({ id }) => id, ...words }), Filter, {
        'route-table-id': ({ id }) => id,
        'vpc-id': ({ vpcId }) => vpcId,
        // The subnets of the main table follow it without an association of their own.
        'association.subnet-id': ({ subnets, isMain }) => (isMain ? [] : subnets.map(({ id }) => id)),
        'association.main': ({ isMain }) => String(isMain),
      })
      const { items, nextToken } = page(found, wish, { most: 100 })
      return { routeTableSet: items.map((each) => tableWords(ec2, each)), nextToken }
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
      const { endpoints, vpcId, createdAtMs } = ec2.region(region)
      const words = { code: 'InvalidVpcEndpointId.NotFound', what: 'Vpc Endpoint Id' }
      const found = select(chosen(endpoints, VpcEndpointId, { by: ({ id }) => id, ...words }), Filter, {
        'vpc-endpoint-id': ({ id }) => id,
        'service-name': ({ service }) => service,
        'vpc-id': () => vpcId,
        'vpc-endpoint-type': ({ type }) => type,
        'vpc-endpoint-state': () => 'available',
      })
      const { items, nextToken } = page(found, wish, { most: 1000 })
      const vpcEndpointSet = items.map(({ id, service, type, subnetIds, routeTableIds }) => ({
        vpcEndpointId: id,
        vpcEndpointType: type,
        vpcId,
        serviceName: service,
        state: 'available',
        routeTableIdSet: routeTableIds,
        subnetIdSet: subnetIds,
        privateDnsEnabled: type === 'Interface',
        creationTimestamp: new Date(createdAtMs),
        ownerId: ec2.account,
        tagSet: [],
      }))
      return { vpcEndpointSet, nextToken }
    },
  })
}
