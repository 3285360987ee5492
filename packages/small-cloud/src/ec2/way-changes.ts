/** Creates, changes and deletes gateways, routes and endpoints. */
import { z } from 'zod'
import { ApiError } from '../wire/errors'
import { dryRun, list, text } from '../wire/query'
import { action, type Action, type Call } from '../wire/service'
import type { Ec2 } from './ec2'
import { stateOf, type Endpoint, type Gateway, type Region, type RouteTable } from './model'
import { done, inUse, KINDS, making, newPart, one, takeAway } from './network-parts'
import { endpointWords, gatewayWords, tableWords } from './network-words'

export function wayChanges(ec2: Ec2): Record<string, Action> {
  return { ...gatewayChanges(ec2), ...tableChanges(ec2), ...endpointChanges(ec2) }
}

function gatewayChanges(ec2: Ec2): Record<string, Action> {
  const attached = z.strictObject({ ...dryRun, InternetGatewayId: text, VpcId: text })
  const both = (region: Region, ids: z.output<typeof attached>) => ({
    gateway: one(ec2, region.gateways, { id: ids.InternetGatewayId, ...KINDS.gateway }),
    vpc: one(ec2, region.vpcs, { id: ids.VpcId, ...KINDS.vpc }),
  })
  return {
    CreateInternetGateway: action({
      input: z.strictObject(making),
      isMutating: true,
      run({ TagSpecification: wanted }, { region }) {
        const gateway: Gateway = newPart(ec2, 'igw', { kind: 'internet-gateway', wanted })
        ec2.region(region).gateways.push(gateway)
        return { internetGateway: gatewayWords(ec2, gateway) }
      },
    }),
    AttachInternetGateway: action({
      input: attached,
      isMutating: true,
      run(ids, { region: name }) {
        const region = ec2.region(name)
        const { gateway, vpc } = both(region, ids)
        if (gateway.vpcId !== undefined || region.gateways.some(({ vpcId }) => vpcId === vpc.id))
          throw new ApiError(
            'Resource.AlreadyAssociated',
            `resource ${gateway.id} is already attached to network ${gateway.vpcId ?? vpc.id}`,
          )
        gateway.vpcId = vpc.id
        return done
      },
    }),
    DetachInternetGateway: action({
      input: attached,
      isMutating: true,
      run(ids, { region: name }) {
        const region = ec2.region(name)
        const { gateway, vpc } = both(region, ids)
        if (gateway.vpcId !== vpc.id)
          throw new ApiError(
            'Gateway.NotAttached',
            `resource ${gateway.id} is not attached to network ${vpc.id}`,
          )
        const isMapped = [...region.instances.values()].some(
          (each) =>
            each.subnet.vpcId === vpc.id && each.publicIp !== undefined && stateOf(each) !== 'terminated',
        )
        if (isMapped)
          throw new ApiError(
            'DependencyViolation',
            `Network ${vpc.id} has some mapped public address(es). Please unmap those public address(es) before detaching the gateway.`,
          )
        delete gateway.vpcId
        return done
      },
    }),
    DeleteInternetGateway: action({
      input: z.strictObject({ ...dryRun, InternetGatewayId: text }),
      isMutating: true,
      run({ InternetGatewayId: id }, { region: name }) {
        const { gateways } = ec2.region(name)
        const gateway = one(ec2, gateways, { id, ...KINDS.gateway })
        if (gateway.vpcId !== undefined) throw inUse('internetGateway', id)
        takeAway(gateways, gateway)
        return done
      },
    }),
  }
}

function tableChanges(ec2: Ec2): Record<string, Action> {
  const tableFor = (id: string, { region }: Call): RouteTable =>
    one(ec2, ec2.region(region).routeTables, { id, ...KINDS.table })
  return {
    CreateRouteTable: action({
      input: z.strictObject({ ...making, VpcId: text, ClientToken: text.optional() }),
      isMutating: true,
      run({ VpcId, ClientToken, TagSpecification: wanted }, call) {
        const region = ec2.region(call.region)
        const vpc = one(ec2, region.vpcs, { id: VpcId, ...KINDS.vpc })
        const scope = `${call.region}/CreateRouteTable`
        const table = ec2.tokens.once(scope, { token: ClientToken, parameters: { VpcId, wanted } }, () => {
          const made: RouteTable = {
            ...newPart(ec2, 'rtb', { kind: 'route-table', wanted }),
            ...{ vpcId: vpc.id, isMain: false, routes: [], associations: [] },
          }
          region.routeTables.push(made)
          return made
        })
        return { routeTable: tableWords(ec2, region, table) }
      },
    }),
    DeleteRouteTable: action({
      input: z.strictObject({ ...dryRun, RouteTableId: text }),
      isMutating: true,
      run({ RouteTableId }, call) {
        const table = tableFor(RouteTableId, call)
        if (table.isMain || table.associations.length > 0) throw inUse('routeTable', table.id)
        takeAway(ec2.region(call.region).routeTables, table)
        return done
      },
    }),
    ...routeChanges(ec2, tableFor),
  }
}

