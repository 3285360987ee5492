import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  AuthorizeSecurityGroupEgressCommand,
  AuthorizeSecurityGroupIngressCommand,
  DescribeImagesCommand,
  RevokeSecurityGroupEgressCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
  type EC2Client,
} from '@aws-sdk/client-ec2'
import { AttachRolePolicyCommand, PutRolePolicyCommand, UpdateRoleCommand } from '@aws-sdk/client-iam'
import { PutObjectCommand } from '@aws-sdk/client-s3'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { createAccountSetup } from '../../../../backends/ec2/setup'
import type { Cloud, WorldText } from '#small-cloud'
import { clientsOf } from '../../../../packages/small-cloud/test/support'
import { until } from '../../../support/until'
import { applied, emptyAccount, everythingOf, ignoring, removed, setupOf, storeClient } from './accounts'
import { IS_SELECTION, chosen } from '../../../support/selection'

jest.setTimeout(120_000)

let cloud: Cloud
const start = async (world: WorldText = {}): Promise<Cloud> => (cloud = await emptyAccount(world))
afterEach(() => cloud?.stop())

const states = async (options = {}): Promise<Record<string, string>> => {
  const { parts } = await setupOf(cloud, options).survey(ignoring())
  return Object.fromEntries(parts.map(({ id, state, remarks }) => [id, [state, ...remarks].join(': ')]))
}
const all = (states: Record<string, string>) => [...new Set(Object.values(states))]
const count = (kind: string) => cloud.account().regions['us-east-1']![kind]!.length

async function anImage(ec2: EC2Client): Promise<string> {
  const { Images } = await ec2.send(new DescribeImagesCommand({ Owners: ['amazon'] }))
  return Images!.find(({ Architecture }) => Architecture === 'x86_64')!.ImageId!
}

describe('an account that has nothing', () => {
  it('is set up once, however often that is asked for, and is as empty as before when it is removed', async () => {
    await start({ durations: { objectHidden: '300ms' } })
    const before = await everythingOf(cloud)
    expect(all(await states())).toEqual(['missing'])
    expect(await everythingOf(cloud)).toEqual(before)
    const steps = await applied(setupOf(cloud))
    expect([...new Set(steps.map(({ did }) => did))]).toEqual(['made'])
    const after = await everythingOf(cloud)
    expect(all(await states())).toEqual(['there'])
    expect(await applied(setupOf(cloud))).toEqual([])
    expect(await everythingOf(cloud)).toEqual(after)
    expect([count('vpcs'), count('subnets'), count('groups'), count('endpoints')]).toEqual([1, 3, 2, 1])
    expect([...new Set((await removed(setupOf(cloud))).map(({ did }) => did))]).toEqual(['removed'])
    expect(await everythingOf(cloud)).toEqual(before)
    expect(await removed(setupOf(cloud))).toEqual([])
  })
})

describe('an account that has a default network', () => {
  it('gets no other one, unless that is wished', async () => {
    await start({ regions: { 'us-east-1': { zones: ['us-east-1a'] } } })
    await applied(setupOf(cloud))
    expect([count('vpcs'), count('groups')]).toEqual([1, 2])
    const { settings } = await setupOf(cloud).survey(ignoring())
    expect(settings).toEqual({
      CRUCIBLE_BACKENDS: 'ec2',
      CRUCIBLE_EC2_REGION: 'us-east-1',
      CRUCIBLE_EC2_PROFILE: 'crucible-machine',
      CRUCIBLE_GRANT_ROLE: 'arn:aws:iam::111122223333:role/crucible-grant',
      CRUCIBLE_EC2_SECURITY_GROUPS: expect.stringMatching(/^sg-/),
      CRUCIBLE_STORE: 's3://crucible-111122223333-us-east-1?region=us-east-1',
    })
    await applied(setupOf(cloud, { prefix: 'other', hasOwnNetwork: true }))
    expect([count('vpcs'), count('groups')]).toEqual([2, 4])
    await removed(setupOf(cloud))
    // The role of spot is the first one's still, since the other one needs it.
    expect([count('vpcs'), all(await states({ prefix: 'other' }))]).toEqual([2, ['theirs', 'there']])
  })
})

