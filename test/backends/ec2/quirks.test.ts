/**
 * What is odd about an account or a machine, each over the wire to a small cloud that has it: what the check says of it, and what
 * the verb says that meets it. docs/reference/failures.md has the same sentences.
 */
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Backend, Problem } from '../../../backends/backend'
import { createEc2Backend } from '../../../backends/ec2'
import type { Ec2Config } from '../../../backends/ec2/config'
import type { BackendError } from '../../../backends/errors'
import type { LaunchOutcome } from '../../../core/activities'
import type { Failure } from '../../../core/failure'
import type { WorldText } from '#small-cloud'
import { startTestCloud, type TestCloud } from '../../support/cloud'
import { until } from '../../support/until'
import { patiently } from '../harness'
import { makeOrder } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { CONFIG, DEFAULT_IMAGE } from './harness'

const BUCKET = 'quirks'
const TYPE = 'm7i.large'

let cloud: TestCloud
afterEach(() => cloud.stop())

/** A cloud with one quirk, its object store included. */
async function start(world: WorldText = {}): Promise<void> {
  cloud = await startTestCloud(BUCKET, { throttling: 'off', ...world })
}

function open(changes: Partial<Ec2Config> = {}, storeUrl = `s3://${BUCKET}/store`): Promise<Backend> {
  const config = { ...CONFIG, image: DEFAULT_IMAGE, types: [TYPE], endpoint: cloud.endpoint, ...changes }
  const runnerUrl = async (): Promise<string> => 'data:,'
  return createEc2Backend(config, { clock: Date.now, runnerUrl, storeUrl })
}

const check = (backend: Backend): Promise<Problem[]> => backend.check(patiently())

async function launch(backend: Backend, capacityType: 'spot' | 'on-demand'): Promise<LaunchOutcome> {
  const offers = (await backend.offers({}, patiently())).filter((one) => one.capacityType === capacityType)
  const order = makeOrder({ store: new MemoryStore(Date.now), offers, runnerStart: 'after-launch' })
  return backend.launch(order, patiently())
}

const failureOf = (asking: Promise<unknown>): Promise<Failure> =>
  asking.then(
    (answer) => Promise.reject(new Error(`it was answered: ${JSON.stringify(answer)}`)),
    (error: unknown) => (error as BackendError).failure,
  )

describe('quirk: no permission', () => {
  it('is named, and whose it is', async () => {
    await start({
      users: {
        worker: {
          accessKeyId: 'AKIAWORKER',
          secretAccessKey: 'secret',
          managed: ['AdministratorAccess'],
          policies: { no: { Statement: [{ Effect: 'Deny', Action: 'ec2:CreateFleet', Resource: '*' }] } },
        },
      },
    })
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIAWORKER', AWS_SECRET_ACCESS_KEY: 'secret' })
    const backend = await open()
    expect(await check(backend)).toMatchObject([
      {
        severity: 'error',
        message: expect.stringMatching(/user\/worker lacks permission for ec2:CreateFleet$/),
        remedy: 'Allow ec2:CreateFleet in its policies.',
      },
    ])
    expect(await launch(backend, 'on-demand')).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'auth',
        message: expect.stringMatching(/user\/worker is not authorized to perform: ec2:CreateFleet/),
        hint: expect.stringMatching(/^Grant this identity the permission/),
      },
    })
  })
})

describe('quirk: a wrong instance profile', () => {
  it('is named, and is no want of capacity', async () => {
    await start()
    const backend = await open({ profile: 'no-such-profile' })
    expect(await check(backend)).toMatchObject([
      { severity: 'error', message: expect.stringContaining('no-such-profile') },
    ])
    expect(await launch(backend, 'on-demand')).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'transient',
        message: expect.stringContaining('Invalid IAM Instance Profile name'),
        hint: 'Check that the profile of CRUCIBLE_EC2_PROFILE exists; a new one shows within a minute.',
      },
    })
  })
})

describe('quirk: zero quota', () => {
  it('is reported with the command that asks for more', async () => {
    await start({ quotas: { 'L-1216C47A': 0 } })
    const backend = await open()
    expect(await check(backend)).toMatchObject([
      {
        severity: 'warning',
        message: expect.stringMatching(/may have no on-demand machines .* in us-east-1$/),
        remedy: 'Ask for more with `crucible setup aws --quota`; the quota is L-1216C47A.',
      },
    ])
    expect(await launch(backend, 'on-demand')).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'quota',
        code: 'VcpuLimitExceeded',
        hint: 'Ask for a higher limit in Service Quotas, or allow another backend.',
      },
    })
  })
})

