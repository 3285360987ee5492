import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import type { Grant } from '../../core/grants'
import { sealGrant, type Granter } from '../../storage/grants'
import { openGranter } from '../../storage/open-granter'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import { formatKey } from '../../storage/secrets'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { FaultProxy } from '../support/fault-proxy'
import { until } from '../support/until'
import { COUNTER, sumOf } from './programs'
import { askedOver, expectAsForecast } from './store-requests'
import { JOB, useWorlds, type World } from './world'
import { layout } from '../../storage/layout'
import { itInAll } from '../support/selection'

const BUCKET = 'machine-tests'
const KEY = Buffer.alloc(32, 9)
const HOUR_MS = 3_600_000
const createWorld = useWorlds()
let cloud: TestCloud
let proxy: FaultProxy
let roleArn: string
const stores: S3Store[] = []

beforeAll(async () => {
  cloud = await startTestCloud(BUCKET)
  proxy = await FaultProxy.open(cloud.storeEndpoint!)
  const sts = new STSClient({})
  const { Account } = await sts.send(new GetCallerIdentityCommand({}))
  roleArn = `arn:aws:iam::${Account}:role/crucible-grant`
  sts.destroy()
}, 240_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  await proxy.close()
  await cloud.stop()
})

let world: World
let granter: Granter
beforeEach(async () => {
  const store = openStore(`s3://${BUCKET}/${randomUUID()}?endpoint=${proxy.url}`) as S3Store
  stores.push(store)
  granter = openGranter(store, { roleArn })!
  world = createWorld(store)
  for (const name of Object.keys(world.environment))
    if (name.startsWith('AWS_')) delete world.environment[name]
  world.environment['AWS_EC2_METADATA_DISABLED'] = 'true'
  proxy.rules.length = 0
  proxy.keyIds.clear()
})

const grant = (attempt = 1): Promise<Grant> => granter.grant({ jobId: JOB, attempt, durationMs: HOUR_MS })

async function grantFile(first: Grant, name = 'grant.json'): Promise<string[]> {
  const [grantPath, keyPath] = [join(world.folder, name), join(world.folder, 'key')]
  await writeFile(grantPath, JSON.stringify(first), { mode: 0o600 })
  await writeFile(keyPath, formatKey(KEY), { mode: 0o600 })
  return ['--grant-file', grantPath, '--secret-key-file', keyPath]
}