describe('an account with machines in two Regions', () => {
  const [home, far] = ['us-east-1', 'eu-west-1']
  const world: WorldText = {
    regions: {
      [home]: { zones: [`${home}a`], hasDefaultVpc: false },
      [far]: { zones: [`${far}a`, `${far}b`], hasDefaultVpc: false },
    },
  }
  const both = { region: `${home},${far}` }
  const countIn = (region: string, kind: string) => cloud.account().regions[region]![kind]!.length

  it('gets a network in each, one store and one set of roles, and is as empty as before when it is removed', async () => {
    await start(world)
    const before = await everythingOf(cloud)
    await applied(setupOf(cloud, both))
    expect(all(await states(both))).toEqual(['there'])
    expect([countIn(home, 'subnets'), countIn(far, 'subnets')]).toEqual([1, 2])
    const { settings, place } = await setupOf(cloud, both).survey(ignoring())
    expect(place.region).toBe(`${home}, ${far}`)
    expect(settings).toMatchObject({
      CRUCIBLE_EC2_REGIONS: both.region,
      CRUCIBLE_EC2_SECURITY_GROUPS: expect.stringMatching(/^sg-\w+,sg-\w+$/),
      CRUCIBLE_EC2_SUBNETS: expect.stringMatching(/^subnet-\w+,subnet-\w+,subnet-\w+$/),
      CRUCIBLE_STORE: `s3://crucible-111122223333-${home}?region=${home}`,
    })
    expect(settings).not.toHaveProperty('CRUCIBLE_EC2_REGION')
    // Naming all but the first one removes the other one too.
    await removed(setupOf(cloud))
    expect(await everythingOf(cloud)).toEqual(before)
  })

  it('may get the second one later, and keeps it when only the first one is named', async () => {
    await start(world)
    await applied(setupOf(cloud))
    expect(countIn(far, 'subnets')).toBe(0)
    await expect(setupOf(cloud, { region: far }).survey(ignoring())).rejects.toMatchObject({
      failure: { hint: expect.stringContaining(`--region ${home},${far}`) },
    })
    const steps = await applied(setupOf(cloud, both))
    expect(steps.filter(({ did }) => did === 'mended').map(({ part: { id } }) => id)).toEqual(
      expect.arrayContaining(['machine', 'worker', 'buyer']),
    )
    expect(await applied(setupOf(cloud))).toEqual([])
    expect(countIn(far, 'subnets')).toBe(2)
  })
})

const MAKING = [
  ...['CreateVpc', 'CreateInternetGateway', 'CreateRouteTable', 'CreateSubnet', 'CreateVpcEndpoint'],
  ...['CreateSecurityGroup', 'AttachInternetGateway', 'AssociateRouteTable', 'CreateRole'],
  ...['CreateInstanceProfile', 'AddRoleToInstanceProfile', 'CreateServiceLinkedRole', 'CreateBucket'],
]

/** Calls between the moments at which a set-up is killed. */
const STRIDE = IS_SELECTION ? 27 : 9

describe('workers that may buy', () => {
  it('may after set-up was asked for it, until it is asked for the contrary', async () => {
    await start()
    const buying = async (options = {}): Promise<string | undefined> => {
      await applied(setupOf(cloud, options))
      expect(all(await states(options))).toEqual(['there'])
      return (await setupOf(cloud).survey(ignoring())).settings['CRUCIBLE_EC2_BUYER_ROLE']
    }
    expect(await buying()).toBeUndefined()
    const role = 'arn:aws:iam::111122223333:role/crucible-buyer'
    expect(await buying({ letsWorkersBuy: true })).toBe(role)
    expect(await buying()).toBe(role)
    expect(await buying({ letsWorkersBuy: false })).toBeUndefined()
  })
})