describe('quirk: an account on the free plan', () => {
  const UPGRADE = "Upgrade the account's plan to a paid one"

  it('learns what it may launch, and is offered that', async () => {
    await start({ plan: 'free' })
    const backend = await open()
    expect(await check(backend)).toMatchObject([
      {
        severity: 'warning',
        message: expect.stringContaining('on the free plan of AWS'),
        remedy: expect.stringMatching(new RegExp(`^${UPGRADE}.* fit into m7i-flex.large run`)),
      },
    ])
    const offers = await backend.offers({}, patiently())
    const denied = offers.filter(({ availability }) => availability === 'no-quota')
    expect([...new Set(denied.map(({ type }) => type))]).toEqual([TYPE])
    expect(denied[0]!.note).toContain('upgrade the account')
    const order = makeOrder({
      store: new MemoryStore(Date.now),
      offers: offers.filter(({ type, capacityType }) => {
        return type === 'm7i-flex.large' && capacityType === 'on-demand'
      }),
      runnerStart: 'after-launch',
    })
    expect(await backend.launch(order, patiently())).toMatchObject({ kind: 'launched' })
  })

  it('is reported by the launch if the plan may not be read', async () => {
    const where = { service: 'freetier' } as const
    await start({ plan: 'free', faults: [{ fault: 'error', code: 'AccessDeniedException', where }] })
    const backend = await open()
    expect(await launch(backend, 'on-demand')).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'quota',
        code: 'InvalidParameterCombination',
        message: expect.stringContaining('not eligible for Free Tier'),
        hint: expect.stringContaining(UPGRADE),
      },
    })
  })
})

describe('quirk: a Region without the type', () => {
  it('is reported by name, also in a plan', async () => {
    await start()
    const none = await open({ types: ['p9.*'] })
    const message = 'us-east-1 has none of the machine types p9.*'
    const remedy = expect.stringContaining('describe-instance-type-offerings --region us-east-1')
    expect(await check(none)).toMatchObject([{ severity: 'error', message, remedy }])
    expect(await failureOf(none.offers({}, patiently()))).toMatchObject({
      class: 'invalid',
      message,
      hint: remedy,
    })
    expect(await check(await open({ types: [TYPE, 'p9.*'] }))).toMatchObject([
      { severity: 'warning', message: 'us-east-1 has no machine type p9.*' },
    ])
  })

  it('is reported if its zones have no subnet', async () => {
    const zones = ['us-east-1a', 'us-east-1b']
    const subnets = [{ zone: 'us-east-1a', egress: 'public' as const, isDefault: true }]
    await start({
      regions: { 'us-east-1': { zones, subnets, groups: ['crucible-machine'] } },
      offered: { [TYPE]: ['us-east-1b'] },
    })
    expect(await check(await open())).toMatchObject([
      { severity: 'error', message: `${TYPE}: available only in us-east-1b, which has no subnet` },
    ])
  })
})

