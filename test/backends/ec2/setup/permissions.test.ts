/** The permissions of workers are one list, and none of it can be missed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  DeleteRolePolicyCommand,
  GetRolePolicyCommand,
  PutRolePolicyCommand,
  SimulatePrincipalPolicyCommand,
} from '@aws-sdk/client-iam'
import { AssumeRoleCommand } from '@aws-sdk/client-sts'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { IMAGE_DEFAULT, type Ec2Config } from '../../../../backends/ec2/config'
import type { Backend } from '../../../../backends/backend'
import { createEc2Backend } from '../../../../backends/ec2'
import { STORE_PERMISSIONS, WORKER_PERMISSIONS } from '../../../../backends/ec2/setup/permissions'
import type { CapacityWish, ReservationKind, ReserveOutcome } from '../../../../core/reservation/reservation'
import { HOUR_MS } from '../../../../core/time/time'
import type { Cloud } from '#small-cloud'
import { clientsOf } from '../../../../packages/small-cloud/test/support'
import { CONFIG } from '../harness'
import { applied, emptyAccount, ignoring, setupOf } from './accounts'
import { chosen } from '../../../support/selection'

jest.setTimeout(120_000)

const WORKER = 'crucible-worker'
const PART = { intent: 'res-part', deployment: 'dep', owner: 'ada' }
const ALL = [...WORKER_PERMISSIONS, ...STORE_PERMISSIONS].map(({ action }) => action)

let cloud: Cloud
let settings: Record<string, string>
beforeAll(async () => {
  cloud = await emptyAccount({
    linkedRoles: ['spot.amazonaws.com'],
    blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 8, usdPerInstanceHour: 30 }],
  })
  await applied(setupOf(cloud))
  settings = (await setupOf(cloud).survey(ignoring())).settings
})
afterAll(() => cloud.stop())

/** Does something with the backend in the name of the worker's role only. */
async function asWorker<T>(config: Partial<Ec2Config>, task: (backend: Backend) => Promise<T>): Promise<T> {
  const { sts } = clientsOf(cloud.endpoint)
  const RoleArn = `arn:aws:iam::111122223333:role/${WORKER}`
  const { Credentials: given } = await sts.send(new AssumeRoleCommand({ RoleArn, RoleSessionName: 'worker' }))
  const before = { ...process.env }
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: given!.AccessKeyId,
    AWS_SECRET_ACCESS_KEY: given!.SecretAccessKey,
    AWS_SESSION_TOKEN: given!.SessionToken,
  })
  try {
    const endpoint = new URLSearchParams({ endpoint: cloud.storeEndpoint! }).toString()
    const backend = await createEc2Backend(
      {
        ...{ ...CONFIG, image: IMAGE_DEFAULT, ...config },
        ...{ region: 'us-east-1', endpoint: cloud.endpoint, profile: settings['CRUCIBLE_EC2_PROFILE']! },
        subnets: settings['CRUCIBLE_EC2_SUBNETS']!.split(','),
        securityGroups: { ids: settings['CRUCIBLE_EC2_SECURITY_GROUPS']!.split(',') },
      },
      {
        ...{ clock: Date.now, runnerUrl: async () => '' },
        storeUrl: `${settings['CRUCIBLE_STORE']!}&${endpoint}`,
      },
    )
    return await task(backend)
  } finally {
    process.env = before
  }
}

/** What the check finds. */
async function checked(config: Partial<Ec2Config> = {}): Promise<string[]> {
  const problems = await asWorker(config, (backend) => backend.check({ signal: ignoring() }))
  return problems.map(({ message, remedy }) => `${message} ${remedy}`)
}

it('are those that the documentation prints', () => {
  const page = readFileSync(join(__dirname, '../../../../docs/reference/aws-account.md'), 'utf8')
  const [needed, useful] = JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!) as { Action: string[] }[]
  const listed = (isOptional: boolean) =>
    WORKER_PERMISSIONS.filter((each) => (each.isOptional ?? false) === isOptional).map(({ action }) => action)
  expect([needed!.Action, useful!.Action]).toEqual([listed(false), listed(true)])
})