describe('when things go wrong', () => {
  it.each(chosen(['reset', 'unavailable'] as const, ['reset']))(
    'makes nothing twice where answers are lost: %s',
    async (instead) => {
      await start({ durations: { objectHidden: '500ms' } })
      for (const action of MAKING)
        cloud.addFault({ fault: 'lost-answer', instead, times: 1, where: { action } })
      const steps = await applied(setupOf(cloud))
      expect(steps.filter(({ did }) => did === 'failed')).toEqual([])
      expect(cloud.faults().filter(({ struck }) => struck !== 1)).toEqual([])
      expect([count('vpcs'), count('subnets'), count('gateways'), count('routeTables')]).toEqual([1, 3, 1, 2])
      expect(all(await states())).toEqual(['there'])
    },
  )

  it('continues where it was killed, wherever that was', async () => {
    await start()
    const setup = setupOf(cloud)
    const steps = await applied(setup)
    const calls = cloud.journal.calls({ isMutating: true }).length
    await removed(setup)
    const before = await everythingOf(cloud)
    for (let after = 1; after < calls; after += STRIDE) {
      const stop = new AbortController()
      let seen = 0
      const unfollow = cloud.journal.listen(({ isMutating }) => {
        if (isMutating && ++seen === after) stop.abort()
      })
      await applied(setupOf(cloud), stop.signal)
      unfollow()
      const rest = await applied(setupOf(cloud))
      expect(rest.filter(({ did }) => did === 'failed')).toEqual([])
      expect([after, all(await states())]).toEqual([after, ['there']])
      expect([count('vpcs'), count('subnets'), count('gateways'), count('groups')]).toEqual([1, 3, 1, 2])
      await removed(setupOf(cloud))
      expect(await everythingOf(cloud)).toEqual(before)
    }
    expect(steps.length).toBeGreaterThan(10)
  })

  it('waits out throttling', async () => {
    await start()
    for (const service of ['ec2', 'iam'] as const)
      cloud.addFault({
        fault: 'error',
        code: 'RequestLimitExceeded',
        chance: 0.3,
        times: 20,
        where: { service },
      })
    expect((await applied(setupOf(cloud))).map(({ did }) => did)).not.toContain('failed')
    expect(all(await states())).toEqual(['there'])
  })

  it('does what it may where a permission is missing, and names it', async () => {
    await start()
    cloud.addFault({
      fault: 'error',
      code: 'UnauthorizedOperation',
      message:
        'You are not authorized to perform this operation. User: me is not authorized to perform: ec2:CreateVpc',
      status: 403,
      where: { action: 'CreateVpc' },
    })
    const steps = await applied(setupOf(cloud))
    const did = (what: string) => steps.filter((step) => step.did === what).map(({ part }) => part.id)
    expect(did('failed')).toEqual(['vpc'])
    expect(did('waits')).toEqual(expect.arrayContaining(['gateway', 'routes', 'subnet_0', 's3', 'machines']))
    expect(did('made')).toEqual(
      expect.arrayContaining(['store', 'machine', 'worker', 'buyer', 'machine_profile']),
    )
    expect(steps.find(({ part }) => part.id === 'vpc')).toMatchObject({ permission: 'ec2:CreateVpc' })
  })

  it('touches nothing that others have made', async () => {
    await start({
      roles: { 'crucible-worker': { managed: ['AdministratorAccess'] } },
      foreignBuckets: ['taken'],
    })
    const wish = { bucket: 'taken' }
    const told = await states(wish)
    expect([told['worker'], told['store']]).toEqual([
      expect.stringMatching(/^taken: .*not made by this set-up/),
      expect.stringMatching(/^taken: belongs to somebody else/),
    ])
    const failed = (await applied(setupOf(cloud, wish))).filter(({ did }) => did === 'failed')
    expect(failed.map(({ part }) => part.id)).toEqual(['store', 'worker'])
    await removed(setupOf(cloud, wish))
    expect(cloud.account().roles).toEqual([expect.objectContaining({ name: 'crucible-worker' })])
  })

  it('repairs manual changes', async () => {
    await start()
    await applied(setupOf(cloud))
    const [{ id }] = (await setupOf(cloud).survey(ignoring())).parts
      .filter((part) => part.id === 'machines')
      .map(({ providerId = '' }) => ({ id: providerId })) as [{ id: string }]
    const { ec2, iam } = clientsOf(cloud.endpoint)
    const IpPermissions = [{ IpProtocol: '-1', IpRanges: [{ CidrIp: '0.0.0.0/0' }] }]
    await ec2.send(new AuthorizeSecurityGroupIngressCommand({ GroupId: id, IpPermissions }))
    await ec2.send(new RevokeSecurityGroupEgressCommand({ GroupId: id, IpPermissions }))
    const inside = [{ IpProtocol: '-1', IpRanges: [{ CidrIp: '10.0.0.0/8' }] }]
    await ec2.send(new AuthorizeSecurityGroupEgressCommand({ GroupId: id, IpPermissions: inside }))
    const PolicyArn = 'arn:aws:iam::aws:policy/AdministratorAccess'
    await iam.send(new AttachRolePolicyCommand({ RoleName: 'crucible-machine', PolicyArn }))
    const told = await states()
    expect([told['machines'], told['machine']]).toEqual([
      'differs: lets something in: does not let all out',
      'differs: has the policy AdministratorAccess, which it should not',
    ])
    expect((await applied(setupOf(cloud))).map(({ did, part }) => [did, part.id])).toEqual([
      ['mended', 'machine'],
      ['mended', 'machines'],
    ])
    expect(all(await states())).toEqual(['there'])
  })
})

