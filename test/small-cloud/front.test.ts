import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectsCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketLocationCommand,
  GetObjectCommand,
  GetPublicAccessBlockCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutBucketEncryptionCommand,
  PutBucketLifecycleConfigurationCommand,
  UploadPartCommand,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { layout } from '../../storage/layout'
import { openGranter } from '../../storage/open-granter'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import { startTestCloud, type TestCloud } from '../support/cloud'

const BUCKET = 'front-tests'
const REGION = 'us-east-1'
const keyArn = (id: string): string => `arn:aws:kms:${REGION}:111122223333:key/${id}`
/** Keys whose policies let IAM decide, and do not, and name a role. */
const [OPEN_KEY, CLOSED_KEY, OWN_KEY] = [keyArn('open'), keyArn('closed'), keyArn('own')]
const USER = 'arn:aws:iam::*:user/test'
const OWN_USE = { delegates: false, users: [USER, 'arn:aws:iam::*:role/crucible-grant'] }
const run = promisify(execFile)
let cloud: TestCloud
let folder: string
const stores: S3Store[] = []
const clients: { destroy(): void }[] = []

beforeAll(async () => {
  cloud = await startTestCloud(BUCKET, {
    keys: { [CLOSED_KEY]: { delegates: false, users: [USER] }, [OWN_KEY]: OWN_USE },
  })
  folder = cloud.folder
}, 240_000)
afterAll(async () => {
  for (const client of clients) client.destroy()
  for (const store of stores) await store.close()
  await cloud.stop()
})

function s3(config: S3ClientConfig = {}): S3Client {
  const client = new S3Client({ forcePathStyle: true, maxAttempts: 1, region: REGION, ...config })
  clients.push(client)
  return client
}

function open(prefix: string): S3Store {
  const store = openStore(`s3://${BUCKET}/${prefix}`) as S3Store
  stores.push(store)
  return store
}

const codeOf = (asking: Promise<unknown>): Promise<string> =>
  asking.then(
    () => 'allowed',
    (error: Error) => error.name,
  )

