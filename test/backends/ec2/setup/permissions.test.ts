/** The roles of the template are as wide as the list of permissions, which is as wide as what the backend calls. */
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
import type { Ec2Config } from '../../../../backends/ec2/config'
import type { Backend } from '../../../../backends/backend'
import { createEc2Backend } from '../../../../backends/ec2'
import * as permissions from '../../../../backends/ec2/setup/permissions'
import { PROBES, type PolicyFacts, type Probe } from '../../../../backends/ec2/setup/scopes'
import type {
  CapacityRequest,
  ReservationKind,
  ReserveOutcome,
} from '../../../../core/reservation/reservation'
import { HOUR_MS } from '../../../../core/time/time'
import type { Cloud } from '#small-cloud'
import { clientsOf } from '../../../../packages/small-cloud/test/support'
import { patiently } from '../../harness'
import { CONFIG, DEFAULT_IMAGE } from '../harness'
import { chosen } from '../../../support/selection'
import { ACCOUNT, BUCKET, preparedAccount, preparedTemplate } from './accounts'
import type { Statement } from './template'

jest.setTimeout(120_000)

const { WORKER_PERMISSIONS, STORE_PERMISSIONS, BUYER_PERMISSIONS } = permissions
const WORKER = 'crucible-worker'
const PART = { intent: 'res-part', deployment: 'dep', owner: 'ada' }
const ALL = [...WORKER_PERMISSIONS, ...STORE_PERMISSIONS].map(({ action }) => action)
const roleArn = (name: string): string => `arn:aws:iam::${ACCOUNT}:role/${name}`

const DISK_KEY = `arn:aws:kms:us-east-1:${ACCOUNT}:key/1234abcd`

let cloud: Cloud
beforeAll(async () => {
  cloud = await preparedAccount(
    {
      diskKey: DISK_KEY,
      blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 8, usdPerInstanceHour: 30 }],
      // A bought block stays unpaid for as long as these tests take.
      durations: { payment: 86_400 },
    },
    { DiskKeyArns: DISK_KEY },
  )
})
afterAll(() => cloud.stop())

/** Does something with the backend in the name of the worker's role only. */
async function asWorker<T>(config: Partial<Ec2Config>, task: (backend: Backend) => Promise<T>): Promise<T> {
  const { sts } = clientsOf(cloud.endpoint, cloud.credentials)
  const { Credentials: given } = await sts.send(
    new AssumeRoleCommand({ RoleArn: roleArn(WORKER), RoleSessionName: 'worker' }),
  )
  const before = { ...process.env }
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: given!.AccessKeyId,
    AWS_SECRET_ACCESS_KEY: given!.SecretAccessKey,
    AWS_SESSION_TOKEN: given!.SessionToken,
  })
  try {
    const endpoint = new URLSearchParams({ endpoint: cloud.storeEndpoint! }).toString()
    const backend = await createEc2Backend(
      { ...CONFIG, image: DEFAULT_IMAGE, ...config, endpoint: cloud.endpoint },
      {
        clock: Date.now,
        runnerUrl: async () => '',
        storeUrl: `s3://${BUCKET}?region=us-east-1&${endpoint}`,
      },
    )
    return await task(backend)
  } finally {
    process.env = before
  }
}

/** Decisions of IAM about one action of a role. */
async function decision(
  role: string,
  action: string,
  { resource, context }: { resource: string; context: Record<string, string> },
): Promise<string> {
  const { iam } = clientsOf(cloud.endpoint, cloud.credentials)
  const { EvaluationResults } = await iam.send(
    new SimulatePrincipalPolicyCommand({
      PolicySourceArn: roleArn(role),
      ActionNames: [action],
      ResourceArns: [resource],
      ContextEntries: Object.entries(context).map(([ContextKeyName, value]) => ({
        ContextKeyName,
        ContextKeyType: 'string',
        ContextKeyValues: [value],
      })),
    }),
  )
  return EvaluationResults![0]!.EvalDecision!
}

/** What the check finds. */
async function checked(config: Partial<Ec2Config> = {}): Promise<string[]> {
  const problems = await asWorker(config, (backend) => backend.check(patiently()))
  return problems.map(({ message, remedy }) => `${message} ${remedy}`)
}

it('are those that the documentation prints', () => {
  const page = readFileSync(join(__dirname, '../../../../docs/reference/aws-account.md'), 'utf8')
  const [needed, useful] = JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!) as { Action: string[] }[]
  const listed = (isOptional: boolean) =>
    WORKER_PERMISSIONS.filter((each) => (each.isOptional ?? false) === isOptional).map(({ action }) => action)
  expect([needed!.Action, useful!.Action]).toEqual([listed(false), listed(true)])
})