describe('an account of an older set-up, whose machines use the store with their role', () => {
  const RoleName = 'crucible-machine'
  const olderAccount = async (): Promise<ReturnType<typeof clientsOf>> => {
    await start({ regions: { 'us-east-1': { zones: ['us-east-1a'] } } })
    await applied(setupOf(cloud))
    const clients = clientsOf(cloud.endpoint)
    const PolicyDocument = JSON.stringify({
      Statement: [{ Effect: 'Allow', Action: 's3:*', Resource: '*' }],
      Version: '2012-10-17',
    })
    await clients.iam.send(new PutRolePolicyCommand({ RoleName, PolicyName: 'store', PolicyDocument }))
    return clients
  }
  const launched = async (
    clients: ReturnType<typeof clientsOf>,
    tags: Record<string, string>,
  ): Promise<string> => {
    const Tags = Object.entries({ 'crucible:deployment': 'd', ...tags }).map(([Key, Value]) => ({
      Key,
      Value,
    }))
    const { Instances } = await clients.ec2.send(
      new RunInstancesCommand({
        ...{ MinCount: 1, MaxCount: 1, ImageId: await anImage(clients.ec2), InstanceType: 'm7i.large' },
        IamInstanceProfile: { Name: RoleName },
        TagSpecifications: [{ ResourceType: 'instance', Tags }],
      }),
    )
    return Instances![0]!.InstanceId!
  }

  it('takes the store from the role once no machine is left that needs it', async () => {
    const clients = await olderAccount()
    const without = await launched(clients, {})
    await launched(clients, { 'crucible:grant': 'attempt' })
    expect((await states())['machine']).toBe(
      `there: keeps its policy "store" while machines use it that were started without grants (${without}): run set-up again after their jobs`,
    )
    await applied(setupOf(cloud))
    expect((await states())['machine']).toContain('keeps its policy "store"')
    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [without] }))
    await until(
      async () => (await states())['machine'] === 'differs: has a policy "store" that it should not',
    )
    expect(await applied(setupOf(cloud))).toMatchObject([{ did: 'mended', part: { id: 'machine' } }])
    expect(all(await states())).toEqual(['there'])
  })

  it('sets the sessions of the role for grants to twelve hours', async () => {
    const clients = await olderAccount()
    await clients.iam.send(new UpdateRoleCommand({ RoleName: 'crucible-grant', MaxSessionDuration: 3600 }))
    expect((await states())['grant']).toBe('differs: its sessions are shorter or longer than they should be')
    await applied(setupOf(cloud))
    expect((await states())['grant']).toBe('there')
  })
})

