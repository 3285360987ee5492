import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Lease } from '../../core/documents'
import { openGrant } from '../../storage/grants'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import { S3Store } from '../../storage/s3/s3-store'
import { attemptKey, ensureDeploymentKey } from '../../storage/secrets'
import type { JobView } from '../../client/job/job-view'
import { build, CommandLine, type Running } from '../cli/process'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { FaultProxy } from '../support/fault-proxy'
import { freshNamespace } from '../support/namespace'
import { itInAll } from '../support/selection'
import { connectTo, testServer, type TestConnection } from '../support/temporal'
import { until } from '../support/until'

const BUCKET = 'grants-e2e'
const ACCOUNT = '123456789012'
const PATIENCE_MS = 120_000
/** Sessions of seconds: a grant is renewed after fifteen, and a lease ends twenty-eight after its grant. */
const SESSION_MS = 34_000

/** Counts and saves until it is stopped; tells what it sees of credentials. */
const TRAIN = `import json, os, time
step = 0
resume = os.environ.get("CRUCIBLE_RESUME_FROM")
if resume: step = json.load(open(resume))
print("credentials:", sum(name.startswith("AWS_") for name in os.environ))
while True:
    step += 1
    print("step %d/100000" % step)
    path = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "step-%06d.json" % step)
    with open(path + ".tmp", "w") as file: json.dump(step, file)
    os.replace(path + ".tmp", path)
    time.sleep(1)
`

let at: TestConnection
let cloud: TestCloud
let proxy: FaultProxy

beforeAll(async () => {
  build()
  at = await connectTo()
  cloud = await startTestCloud(BUCKET, {
    account: ACCOUNT,
    durations: { session: SESSION_MS },
    regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
    roles: {
      // What a machine has of itself opens nothing in the store.
      'crucible-machine': {
        managed: ['AmazonSSMManagedInstanceCore'],
        hasProfile: true,
        trusts: ['ec2.amazonaws.com'],
      },
      'crucible-grant': { managed: ['AmazonS3FullAccess'], sessionMax: '12h' },
    },
  })
  proxy = await FaultProxy.open(cloud.storeEndpoint!)
}, 240_000)
afterAll(async () => {
  await proxy.close()
  await cloud.stop()
  await at.close()
}, 60_000)

/** A deployment of processes, its store in the small cloud. */
class Deployment {
  private constructor(
    readonly folder: string,
    readonly crucible: CommandLine,
    readonly worker: Running,
    readonly store: S3Store,
  ) {}

  static async start(name: string, settings: Record<string, string>): Promise<Deployment> {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-grants-')))
    writeFileSync(join(folder, 'train.py'), TRAIN)
    writeFileSync(join(folder, '.crucibleignore'), 'home\n')
    const url = `s3://${BUCKET}/${name}?endpoint=${proxy.url}&region=${cloud.region}`
    const aws = Object.entries(process.env).filter(([key]) => key.startsWith('AWS_'))
    const crucible = new CommandLine(
      {
        ...(Object.fromEntries(aws) as Record<string, string>),
        CRUCIBLE_HOME: join(folder, 'home'),
        CRUCIBLE_STORE: url,
        TEMPORAL_ADDRESS: testServer().address,
        TEMPORAL_NAMESPACE: await freshNamespace(at.client.connection as never),
        CRUCIBLE_BEAT: '0.5s',
        CRUCIBLE_OBSERVE: '0.5s',
        CRUCIBLE_LEASE: '10m',
        CRUCIBLE_DRAIN: '2s',
        CRUCIBLE_POWER_OFF: '0.5s',
        CRUCIBLE_CHECKPOINT_QUIET: '0.5s',
        ...settings,
      },
      folder,
    )
    return new Deployment(folder, crucible, await crucible.ready('worker'), openStore(url) as S3Store)
  }

  async submit(id: string): Promise<void> {
    await this.crucible.json('submit', 'train.py', '--id', id)
  }

  show(id: string): Promise<JobView> {
    return this.crucible.json<JobView>('show', id)
  }

  async lease(jobId: string): Promise<Lease | undefined> {
    const body = await this.store.get(layout.lease(jobId, 1))
    return body && (JSON.parse(body.toString()) as Lease)
  }

  async close(): Promise<void> {
    await this.store.close()
    await this.crucible.close()
  }
}

/** The sessions in whose names the store was asked so far. */
const sessions = (): string[] => [...proxy.keyIds].filter((id) => id.startsWith('ASIA'))