const FACTS: PolicyFacts = {
  account: ACCOUNT,
  region: 'us-east-1',
  machineRoleArn: roleArn('crucible-machine'),
  machineProfile: 'crucible-machine',
  bucket: BUCKET,
  deployment: 'team',
}
const FOREIGN: PolicyFacts = {
  account: '999999999999',
  region: 'us-east-1',
  machineRoleArn: roleArn('other'),
  machineProfile: 'other',
  bucket: 'other',
}

/** The doctor takes the role behind the grants instead of asking whether workers may. */
const GRANTING = { action: 'sts:AssumeRole', scopes: ['grant-role'] } as const
const ASKS = {
  ...PROBES,
  'grant-role': ({ account }: PolicyFacts): Probe => ({
    resource: `arn:aws:iam::${account}:role/crucible-grant`,
    context: {},
  }),
}

/** Questions like one of the doctor's that must be denied: without a part of its context, in another Region, about something of others. */
function wrongProbes(scope: keyof typeof ASKS): Probe[] {
  const probe = ASKS[scope](FACTS)
  // The prefix of a listing narrows sessions, not the role.
  const keys = Object.keys(probe.context).filter((key) => key !== 's3:prefix')
  const without = keys.map((key) => {
    const context = Object.entries(probe.context).filter(([each]) => each !== key)
    return { ...probe, context: Object.fromEntries(context) }
  })
  const others = [
    { ...FACTS, region: 'ap-south-1' },
    { ...FOREIGN, deployment: 'team' },
  ].map(ASKS[scope])
  return [...without, ...others.filter((other) => JSON.stringify(other) !== JSON.stringify(probe))]
}

/** Each role with what it may do. Workers may assume the buyer's role only where the account lets them. */
const ROLES = {
  'crucible-worker': [...WORKER_PERMISSIONS, GRANTING, ...STORE_PERMISSIONS],
  'crucible-grant': STORE_PERMISSIONS,
  'crucible-buyer': BUYER_PERMISSIONS,
}

describe.each(Object.entries(ROLES))('the role %s of the template', (role, wanted) => {
  const rows = wanted.flatMap(({ action, scopes }) => scopes.map((scope) => [action, scope] as const))

  it('has the permissions of the list and no others', () => {
    const statements = Object.values(preparedTemplate().policiesOf(role)).flat()
    const granted = statements.flatMap(({ Action }) => Action)
    expect([...granted].sort()).toEqual(rows.map(([action]) => action).sort())
  })

  it.each(rows)('may do %s in its scope only: %s', async (action, scope) => {
    expect(await decision(role, action, ASKS[scope](FACTS))).toBe('allowed')
    for (const probe of wrongProbes(scope))
      expect([probe, await decision(role, action, probe)]).toEqual([probe, 'implicitDeny'])
  })
})

describe('the role crucible-worker of the template', () => {
  const here = { 'aws:RequestedRegion': 'us-east-1' }
  it.each([
    [
      'passes its role to EC2 only',
      'iam:PassRole',
      roleArn('crucible-machine'),
      { 'iam:PassedToService': 'lambda.amazonaws.com' },
    ],
    [
      'sends the one document',
      'ssm:SendCommand',
      'arn:aws:ssm:us-east-1::document/AWS-RunRemoteScript',
      here,
    ],
    [
      'reads public parameters only',
      'ssm:GetParameter',
      `arn:aws:ssm:us-east-1:${ACCOUNT}:parameter/secret`,
      here,
    ],
    ['does not assume the role that buys', 'sts:AssumeRole', roleArn('crucible-buyer'), {}],
  ])('%s', async (_, action, resource, context) => {
    expect(await decision(WORKER, action, { resource, context })).toBe('implicitDeny')
  })

  it('reaches only its deployment where the template names one', () => {
    const text = JSON.stringify(preparedTemplate({ Deployment: 'team' }).policiesOf(WORKER))
    expect(text.match(/"StringLike":\{"\w+:[Rr]esourceTag\/crucible:deployment":"team"\}/g)).toHaveLength(2)
    expect(text).not.toContain('crucible:deployment":"*"')
  })
})

describe('the role crucible-machine of the template', () => {
  it.each(STORE_PERMISSIONS)('may not do $action', async ({ action, scopes: [scope] }) => {
    expect(await decision('crucible-machine', action, PROBES[scope!](FACTS))).toBe('implicitDeny')
  })
})