describe('the front of the object store', () => {
  it('streams big bodies both ways, as they are', async () => {
    const [from, to] = [join(folder, 'from'), join(folder, 'to')]
    const body = randomBytes(30_000_000)
    await writeFile(from, body)
    const store = open('big')
    await store.putFile('object', from)
    await store.getFile('object', to)
    const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
    expect(digest(await readFile(to))).toBe(digest(body))
  })

  it('takes requests for all services at one address', async () => {
    const client = s3({ endpoint: cloud.endpoint })
    await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'one address', Body: 'x' }))
    const { Body } = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'one address' }))
    expect(await Body!.transformToString()).toBe('x')
    expect((await client.send(new ListBucketsCommand())).Buckets?.map(({ Name }) => Name)).toContain(BUCKET)
  })

  it('knows only those to whom the cloud gave keys', async () => {
    const ask = (accessKeyId: string, secretAccessKey: string, sessionToken?: string): Promise<string> =>
      codeOf(
        s3({
          credentials: {
            accessKeyId,
            secretAccessKey,
            sessionToken: sessionToken ? sessionToken : undefined,
          },
        }).send(new ListObjectsV2Command({ Bucket: BUCKET })),
      )
    expect(await ask('NOBODY', 'x')).toBe('InvalidAccessKeyId')
    const { accessKeyId, secretAccessKey } = cloud.credentials
    expect(await ask('test', 'test')).toBe('InvalidAccessKeyId')
    expect(await ask(accessKeyId, 'wrong')).toBe('SignatureDoesNotMatch')
    expect(await ask(accessKeyId, secretAccessKey, 'strange')).toBe('InvalidToken')
    expect(await ask(accessKeyId, secretAccessKey)).toBe('allowed')
  })

  it('holds a session to its policy, its prefix and its time', async () => {
    const sts = new STSClient({ region: REGION })
    clients.push(sts)
    const arn = `arn:aws:s3:::${BUCKET}`
    const { Credentials: told } = await sts.send(
      new AssumeRoleCommand({
        RoleArn: 'arn:aws:iam::123456789012:role/crucible-grant'.replace('123456789012', await account(sts)),
        RoleSessionName: 'test',
        Policy: JSON.stringify({
          Version: '2012-10-17',
          Statement: [
            { Effect: 'Allow', Action: ['s3:GetObject', 's3:PutObject'], Resource: [`${arn}/mine/*`] },
            {
              Effect: 'Allow',
              Action: ['s3:ListBucket'],
              Resource: [arn],
              Condition: { StringLike: { 's3:prefix': ['mine/*'] } },
            },
          ],
        }),
      }),
    )
    const client = s3({
      credentials: {
        accessKeyId: told!.AccessKeyId!,
        secretAccessKey: told!.SecretAccessKey!,
        sessionToken: told!.SessionToken!,
      },
    })
    const put = (Key: string): Promise<string> =>
      codeOf(client.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body: 'x' })))
    expect(await put('mine/a')).toBe('allowed')
    expect(await put('yours/a')).toBe('AccessDenied')
    await s3().send(new PutObjectCommand({ Bucket: BUCKET, Key: 'yours/secret', Body: 'x' }))
    const copy = (CopySource: string): Promise<string> =>
      codeOf(client.send(new CopyObjectCommand({ Bucket: BUCKET, Key: 'mine/copy', CopySource })))
    expect(await copy(`${BUCKET}/mine/a`)).toBe('allowed')
    for (const source of ['yours/secret', 'yours%2Fsecret'])
      expect([source, await copy(`${BUCKET}/${source}`)]).toEqual([source, 'AccessDenied'])
    expect(await copy(`/${BUCKET}/yours/secret`)).toBe('AccessDenied')
    expect(await copy(`${BUCKET}/mine/../yours/secret`)).toBe('NotImplemented')
    const get = (Key: string): Promise<string> =>
      codeOf(client.send(new GetObjectCommand({ Bucket: BUCKET, Key })))
    expect(await get('yours/secret')).toBe('AccessDenied')
    expect(await get('mine/../yours/secret')).not.toBe('allowed')
    const list = (Prefix: string): Promise<string> =>
      codeOf(client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix })))
    expect(await list('mine/')).toBe('allowed')
    expect(await list('')).toBe('AccessDenied')
    expect(await codeOf(client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'mine/none' })))).toBe(
      'NoSuchKey',
    )
    expect(await codeOf(client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'yours/none' })))).toBe(
      'AccessDenied',
    )
  })

  it('deletes the objects of a list, whose document it writes anew', async () => {
    const client = s3()
    const keys = ['list/plain', 'list/a & <b> "c"', "list/ü + 'd'", 'list/other']
    for (const Key of keys) await client.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body: 'x' }))
    const Objects = keys.slice(0, 3).map((Key) => ({ Key }))
    const { Deleted } = await client.send(new DeleteObjectsCommand({ Bucket: BUCKET, Delete: { Objects } }))
    expect(Deleted!.map(({ Key }) => Key)).toEqual(keys.slice(0, 3))
    const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: 'list/' }))
    expect(Contents!.map(({ Key }) => Key)).toEqual(['list/other'])
  })

  it('sends requests in the wrong region to the right one', async () => {
    const CreateBucketConfiguration = { LocationConstraint: 'eu-central-1' as const }
    const there = s3({ region: 'eu-central-1' })
    await there.send(new CreateBucketCommand({ Bucket: 'far-away', CreateBucketConfiguration }))
    await there.send(new PutObjectCommand({ Bucket: 'far-away', Key: 'a', Body: 'x' }))
    expect(await codeOf(s3().send(new GetObjectCommand({ Bucket: 'far-away', Key: 'a' })))).toBe(
      'PermanentRedirect',
    )
    const following = s3({ followRegionRedirects: true })
    expect(
      (await following.send(new HeadObjectCommand({ Bucket: 'far-away', Key: 'a' }))).ContentLength,
    ).toBe(1)
    const where = await s3().send(new GetBucketLocationCommand({ Bucket: 'far-away' }))
    expect(where.LocationConstraint).toBe('eu-central-1')
    expect((await there.send(new HeadBucketCommand({ Bucket: 'far-away' }))).BucketRegion).toBe(
      'eu-central-1',
    )
  })

  it('keeps the configuration of a bucket, and says what there is without one', async () => {
    const client = s3()
    const Bucket = BUCKET
    expect(await codeOf(client.send(new GetBucketLifecycleConfigurationCommand({ Bucket })))).toBe(
      'NoSuchLifecycleConfiguration',
    )
    const Rules = [
      {
        ID: 'unfinished',
        Status: 'Enabled' as const,
        Filter: { Prefix: '' },
        AbortIncompleteMultipartUpload: { DaysAfterInitiation: 3 },
      },
    ]
    await client.send(
      new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }),
    )
    expect((await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }))).Rules).toEqual(Rules)
    const block = await client.send(new GetPublicAccessBlockCommand({ Bucket }))
    expect(block.PublicAccessBlockConfiguration?.BlockPublicAcls).toBe(true)
    const none = new GetPublicAccessBlockCommand({ Bucket: 'no-such-bucket' })
    expect(await codeOf(client.send(none))).toBe('NoSuchBucket')
  })

  it('does what the world says goes wrong', async () => {
    const store = open('faults')
    cloud.addFault({
      fault: 'lost-answer',
      where: { service: 's3', action: 'PutObject' },
      times: 1,
    })
    expect(await store.putIfAbsent('a', 'x')).toBe(true)
    cloud.addFault({
      fault: 'error',
      code: 'SlowDown',
      status: 503,
      where: { service: 's3', action: 'GetObject' },
      times: 1,
    })
    expect((await store.get('a'))?.toString()).toBe('x')
  })

  it('is understood by the aws CLI', async () => {
    const aws = (...words: string[]) =>
      run('aws', ['--output', 'json', ...words], { env: { ...process.env, AWS_PAGER: '' } })
    const isThere = await run('aws', ['--version']).then(
      () => true,
      () => false,
    )
    if (!isThere) return process.stderr.write('skipped: there is no aws CLI on PATH\n')
    const [from, to] = [join(folder, 'cli-from'), join(folder, 'cli-to')]
    await writeFile(from, randomBytes(20_000_000))
    await aws('s3', 'cp', '--quiet', from, `s3://${BUCKET}/cli/object`)
    await aws('s3', 'cp', '--quiet', `s3://${BUCKET}/cli/object`, to)
    expect((await readFile(to)).equals(await readFile(from))).toBe(true)
    const { stdout } = await aws('s3', 'ls', `s3://${BUCKET}/cli/`)
    expect(stdout).toMatch(/20000000 object/)
    expect(JSON.parse((await aws('s3api', 'get-bucket-location', '--bucket', 'far-away')).stdout)).toEqual({
      LocationConstraint: 'eu-central-1',
    })
    return undefined
  }, 120_000)
})