async function outlivesItsGrants(deployment: Deployment, id: string): Promise<void> {
  expect((await deployment.crucible.run('doctor')).stdout).toMatch(
    /warning +grants +machines get credentials that are valid for \d\ds: without workers they continue for \d\ds, not for 10m/,
  )
  // As S3 answers where the bucket has a key that the role may not use.
  cloud.addFault({
    fault: 'error',
    code: 'AccessDenied',
    status: 403,
    message:
      'User is not authorized to perform: kms:GenerateDataKey on the resource associated with this ciphertext',
    times: 1,
    where: { service: 's3', action: 'PutObject', caller: '*assumed-role/crucible-grant/*' },
  })
  expect((await deployment.crucible.run('doctor')).stdout).toMatch(
    /error +grants +Could not .*: permission denied: allow kms:GenerateDataKey with the KMS key of the bucket/,
  )
  expect(await deployment.store.listFolders(layout.jobs())).toEqual([])
  const before = sessions().length
  const fresh = (count: number) => until(() => sessions().length - before >= count, PATIENCE_MS)
  await deployment.submit(id)
  await fresh(2)
  // Just renewed; the next is due in fifteen seconds, and then there is no one to ask for another seven.
  const whole = (await deployment.lease(id))!
  cloud.addFault({
    fault: 'error',
    code: 'InternalFailure',
    status: 500,
    until: '22s',
    where: { service: 'sts' },
  })
  await until(() => deployment.worker.stderr().includes('no new credentials'), PATIENCE_MS)
  // Renewed no further than the present grant reaches.
  await until(async () => (await deployment.lease(id))!.ttlMs < whole.ttlMs, PATIENCE_MS)
  await fresh(3)
  expect(deployment.worker.stderr()).toContain('get credentials for the store again')
  expect(await deployment.show(id)).toMatchObject({ state: 'running', attempts: [{ number: 1 }] })
  await expectNarrow(deployment, id)
  // What it saves on the way out needs the store as well.
  await deployment.crucible.json('cancel', id)
  await until(async () => (await deployment.show(id)).state === 'cancelled', PATIENCE_MS)
  expect((await deployment.show(id)).attempts).toMatchObject([
    { reason: 'cancelled', checkpoint: { attempt: 1 } },
  ])
  expect((await deployment.crucible.run('logs', id)).stdout).toContain('credentials: 0')
}

describe('a job whose machine gets its credentials from us', () => {
  itInAll(
    'outlives several of them on this host, and a token service that is away',
    async () => {
      const role = `arn:aws:iam::${ACCOUNT}:role/crucible-grant`
      const deployment = await Deployment.start('local', { CRUCIBLE_GRANT_ROLE: role })
      try {
        await outlivesItsGrants(deployment, 'job-on-grants')
      } finally {
        await deployment.close()
      }
    },
    300_000,
  )

  it('does so on EC2, where the profile of the machine opens nothing', async () => {
    const deployment = await Deployment.start('ec2', {
      CRUCIBLE_BACKENDS: 'ec2',
      CRUCIBLE_EC2_TYPES: 'm7i.*',
      CRUCIBLE_GRANT_ROLE: `arn:aws:iam::${ACCOUNT}:role/crucible-grant`,
    })
    try {
      await outlivesItsGrants(deployment, 'job-on-ec2')
    } finally {
      await deployment.close()
    }
  }, 300_000)
})

/** What the machine of the first attempt has opens nothing of another attempt or job. */
async function expectNarrow({ folder, store }: Deployment, id: string): Promise<void> {
  const key = attemptKey(await ensureDeploymentKey(join(folder, 'home', 'secret.key')), `${id}-1`)
  const { grant } = JSON.parse((await store.get(layout.lease(id, 1)))!.toString()) as Lease
  const asMachine = new S3Store(store.place, openGrant(key, grant!))
  try {
    await asMachine.put(layout.beat(id, 1), '{}')
    for (const foreign of [layout.beat(id, 2), layout.beat('job-of-another', 1), layout.record(id, 0)])
      await expect(asMachine.put(foreign, '{}')).rejects.toMatchObject({ code: 'AccessDenied' })
    await expect(asMachine.get(layout.record('job-of-another', 0))).rejects.toMatchObject({
      code: 'AccessDenied',
    })
  } finally {
    await asMachine.close()
  }
}