describe('removing', () => {
  it('keeps a bucket that has data until its removal is confirmed', async () => {
    await start()
    const before = await everythingOf(cloud)
    await applied(setupOf(cloud))
    const client = storeClient(cloud)
    const Bucket = 'crucible-111122223333-us-east-1'
    await client.send(new PutObjectCommand({ Bucket, Key: 'jobs/a/checkpoint', Body: 'weights' }))
    client.destroy()
    const kept = (await removed(setupOf(cloud))).filter(({ did }) => did === 'kept')
    expect(kept).toEqual([expect.objectContaining({ part: expect.objectContaining({ id: Bucket }) })])
    expect(await everythingOf(cloud)).toMatchObject({ buckets: [Bucket] })
    await removed(setupOf(cloud), true)
    expect(await everythingOf(cloud)).toEqual(before)
  })
})

it('refuses Regions whose resources have other names, before it asks anybody', () => {
  for (const region of ['us-gov-west-1', 'cn-north-1', 'us-isob-east-1'])
    expect(() => createAccountSetup({ prefix: 'crucible', hasOwnNetwork: false, region })).toThrow(
      'belongs to a part of AWS with other names',
    )
  createAccountSetup({ prefix: 'crucible', hasOwnNetwork: false, region: 'ap-southeast-2' })
})

describe('a store that refuses to delete', () => {
  it('ends the removal of its bucket with the reason, and not never', async () => {
    await start()
    await applied(setupOf(cloud))
    const client = storeClient(cloud)
    const Bucket = 'crucible-111122223333-us-east-1'
    await client.send(new PutObjectCommand({ Bucket, Key: 'jobs/a/checkpoint', Body: 'weights' }))
    client.destroy()
    // As S3 says it of each key, in an answer that is all well.
    const refusing = createServer((asked, answer) => {
      const { pathname, search } = new URL(asked.url!, 'http://store')
      if (asked.method === 'POST' && search.startsWith('?delete')) {
        asked.resume()
        const reason = '<Key>jobs/a/checkpoint</Key><Code>AccessDenied</Code><Message>held</Message>'
        answer.end(`<DeleteResult><Error>${reason}</Error></DeleteResult>`)
        return
      }
      const { method, headers } = asked
      const told = request(cloud.storeEndpoint + pathname + search, { method, headers }, (reply) => {
        answer.writeHead(reply.statusCode!, reply.headers)
        reply.pipe(answer)
      })
      asked.pipe(told)
    })
    await once(refusing.listen(0, '127.0.0.1'), 'listening')
    const storeEndpoint = `http://127.0.0.1:${(refusing.address() as AddressInfo).port}`
    const steps = await removed(setupOf(cloud, { storeEndpoint }), true)
    expect(steps.filter(({ did }) => did === 'failed')).toEqual([
      expect.objectContaining({
        reason: expect.stringContaining('jobs/a/checkpoint cannot be deleted: held'),
      }),
    ])
    refusing.closeAllConnections()
    refusing.close()
  })
})

describe('quotas', () => {
  it('are asked for once, and followed', async () => {
    const none = { 'L-DB2E81BA': 0, 'L-3819A6DF': 0 }
    await start({ quotas: none, quotaDecision: { after: '2s', isGranted: true } })
    const setup = setupOf(cloud)
    const ask = () => setup.askForQuotas({ signal: ignoring() })
    expect(await ask()).toMatchObject([
      { value: 0, request: expect.stringMatching(/^8 vCPUs .*: pending/), isAskable: false },
      { value: 0, request: expect.stringMatching(/pending/), isAskable: false },
    ])
    await ask()
    const asked = cloud.journal.calls({ action: 'RequestServiceQuotaIncrease' })
    expect(asked.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
  })

  it('can be asked for again once they were refused', async () => {
    const none = { 'L-DB2E81BA': 0, 'L-3819A6DF': 0 }
    await start({ quotas: none, quotaDecision: { after: '0s', isGranted: false } })
    const setup = setupOf(cloud)
    await setup.askForQuotas({ signal: ignoring() })
    const { quotas } = await setup.survey(ignoring())
    const refused = { value: 0, request: expect.stringMatching(/: refused$/), isAskable: true }
    expect(quotas).toMatchObject([refused, refused])
    await setup.askForQuotas({ signal: ignoring() })
    expect(cloud.journal.calls({ action: 'RequestServiceQuotaIncrease' })).toHaveLength(4)
  })
})