function routeChanges(ec2: Ec2, tableFor: (id: string, call: Call) => RouteTable): Record<string, Action> {
  return {
    CreateRoute: action({
      input: z.strictObject({ ...dryRun, RouteTableId: text, DestinationCidrBlock: text, GatewayId: text }),
      isMutating: true,
      run({ RouteTableId, DestinationCidrBlock: cidr, GatewayId }, call) {
        const table = tableFor(RouteTableId, call)
        const gateway = one(ec2, ec2.region(call.region).gateways, { id: GatewayId, ...KINDS.gateway })
        if (gateway.vpcId !== table.vpcId)
          throw new ApiError(
            'InvalidParameterValue',
            `route table ${table.id} and network gateway ${gateway.id} belong to different networks`,
          )
        const same = table.routes.find((route) => route.cidr === cidr)
        if (same !== undefined && same.gatewayId !== gateway.id)
          throw new ApiError('RouteAlreadyExists', `The route identified by ${cidr} already exists.`)
        if (same === undefined) table.routes.push({ cidr, gatewayId: gateway.id })
        return done
      },
    }),
    AssociateRouteTable: action({
      input: z.strictObject({ ...dryRun, RouteTableId: text, SubnetId: text }),
      isMutating: true,
      run({ RouteTableId, SubnetId }, call) {
        const table = tableFor(RouteTableId, call)
        const region = ec2.region(call.region)
        const subnet = one(ec2, region.subnets, { id: SubnetId, ...KINDS.subnet })
        const holder = region.routeTables.find(({ associations }) =>
          associations.some(({ subnetId }) => subnetId === subnet.id),
        )
        if (holder !== undefined && holder !== table)
          throw new ApiError(
            'Resource.AlreadyAssociated',
            `the specified association for route table ${table.id} conflicts with an existing association`,
          )
        const same = table.associations.find(({ subnetId }) => subnetId === subnet.id)
        const association = same ?? { id: ec2.parts.ids.resource('rtbassoc'), subnetId: subnet.id }
        if (same === undefined) table.associations.push(association)
        return { associationId: association.id, associationState: { state: 'associated' } }
      },
    }),
  }
}

function endpointChanges(ec2: Ec2): Record<string, Action> {
  return {
    CreateVpcEndpoint: action({
      input: z.strictObject({
        ...making,
        VpcId: text,
        ServiceName: text,
        VpcEndpointType: z.literal('Gateway').default('Gateway'),
        RouteTableId: list(text).default([]),
        ClientToken: text.optional(),
      }),
      isMutating: true,
      run({ VpcId, ServiceName: service, RouteTableId, ClientToken, TagSpecification: wanted }, call) {
        const region = ec2.region(call.region)
        const vpc = one(ec2, region.vpcs, { id: VpcId, ...KINDS.vpc })
        if (service !== `com.amazonaws.${call.region}.s3`)
          throw new ApiError(
            'InvalidServiceName',
            `The Vpc Endpoint Service '${service}' does not exist here as a gateway`,
          )
        const tables = RouteTableId.map((id) => one(ec2, region.routeTables, { id, ...KINDS.table }))
        const scope = `${call.region}/CreateVpcEndpoint`
        const parameters = { VpcId, service, RouteTableId, wanted }
        const endpoint = ec2.tokens.once(scope, { token: ClientToken, parameters }, () => {
          const taken = region.endpoints.some(
            (each) => each.service === service && tables.some(({ id }) => each.routeTableIds.includes(id)),
          )
          if (taken)
            throw new ApiError(
              'RouteAlreadyExists',
              `route table already has a route with destination-prefix-list-id for ${service}`,
            )
          const made: Endpoint = {
            ...newPart(ec2, 'vpce', { kind: 'vpc-endpoint', wanted }),
            ...{ vpcId: vpc.id, service, type: 'Gateway', subnetIds: [] },
            routeTableIds: tables.map(({ id }) => id),
            createdAtMs: ec2.nowMs,
          }
          region.endpoints.push(made)
          return made
        })
        return { vpcEndpoint: endpointWords(ec2, endpoint) }
      },
    }),
    DeleteVpcEndpoints: action({
      input: z.strictObject({ ...dryRun, VpcEndpointId: list(text) }),
      isMutating: true,
      run({ VpcEndpointId: ids }, { region }) {
        const { endpoints } = ec2.region(region)
        for (const id of ids) takeAway(endpoints, one(ec2, endpoints, { id, ...KINDS.endpoint }))
        return { unsuccessful: [] }
      },
    }),
  }
}