describe('grants', () => {
  it('let a machine do what the protocol wants, in its own job and attempt, and nothing else', async () => {
    const store = open('grants')
    const sts = new STSClient({ region: REGION })
    clients.push(sts)
    const roleArn = `arn:aws:iam::${await account(sts)}:role/crucible-grant`
    const granter = openGranter(store, { roleArn })!
    const grant = await granter.grant({ jobId: 'job-a', attempt: 2, durationMs: 3_600_000 })
    expect(grant.expiresAtMs! - Date.now()).toBeGreaterThan(3_500_000)
    const client = s3({
      credentials: {
        accessKeyId: grant.keyId,
        secretAccessKey: grant.secret,
        sessionToken: grant.sessionToken!,
      },
    })
    const key = (path: string): { Bucket: string; Key: string } => ({ Bucket: BUCKET, Key: `grants/${path}` })
    const put = (path: string): Promise<string> =>
      codeOf(client.send(new PutObjectCommand({ ...key(path), Body: 'x' })))
    const get = (path: string): Promise<string> => codeOf(client.send(new GetObjectCommand(key(path))))
    await store.put('runners/abc.pyz', 'x')
    await store.put('jobs/job-a/checkpoints/000000000001-1/manifest.json', '{}')
    await store.put('jobs/job-b/secret', 'x')
    expect([
      await put('jobs/job-a/attempts/2/beat.json'),
      await put('jobs/job-a/checkpoints/000000000007-2/files/model.pt'),
      await put('jobs/job-a/attempts/2/artifacts/a'),
      await get('jobs/job-a/checkpoints/000000000001-1/manifest.json'),
      await get('runners/abc.pyz'),
    ]).toEqual(['allowed', 'allowed', 'allowed', 'allowed', 'allowed'])
    expect(await get('jobs/job-a/attempts/2/drain.json')).toBe('NoSuchKey')
    const at = ['job-a', 2] as const
    const ofRunner = [
      layout.claim(...at),
      layout.restores(...at),
      layout.result(...at),
      layout.lastWords(...at),
      layout.outputs(...at),
      `${layout.logs(...at)}000000000001-000000000002.ndjson`,
      // The runner deletes it.
      layout.attemptSecrets(...at),
    ]
    expect(await Promise.all(ofRunner.map(put))).toEqual(ofRunner.map(() => 'allowed'))
    const ofControlPlane = [
      layout.order(...at),
      layout.machine(...at),
      layout.billing(...at),
      layout.endedMachine(...at, 'ranks'),
      layout.send(...at, 1),
      layout.sendOutcome(...at, 1),
      layout.lease(...at),
      layout.limits(...at, 1),
      layout.drain(...at),
      layout.shorterDrain(...at, 2),
      layout.diagnosis(...at),
    ]
    expect(await Promise.all(ofControlPlane.map(put))).toEqual(ofControlPlane.map(() => 'AccessDenied'))
    expect([
      await put('jobs/job-a/attempts/1/beat.json'),
      await put('jobs/job-a/attempts/22/beat.json'),
      await put('jobs/job-a/checkpoints/000000000007-12/files/model.pt'),
      await put('jobs/job-a/checkpoints/000000000007-1/files/x-2/model.pt'),
      await put('jobs/job-a/attempts/2-1/beat.json'),
      await put('jobs/job-a-2/attempts/2/beat.json'),
      await put('jobs/job-a/record/000001.json'),
      await put('jobs/job-a/artifacts/a'),
      await put('runners/abc.pyz'),
      await get('jobs/job-b/secret'),
    ]).toEqual(Array(10).fill('AccessDenied'))
  })

  it('say what to do when none are given', async () => {
    const granter = openGranter(open('grants'), { roleArn: 'arn:aws:iam::123456789012:role/nobody' })!
    const asking = granter.grant({ jobId: 'job-a', attempt: 1, durationMs: 3_600_000 })
    await expect(asking).rejects.toThrow(/Let Crucible take on arn:aws:iam::123456789012:role\/nobody/)
  })
})