describe('the role of machines', () => {
  it.each(STORE_PERMISSIONS.map(({ action }) => action))('may not do %s', async (action) => {
    const { iam } = clientsOf(cloud.endpoint)
    const Bucket = new URL(settings['CRUCIBLE_STORE']!).host
    const ask = async (role: string): Promise<string[]> => {
      const { EvaluationResults } = await iam.send(
        new SimulatePrincipalPolicyCommand({
          PolicySourceArn: `arn:aws:iam::111122223333:role/${role}`,
          ActionNames: [action],
          ResourceArns: [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/jobs/any`],
        }),
      )
      return EvaluationResults!.map(({ EvalDecision }) => EvalDecision!)
    }
    expect(await ask('crucible-machine')).toEqual(['implicitDeny', 'implicitDeny'])
    expect(await ask('crucible-grant')).toContain('allowed')
  })
})

describe('the least privilege of workers', () => {
  const ACCOUNT = '111122223333'
  const ec2 = (name: string, region = 'us-east-1') => `arn:aws:ec2:${region}:${ACCOUNT}:${name}`
  const TAGGED = { 'aws:ResourceTag/crucible:deployment': 'team' }
  const HERE = { 'aws:RequestedRegion': 'us-east-1' }
  const EC2 = { 'iam:PassedToService': 'ec2.amazonaws.com' }
  const role = (name: string) => `arn:aws:iam::${ACCOUNT}:role/${name}`
  const SHELL = 'arn:aws:ssm:us-east-1::document/AWS-RunShellScript'

  async function decision(
    action: string,
    resource: string,
    context: Record<string, string>,
  ): Promise<string> {
    const { iam } = clientsOf(cloud.endpoint)
    const { EvaluationResults } = await iam.send(
      new SimulatePrincipalPolicyCommand({
        ...{ PolicySourceArn: role(WORKER), ActionNames: [action], ResourceArns: [resource] },
        ContextEntries: Object.entries(context).map(([ContextKeyName, value]) => ({
          ...{ ContextKeyName, ContextKeyType: 'string' as const, ContextKeyValues: [value] },
        })),
      }),
    )
    return EvaluationResults![0]!.EvalDecision!
  }

  type Ask = [resource: string, context: Record<string, string>]
  it.each<[string, string, Ask, Ask]>([
    [
      'passes its role to EC2 only',
      'iam:PassRole',
      [role('crucible-machine'), EC2],
      [role('crucible-machine'), { 'iam:PassedToService': 'lambda.amazonaws.com' }],
    ],
    ['passes no other role', 'iam:PassRole', [role('crucible-machine'), EC2], [role('admin'), EC2]],
    [
      'ends machines of Crucible only',
      'ec2:TerminateInstances',
      [ec2('instance/i-1'), TAGGED],
      [ec2('instance/i-1'), {}],
    ],
    [
      'ends machines of its Regions only',
      'ec2:TerminateInstances',
      [ec2('instance/i-1'), TAGGED],
      [ec2('instance/i-1', 'eu-west-1'), TAGGED],
    ],
    [
      'deletes volumes of Crucible only',
      'ec2:DeleteVolume',
      [ec2('volume/vol-1'), TAGGED],
      [ec2('volume/vol-1'), {}],
    ],
    [
      'deletes templates of Crucible only',
      'ec2:DeleteLaunchTemplate',
      [ec2('launch-template/lt-1'), TAGGED],
      [ec2('launch-template/lt-1'), {}],
    ],
    [
      'cancels spot requests of Crucible only',
      'ec2:CancelSpotInstanceRequests',
      [ec2('spot-instances-request/sir-1'), TAGGED],
      [ec2('spot-instances-request/sir-1'), {}],
    ],
    [
      'sends commands to machines of Crucible only',
      'ssm:SendCommand',
      [ec2('instance/i-1'), { 'ssm:resourceTag/crucible:deployment': 'team' }],
      [ec2('instance/i-1'), {}],
    ],
    [
      'sends the one document',
      'ssm:SendCommand',
      [SHELL, {}],
      [SHELL.replace('RunShellScript', 'RunRemoteScript'), {}],
    ],
    [
      'tags what it launches only',
      'ec2:CreateTags',
      [ec2('instance/i-1'), { 'ec2:CreateAction': 'CreateFleet' }],
      [ec2('instance/i-1'), {}],
    ],
    [
      'launches in its Regions only',
      'ec2:CreateFleet',
      ['*', HERE],
      ['*', { 'aws:RequestedRegion': 'eu-west-1' }],
    ],
    [
      'reads public parameters only',
      'ssm:GetParameter',
      ['arn:aws:ssm:us-east-1::parameter/aws/service/x', {}],
      [`arn:aws:ssm:us-east-1:${ACCOUNT}:parameter/secret`, {}],
    ],
    [
      'reads its own profile only',
      'iam:GetInstanceProfile',
      [`arn:aws:iam::${ACCOUNT}:instance-profile/crucible-machine`, {}],
      [`arn:aws:iam::${ACCOUNT}:instance-profile/other`, {}],
    ],
    [
      'takes the role of grants only',
      'sts:AssumeRole',
      [role('crucible-grant'), {}],
      [role('crucible-buyer'), {}],
    ],
  ])('%s (%s)', async (_, action, allowed, denied) => {
    expect(await decision(action, ...allowed)).toBe('allowed')
    expect(await decision(action, ...denied)).toBe('implicitDeny')
  })

  it.each(['ec2:PurchaseCapacityBlock', 'ec2:RequestSpotInstances', 'iam:CreateRole', 'ec2:CreateVpc'])(
    'has no %s at all',
    async (action) => expect(await decision(action, '*', HERE)).toBe('implicitDeny'),
  )
})

describe('workers that may buy', () => {
  const buyerRole = 'arn:aws:iam::111122223333:role/crucible-buyer'
  const wishes: Record<ReservationKind, CapacityWish> = {
    prepaid: {
      ...{ backend: 'ec2', kind: 'prepaid', types: ['p5.48xlarge'], count: 2, durationMs: 47 * HOUR_MS },
    },
    hourly: { backend: 'ec2', kind: 'hourly', types: ['g5.xlarge'], count: 2, durationMs: HOUR_MS },
  }
  const ask = { signal: AbortSignal.timeout(600_000) }
  const buy = async (backend: Backend, kind: ReservationKind): Promise<ReserveOutcome> => {
    const [quote] = await backend.reserving!.reservable(wishes[kind], ask)
    const order = { intent: `res-${kind}`, send: 1, deployment: 'test', owner: 'ann', backend: 'ec2' }
    return backend.reserving!.reserve({ ...order, quote: quote! }, ask)
  }

  it('do so with the role of the buyer, once set-up has let them, and hold and release what they bought', async () => {
    await expect(asWorker({}, (backend) => buy(backend, 'prepaid'))).rejects.toMatchObject({
      failure: { class: 'auth' },
    })
    expect(await asWorker({}, (backend) => buy(backend, 'hourly'))).toMatchObject({
      ...{ kind: 'refused', failure: { class: 'auth' } },
    })
    expect((await checked({ buyerRole })).join()).toMatch(/not permitted: .*sts:AssumeRole/)
    await applied(setupOf(cloud, { letsWorkersBuy: true }))
    expect(await checked({ buyerRole })).toEqual([])
    await asWorker({ buyerRole }, async (backend) => {
      const reserving = backend.reserving!
      expect(await buy(backend, 'prepaid')).toMatchObject({ kind: 'reserved' })
      const outcome = await buy(backend, 'hourly')
      if (outcome.kind !== 'reserved') throw new Error(outcome.failure.message)
      const held = outcome.reservation
      await reserving.change(held, { kind: 'count', count: 3 }, ask)
      await reserving.change(held, { kind: 'split', count: 1, ...PART }, ask)
      await reserving.release(held, await reserving.releaseTerms(held, ask), ask)
      const listed = await reserving.reservations(ask)
      expect(listed.map(({ kind, phase }) => `${kind} ${phase}`).sort()).toEqual([
        ...['hourly active', 'hourly ended', 'prepaid unpaid'],
      ])
    })
    // A reservation of others is not ours to release.
    const { id } = cloud.reserve({ kind: 'on-demand', type: 'g5.xlarge', zone: 'us-east-1a', count: 1 })
    const release = asWorker({ buyerRole }, (backend) =>
      backend.reserving!.release({ id, region: 'us-east-1' }, { chargeMicroUsd: 0 }, ask),
    )
    await expect(release).rejects.toMatchObject({ failure: { class: 'auth' } })
    await applied(setupOf(cloud, { letsWorkersBuy: false }))
  })
})

describe('the role of the buyer', () => {
  const BUYER = 'arn:aws:iam::111122223333:role/crucible-buyer'
  const RESERVATION = 'arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-1'
  const HERE = { 'aws:RequestedRegion': 'us-east-1' }
  const decided = async (
    action: string,
    resource: string,
    context: Record<string, string>,
  ): Promise<string> => {
    const { iam } = clientsOf(cloud.endpoint)
    const { EvaluationResults } = await iam.send(
      new SimulatePrincipalPolicyCommand({
        ...{ PolicySourceArn: BUYER, ActionNames: [action], ResourceArns: [resource] },
        ContextEntries: Object.entries(context).map(([ContextKeyName, value]) => ({
          ...{ ContextKeyName, ContextKeyType: 'string' as const, ContextKeyValues: [value] },
        })),
      }),
    )
    return EvaluationResults![0]!.EvalDecision!
  }

  type Ask = [resource: string, context: Record<string, string>]
  it.each<[string, string, Ask, Ask]>([
    [
      'buys in its Regions only',
      'ec2:PurchaseCapacityBlock',
      ['*', HERE],
      ['*', { 'aws:RequestedRegion': 'eu-west-1' }],
    ],
    [
      'makes reservations with our tag only',
      'ec2:CreateCapacityReservation',
      [RESERVATION, { 'aws:RequestTag/crucible:deployment': 'team' }],
      [RESERVATION, {}],
    ],
    ...['Modify', 'Cancel'].map((verb): [string, string, Ask, Ask] => [
      `does ${verb} reservations of Crucible only`,
      `ec2:${verb}CapacityReservation`,
      [RESERVATION, { 'aws:ResourceTag/crucible:deployment': 'team' }],
      [RESERVATION, {}],
    ]),
    [
      'tags what it buys only',
      'ec2:CreateTags',
      [RESERVATION, { 'ec2:CreateAction': 'PurchaseCapacityBlock' }],
      [RESERVATION, { 'ec2:CreateAction': 'RunInstances' }],
    ],
  ])('%s (%s)', async (_, action, allowed, denied) => {
    expect(await decided(action, ...allowed)).toBe('allowed')
    expect(await decided(action, ...denied)).toBe('implicitDeny')
  })

  it.each(['ec2:RunInstances', 'ec2:TerminateInstances', 'iam:PassRole', 's3:GetObject'])(
    'has no %s at all',
    async (action) => expect(await decided(action, '*', HERE)).toBe('implicitDeny'),
  )
})

const everyEighthOf = <T>(all: readonly T[]): T[] => all.filter((_, index) => index % 8 === 0)

describe('the role of workers', () => {
  it('is enough', async () => {
    expect(await checked()).toEqual([])
  })

  it.each(chosen(ALL, everyEighthOf(ALL)))('cannot do without %s: the check names it', async (action) => {
    const { iam } = clientsOf(cloud.endpoint)
    const PolicyName = action.startsWith('s3:') ? 'store' : 'machines'
    const at = { RoleName: WORKER, PolicyName }
    const { PolicyDocument = '' } = await iam.send(new GetRolePolicyCommand(at))
    const whole = decodeURIComponent(PolicyDocument)
    const less = JSON.parse(whole) as { Statement: { Action: string[] }[] }
    for (const statement of less.Statement)
      statement.Action = statement.Action.filter((each) => each !== action)
    await iam.send(new DeleteRolePolicyCommand(at))
    await iam.send(new PutRolePolicyCommand({ ...at, PolicyDocument: JSON.stringify(less) }))
    try {
      expect((await checked()).join('; ')).toContain(action)
    } finally {
      await iam.send(new PutRolePolicyCommand({ ...at, PolicyDocument: whole }))
    }
  })
})