describe('workers that may buy', () => {
  const buyerRole = roleArn('crucible-buyer')
  const wishes: Record<ReservationKind, CapacityRequest> = {
    prepaid: {
      backend: 'ec2',
      kind: 'prepaid',
      types: ['p5.48xlarge'],
      count: 2,
      durationMs: 47 * HOUR_MS,
    },
    hourly: { backend: 'ec2', kind: 'hourly', types: ['g5.xlarge'], count: 2, durationMs: HOUR_MS },
  }
  const ask = { signal: AbortSignal.timeout(600_000) }
  const buy = async (backend: Backend, kind: ReservationKind): Promise<ReserveOutcome> => {
    const [quote] = await backend.reserving!.reservable(wishes[kind], ask)
    const order = { intent: `res-${kind}`, send: 1, deployment: 'test', owner: 'ann', backend: 'ec2' }
    return backend.reserving!.reserve({ ...order, quote: quote! }, ask)
  }

  it('do so with the role of the buyer where the template lets them, and hold and release what they bought', async () => {
    await expect(asWorker({}, (backend) => buy(backend, 'prepaid'))).rejects.toMatchObject({
      failure: { class: 'auth' },
    })
    expect(await asWorker({}, (backend) => buy(backend, 'hourly'))).toMatchObject({
      kind: 'refused',
      failure: { class: 'auth' },
    })
    expect((await checked({ buyerRole })).join()).toMatch(/not permitted: .*sts:AssumeRole/)
    const { iam } = clientsOf(cloud.endpoint, cloud.credentials)
    const buying = { RoleName: WORKER, PolicyName: 'buying' }
    const Statement = preparedTemplate({ WorkersMayBuy: 'yes' }).policiesOf(WORKER)['buying']
    const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement })
    await iam.send(new PutRolePolicyCommand({ ...buying, PolicyDocument }))
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
        'hourly active',
        'hourly ended',
        'prepaid unpaid',
      ])
    })
    // A reservation of others is not ours to release.
    const { id } = cloud.reserve({ kind: 'on-demand', type: 'g5.xlarge', zone: 'us-east-1a', count: 1 })
    const release = asWorker({ buyerRole }, (backend) =>
      backend.reserving!.release({ id, region: 'us-east-1' }, { chargeMicroUsd: 0 }, ask),
    )
    await expect(release).rejects.toMatchObject({ failure: { class: 'auth' } })
    await iam.send(new DeleteRolePolicyCommand(buying))
  })
})

const everyEighthOf = <T>(all: readonly T[]): T[] => all.filter((_, index) => index % 8 === 0)

describe('crucible doctor in the name of the worker', () => {
  it('finds nothing that the role of the template lacks', async () => {
    expect(await checked()).toEqual([])
  })

  it.each(chosen(ALL, everyEighthOf(ALL)))('names %s where the role lacks it', async (action) => {
    const { iam } = clientsOf(cloud.endpoint, cloud.credentials)
    const PolicyName = action.startsWith('s3:') ? 'store' : 'machines'
    const at = { RoleName: WORKER, PolicyName }
    const { PolicyDocument = '' } = await iam.send(new GetRolePolicyCommand(at))
    const whole = decodeURIComponent(PolicyDocument)
    const less = JSON.parse(whole) as { Statement: Statement[] }
    for (const statement of less.Statement)
      statement.Action = [statement.Action].flat().filter((each) => each !== action)
    await iam.send(new DeleteRolePolicyCommand(at))
    await iam.send(new PutRolePolicyCommand({ ...at, PolicyDocument: JSON.stringify(less) }))
    try {
      expect((await checked()).join('; ')).toContain(action)
    } finally {
      await iam.send(new PutRolePolicyCommand({ ...at, PolicyDocument: whole }))
    }
  })

  it('names the key for disks that the role may not use', async () => {
    const { iam } = clientsOf(cloud.endpoint, cloud.credentials)
    const at = { RoleName: WORKER, PolicyName: 'disk-keys' }
    const { PolicyDocument = '' } = await iam.send(new GetRolePolicyCommand(at))
    await iam.send(new DeleteRolePolicyCommand(at))
    try {
      expect((await checked()).join('; ')).toMatch(
        /encrypts disks with the key .*:key\/1234abcd, and .* lacks permission for kms:CreateGrant, kms:Decrypt,/,
      )
    } finally {
      await iam.send(new PutRolePolicyCommand({ ...at, PolicyDocument: decodeURIComponent(PolicyDocument) }))
    }
  })
})