describe('a machine whose store is in S3', () => {
  it('lives on a grant, and on that of its lease from then on; the workload sees neither', async () => {
    const [first, second] = [await grant(), await grant()]
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    // The counter's checkpoints are one part each; this one is two.
    const large = 'head -c 17000000 /dev/zero > large && mv large $CRUCIBLE_CHECKPOINT_DIR/step-30.bin'
    const wait = 'until [ -e go ]; do echo waiting; sleep 0.02; done'
    const run = `env | grep -c AWS_ || true; python3 counter.py 20 0.02 10; ${large}; ${wait}`
    const machine = await world.launch({ bundle, run }, ...(await grantFile(first)))
    const beat = await machine.untilBeat(({ progress }) => progress?.step === 20)
    expect(proxy.keyIds.has(first.keyId)).toBe(true)
    const lease = { seq: 1, answersBeat: beat.seq, ttlMs: 60_000 }
    await world.lease(1, { ...lease, grant: sealGrant(KEY, second) })
    await until(() => proxy.keyIds.has(second.keyId))
    await machine.untilBeat(({ checkpoint }) => checkpoint?.step === 30)
    const asked = await askedOver(10, { machine, proxy, keyId: second.keyId })
    await writeFile(join(machine.root, 'work/go'), '')
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', checkpoint: { step: 30 } })
    const signed = [first, second].flatMap(({ keyId }) => proxy.signedBy(keyId))
    expectAsForecast(asked, signed)
    expect(await world.artifact('sum.txt')).toBe(sumOf(20))
    expect((await machine.output())[0]).toBe('0')
    expect(machine.read('runner.log')).not.toContain(first.secret)
  })

  it('continues from the checkpoint of an earlier attempt', async () => {
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const first = await world.launch(
      { bundle, run: 'python3 counter.py 20 0.01 10' },
      ...(await grantFile(await grant())),
    )
    expect(await first.end()).toMatchObject({ outcome: 'succeeded' })
    const args = await grantFile(await grant(2))
    const second = await world.launch({ attempt: 2, bundle, run: 'python3 counter.py 30 0.01 10' }, ...args)
    expect(await second.end()).toMatchObject({
      outcome: 'succeeded',
      restoredFrom: { step: 20, attempt: 1 },
      checkpoint: { step: 30, attempt: 2 },
    })
    expect(await world.artifact('sum.txt')).toBe(sumOf(30))
  })

  it('bears a store that is away for a while, and keys that end meanwhile', async () => {
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const run = 'python3 counter.py 60 0.05 10'
    const machine = await world.launch({ bundle, run }, ...(await grantFile(await grant())))
    await machine.untilBeat(({ progress }) => (progress?.step ?? 0) > 5)
    const away = { kind: 'answer', status: 503, code: 'SlowDown' } as const
    proxy.rules.push({ match: '.', fault: away, times: 25 })
    await until(() => proxy.rules[0]!.times === 0, 60_000)
    const ended = { kind: 'answer', status: 400, code: 'ExpiredToken' } as const
    proxy.rules.push({ match: '^PUT', fault: ended, times: 2 })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', checkpoint: { step: 60 } })
    const lines = await machine.lines()
    expect(lines.map(({ n }) => n)).toEqual(lines.map((_, at) => at + 1))
  })

  it('puts no result into a bucket that was emptied, and puts it once the bucket is back', async () => {
    const run = 'echo step 1; until [ -e go ]; do sleep 0.02; done'
    const machine = await world.launch({ run }, ...(await grantFile(await grant())))
    await machine.untilBeat(({ progress }) => progress !== null)
    const absent = { kind: 'answer', status: 404, code: 'NoSuchKey' } as const
    const rule = { match: `^GET .*/jobs/${JOB}/attempts/1/(claim|order)\\.json`, fault: absent, times: 1_000 }
    proxy.rules.push(rule)
    await writeFile(join(machine.root, 'work/go'), '')
    await until(() => rule.times < 996)
    expect(await machine.result()).toBeUndefined()
    proxy.rules.length = 0
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    expect(machine.read('runner.log')).toMatch(/it was emptied or replaced/)
  })

  itInAll('ends with the words of a store that refuses it at the start, for half a minute', async () => {
    const denied = { kind: 'answer', status: 403, code: 'AccessDenied' } as const
    const bundle = await world.bundle({ a: 'a' })
    proxy.rules.push({ match: '/attempts/1/claim|GET .*/bundle/', fault: denied, times: 1_000 })
    const first = await world.launch({ bundle }, ...(await grantFile(await grant())))
    const second = await world.launch(
      { attempt: 2, bundle },
      ...(await grantFile(await grant(2), 'grant-2.json')),
    )
    await first.exited
    const words = /the store refuses this machine: .*403 AccessDenied .*allow the identity that runs jobs/i
    expect(first.console.trimEnd().split('\n').at(-1)).toMatch(words)
    expect((await world.store.get(layout.lastWords(JOB, 1)))?.toString()).toMatch(words)
    expect(await first.result()).toBeUndefined()
    // This one has claimed its attempt.
    expect(await second.end()).toMatchObject({ outcome: 'failed', reason: 'store-refused' })
    expect((await second.result())!.message).toMatch(words)
  })

  itInAll('asks in the name of its own role where it has one', async () => {
    const role = await grant()
    const metadata = await serveMetadata(role)
    world.environment['AWS_EC2_METADATA_SERVICE_ENDPOINT'] = metadata.url
    delete world.environment['AWS_EC2_METADATA_DISABLED']
    try {
      const machine = await world.launch({ run: 'echo done' })
      expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
      expect(proxy.keyIds.has(role.keyId)).toBe(true)
    } finally {
      await metadata.close()
    }
  })
})

/** The metadata service of a machine on EC2, as far as credentials go. */
async function serveMetadata(grant: Grant): Promise<{ url: string; close(): Promise<unknown> }> {
  const base = '/latest/meta-data/iam/security-credentials/'
  const credentials = JSON.stringify({
    Code: 'Success',
    AccessKeyId: grant.keyId,
    SecretAccessKey: grant.secret,
    Token: grant.sessionToken,
    Expiration: new Date(grant.expiresAtMs!).toISOString(),
  })
  const answers: Record<string, string> = { [base]: 'node', [`${base}node`]: credentials }
  const server: Server = createServer(({ method, url, headers }, response) => {
    if (method === 'PUT') return void response.end('token')
    const text = headers['x-aws-ec2-metadata-token'] === 'token' ? answers[url ?? ''] : undefined
    response.writeHead(text === undefined ? 404 : 200).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