async function account(sts: STSClient): Promise<string> {
  const { GetCallerIdentityCommand } = await import('@aws-sdk/client-sts')
  return (await sts.send(new GetCallerIdentityCommand({}))).Account!
}

describe('a bucket with a key of KMS', () => {
  const S3_ONLY = ['s3:*']
  const [WRITES, READS] = ['kms:GenerateDataKey', 'kms:Decrypt']
  const denied = (action: string, key: string, why: string): string =>
    `AccessDenied: User: arn:aws:sts::111122223333:assumed-role/crucible-grant/key is not authorized to perform: ${action} on resource: ${key} because no ${why} policy allows the ${action} action`

  /** A caller with the rights of the role, narrowed to some actions. */
  async function caller(actions: string[]): Promise<S3Client> {
    const sts = new STSClient({ region: REGION })
    clients.push(sts)
    const Policy = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Action: actions, Resource: '*' }],
    })
    const { Credentials: keys } = await sts.send(
      new AssumeRoleCommand({
        RoleArn: 'arn:aws:iam::111122223333:role/crucible-grant',
        RoleSessionName: 'key',
        Policy,
      }),
    )
    const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: sessionToken } = keys!
    return s3({ credentials: { accessKeyId: accessKeyId!, secretAccessKey: secretAccessKey!, sessionToken } })
  }

  async function bucketWith(key: string): Promise<string> {
    const Bucket = `${BUCKET}-${key.split('/')[1]}`
    const own = s3()
    await own.send(new CreateBucketCommand({ Bucket })).catch(() => undefined)
    const ApplyServerSideEncryptionByDefault = { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: key } as const
    const ServerSideEncryptionConfiguration = { Rules: [{ ApplyServerSideEncryptionByDefault }] }
    await own.send(new PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration }))
    return Bucket
  }

  const outcome = (asking: Promise<unknown>): Promise<string> =>
    asking.then(
      () => 'done',
      (error: Error) => `${error.name}: ${error.message}`,
    )

  it.each([
    ['is written and read with the rights to it', OWN_KEY, [WRITES, READS], 'done', 'done', 'done'],
    [
      'is neither without any',
      OWN_KEY,
      [],
      denied(WRITES, OWN_KEY, 'session'),
      denied(WRITES, OWN_KEY, 'session'),
      denied(READS, OWN_KEY, 'session'),
    ],
    [
      'is written in one piece, and not read, with the right to encrypt',
      OWN_KEY,
      [WRITES],
      'done',
      denied(READS, OWN_KEY, 'session'),
      denied(READS, OWN_KEY, 'session'),
    ],
    [
      'is refused by a key that does not let the account decide',
      CLOSED_KEY,
      [WRITES, READS],
      denied(WRITES, CLOSED_KEY, 'resource-based'),
      denied(WRITES, CLOSED_KEY, 'resource-based'),
      denied(READS, CLOSED_KEY, 'resource-based'),
    ],
    [
      'is refused by a role without rights',
      OPEN_KEY,
      [WRITES, READS],
      denied(WRITES, OPEN_KEY, 'identity-based'),
      denied(WRITES, OPEN_KEY, 'identity-based'),
      denied(READS, OPEN_KEY, 'identity-based'),
    ],
  ])('%s', async (_, key, actions, put, upload, get) => {
    const target = await bucketWith(key)
    const own = { Bucket: target, Key: 'own' }
    const by = await caller([...S3_ONLY, ...actions])
    expect(await outcome(by.send(new PutObjectCommand({ ...own, Body: 'x' })))).toBe(put)
    expect(await outcome(uploaded(by, own))).toBe(upload)
    const there = { Bucket: target, Key: 'there' }
    expect(await outcome(s3().send(new PutObjectCommand({ ...there, Body: 'x' })))).toBe('done')
    expect(await outcome(by.send(new GetObjectCommand(there)))).toBe(get)
    // Names need no key, and an object that does not exist has none.
    expect(await outcome(by.send(new HeadObjectCommand(there)))).toBe('done')
    expect(await outcome(by.send(new GetObjectCommand({ ...there, Key: 'absent' })))).toMatch(/^NoSuchKey/)
  })

  it('tells clients its key', async () => {
    const answer = await s3().send(
      new PutObjectCommand({ Bucket: await bucketWith(OPEN_KEY), Key: 'told', Body: 'x' }),
    )
    expect(answer).toMatchObject({ ServerSideEncryption: 'aws:kms', SSEKMSKeyId: OPEN_KEY })
  })

  async function uploaded(by: S3Client, to: { Bucket: string; Key: string }): Promise<void> {
    const { UploadId } = await by.send(new CreateMultipartUploadCommand(to))
    const { ETag } = await by.send(new UploadPartCommand({ ...to, UploadId, PartNumber: 1, Body: 'x' }))
    const MultipartUpload = { Parts: [{ ETag, PartNumber: 1 }] }
    await by.send(new CompleteMultipartUploadCommand({ ...to, UploadId, MultipartUpload }))
  }
})