describe('quirk: an expired token', () => {
  it('is reported as such, and no machine is bought or given up for it', async () => {
    await start({ durations: { session: [4_000, 4_000] } })
    const sts = new STSClient({ endpoint: cloud.endpoint })
    const { Credentials: keys } = await sts.send(
      new AssumeRoleCommand({
        RoleArn: 'arn:aws:iam::111122223333:role/crucible-grant',
        RoleSessionName: 'worker',
        DurationSeconds: 900,
      }),
    )
    sts.destroy()
    Object.assign(process.env, {
      AWS_ACCESS_KEY_ID: keys!.AccessKeyId,
      AWS_SECRET_ACCESS_KEY: keys!.SecretAccessKey,
      AWS_SESSION_TOKEN: keys!.SessionToken,
    })
    const backend = await open()
    await until(async () => (await check(backend))[0]?.message.includes('has ended') === true)
    expect(await check(backend)).toMatchObject([
      {
        severity: 'error',
        message: 'The AWS session in AWS_SESSION_TOKEN has ended (ExpiredToken)',
        remedy: expect.stringMatching(/^Run `eval .* and restart workers that have the old keys\.$/),
      },
    ])
    expect(await failureOf(backend.find('job-a-1', patiently()))).toMatchObject({
      class: 'transient',
      code: 'RequestExpired',
      hint: expect.stringContaining('restart workers that have the old keys'),
    })
  })
})

describe('quirk: a bucket in another Region', () => {
  it('is a warning if its Region is configured or found, because it only costs', async () => {
    await start({
      regions: {
        'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] },
        'eu-west-1': { zones: ['eu-west-1a'] },
      },
    })
    const s3 = new S3Client({ forcePathStyle: true })
    const CreateBucketConfiguration = { LocationConstraint: 'eu-west-1' as const }
    await s3.send(new CreateBucketCommand({ Bucket: 'far-away', CreateBucketConfiguration }))
    s3.destroy()
    const message = expect.stringContaining('far-away is in eu-west-1, the machines are in us-east-1')
    expect(await check(await open({}, 's3://far-away?region=eu-west-1'))).toMatchObject([
      { severity: 'warning', message, remedy: 'Use a bucket in us-east-1.' },
    ])
    expect(await check(await open({}, 's3://far-away'))).toMatchObject([
      { severity: 'warning', message, remedy: 'Use a bucket in us-east-1.' },
    ])
    expect(await check(await open({}, `s3://${BUCKET}?region=eu-west-1`))).toMatchObject([
      {
        severity: 'warning',
        remedy: `Write its Region into CRUCIBLE_STORE: s3://${BUCKET}?region=us-east-1.`,
      },
    ])
    for (const told of ['?region=us-east-1', '?region=ap-south-1'])
      expect(await check(await open({}, `s3://far-away${told}`))).toMatchObject([
        { severity: 'warning', message, remedy: expect.stringContaining('s3://far-away?region=eu-west-1') },
      ])
  })

  it('is an error if there is no such bucket', async () => {
    await start()
    expect(await check(await open({}, 's3://no-such-bucket?region=us-east-1'))).toMatchObject([
      {
        severity: 'error',
        remedy: expect.stringContaining('aws s3 mb s3://no-such-bucket --region us-east-1'),
      },
    ])
  })
})

describe('quirk: a store that ignores put-if-absent', () => {
  it('is an error', async () => {
    await start({ faults: [{ fault: 'ignored-condition' }] })
    expect(await check(await open())).toMatchObject([
      {
        severity: 'error',
        message: expect.stringContaining('does not honour conditional writes'),
        remedy: 'Use a store that honours If-None-Match on PUT, as S3 does.',
      },
    ])
  })
})

describe('quirk: a subnet without egress', () => {
  it('is reported with what it lacks', async () => {
    const subnets = [{ zone: 'us-east-1a', egress: 'none' as const, isDefault: true }]
    await start({
      regions: { 'us-east-1': { zones: ['us-east-1a'], subnets, groups: ['crucible-machine'] } },
    })
    expect(await check(await open())).toMatchObject([
      {
        severity: 'error',
        message: expect.stringMatching(/has no outbound route: no default route, and no endpoints for ssm/),
        remedy: expect.stringMatching(/^Give it a route to an internet or NAT gateway, or endpoints/),
      },
    ])
  })
})

describe('quirk: a missing service-linked role', () => {
  const REMEDY =
    'Have an administrator run once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com'

  it('stops spot machines of who may not make it, and says what to run', async () => {
    await start({
      linkedRoles: [],
      users: {
        worker: {
          accessKeyId: 'AKIAWORKER',
          secretAccessKey: 'secret',
          managed: ['AdministratorAccess'],
          policies: {
            no: { Statement: [{ Effect: 'Deny', Action: 'iam:CreateServiceLinkedRole', Resource: '*' }] },
          },
        },
      },
    })
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIAWORKER', AWS_SECRET_ACCESS_KEY: 'secret' })
    const backend = await open()
    expect(await check(backend)).toMatchObject([
      { severity: 'warning', remedy: `${REMEDY}; or set CRUCIBLE_EC2_SPOT=no.` },
    ])
    expect(await check(await open({ hasSpot: false }))).toEqual([])
    expect(await launch(backend, 'spot')).toMatchObject({
      kind: 'refused',
      failure: { class: 'auth', hint: REMEDY, code: 'AuthFailure.ServiceLinkedRoleCreationNotPermitted' },
    })
    expect(await launch(backend, 'on-demand')).toMatchObject({ kind: 'launched' })
  })

  it('is fixed by the first launch with the permission', async () => {
    await start({ linkedRoles: [] })
    const backend = await open()
    expect(await launch(backend, 'spot')).toMatchObject({ kind: 'launched' })
    expect(await check(backend)).toEqual([])
  })
})

describe('quirk: a clock that is off', () => {
  it('is reported in minutes, and keeps no machine from being bought, at the first try', async () => {
    await start({ ahead: '6m' })
    const backend = await open()
    expect(await check(backend)).toMatchObject([
      {
        severity: 'warning',
        message: expect.stringMatching(
          /^the clock of this machine is (?:6m|5m 59s|6m 1s) behind that of AWS$/,
        ),
        remedy: 'Enable NTP: timedatectl set-ntp true.',
      },
    ])
    expect(await launch(backend, 'on-demand')).toMatchObject({ kind: 'launched' })
    const calls = cloud.journal.calls({ action: 'CreateFleet' })
    expect(calls.map(({ outcome }) => outcome).filter((outcome) => outcome !== 'RequestExpired')).toContain(
      'ok',
    )
  })
})
