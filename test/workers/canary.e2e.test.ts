/** A job's secret reaches its program, and no other place: searched for everywhere after a run of real processes on EC2, over the wire. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { build, CommandLine, type Running } from '../cli/process'
import { findCanary, makeCanary, type Place } from '../support/canary'
import { CommandLines, executionsIn, storedIn } from '../support/places'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { freshNamespace } from '../support/namespace'
import { startRecordingProxy, type RecordingProxy } from '../support/recording-proxy'
import { connectTo, testServer, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { itInAll } from '../support/selection'

const BUCKET = 'canary-e2e'
const PATIENCE_MS = 120_000

/** Says that it has the secret, by its digest, and works for long enough to be looked at. */
const TRAIN = `import hashlib, os, time
print("digest:", hashlib.sha256(os.environ["HF_TOKEN"].encode()).hexdigest(), flush=True)
for step in range(1, 31):
    print("step %d/30" % step, flush=True)
    path = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "step-%06d.bin" % step)
    with open(path + ".tmp", "w") as file: file.write(str(step))
    os.replace(path + ".tmp", path)
    time.sleep(0.2)
`

let at: TestConnection
let cloud: TestCloud
let proxy: RecordingProxy
let namespace: string
let storeUrl: string
let folder: string
let crucible: CommandLine
let worker: Running

const commandLines = new CommandLines()

const onLinux = process.platform === 'linux' ? describe : describe.skip

async function open(): Promise<void> {
  build()
  at = await connectTo()
  cloud = await startTestCloud(BUCKET, {
    durations: { osShutdown: 500 },
    regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
    roles: {
      'crucible-machine': {
        managed: ['AmazonSSMManagedInstanceCore', 'AmazonS3FullAccess'],
        hasProfile: true,
        trusts: ['ec2.amazonaws.com'],
      },
    },
  })
  proxy = await startRecordingProxy(cloud.endpoint)
  namespace = await freshNamespace(at.client.connection as never)
  storeUrl = `s3://${BUCKET}/crucible?endpoint=${cloud.storeEndpoint!}&region=${cloud.region}`
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-canary-')))
  writeFileSync(join(folder, 'train.py'), TRAIN)
  writeFileSync(join(folder, '.crucibleignore'), 'home\n')
  const aws = Object.entries(process.env).filter(([key]) => key.startsWith('AWS_'))
  crucible = new CommandLine(
    {
      ...(Object.fromEntries(aws) as Record<string, string>),
      AWS_ENDPOINT_URL: proxy.endpoint,
      CRUCIBLE_HOME: join(folder, 'home'),
      CRUCIBLE_STORE: storeUrl,
      CRUCIBLE_BUDGET_MONTH: '$900',
      TEMPORAL_ADDRESS: testServer().address,
      TEMPORAL_NAMESPACE: namespace,
      CRUCIBLE_BACKENDS: 'ec2',
      CRUCIBLE_EC2_TYPES: 'm7i.*',
      CRUCIBLE_BEAT: '0.5s',
      CRUCIBLE_OBSERVE: '0.5s',
      CRUCIBLE_CHECKPOINT_QUIET: '0.5s',
      CRUCIBLE_DRAIN: '2s',
      CRUCIBLE_POWER_OFF: '0.5s',
    },
    folder,
  )
  worker = await crucible.ready('worker')
}

const stored = (when: string): Promise<Place[]> => storedIn(storeUrl, when)

/** Files of the deployment's own folder, such as its key and what its clients have kept. */
function keptAtHome(): Place[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((path) => ({ name: path.slice(folder.length), content: readFileSync(path) }))
}

async function everyPlace(id: string): Promise<Place[]> {
  const said = await Promise.all(
    [
      ['logs', id],
      ['show', id],
      ['show', id, '--json'],
      ['events', id],
      ['list', '--json'],
    ].map(async (words) => ({ name: `crucible ${words[0]!}`, content: await crucible.run(...words) })),
  )
  return [
    ...(await executionsIn(at, namespace)),
    ...(await stored('afterwards')),
    ...keptAtHome(),
    ...said,
    { name: 'what the worker printed', content: [worker.stdout(), worker.stderr()] },
    { name: 'calls of the cloud', content: cloud.journal.calls() },
    { name: 'calls of the cloud on the wire', content: proxy.calls },
    { name: 'tags of machines', content: cloud.instances() },
    { name: 'command lines', content: commandLines.seen() },
  ]
}

/** Runs a job to its end, with garbage collection while it runs; what the store holds while its program runs. */
async function ran(id: string, how: { args: string[]; env?: Record<string, string> }): Promise<Place[]> {
  const submitted = await crucible.start(
    ['submit', 'train.py', '--id', id, '--budget', '$5', ...how.args, '--json'],
    how.env,
  ).ended
  expect(submitted).toMatchObject({ exitCode: 0 })
  const followed = crucible.start(['logs', '-f', id])
  await until(() => followed.stdout().includes('step'), PATIENCE_MS)
  const meanwhile = await stored('meanwhile')
  await crucible.json('gc')
  await followed.ended
  expect(await crucible.json('show', id)).toMatchObject({ state: 'succeeded' })
  return meanwhile
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

onLinux('the secret of a job', () => {
  beforeAll(async () => {
    await open()
    commandLines.watch()
  }, 240_000)
  afterAll(async () => {
    commandLines.stop()
    await crucible?.close()
    await proxy?.stop()
    await cloud?.stop()
    await at?.close()
  }, 60_000)

  it('is in its program and nowhere else: histories, attributes, store, machines, logs, command lines', async () => {
    const canary = makeCanary()
    const id = 'job-canary'
    const meanwhile = await ran(id, { args: ['--secret', 'HF_TOKEN'], env: { HF_TOKEN: canary } })
    expect((await crucible.run('logs', id)).stdout).toContain(`digest: ${digest(canary)}`)
    const places = [...meanwhile, ...(await everyPlace(id))]
    const names = places.map(({ name }) => name).join('\n')
    // All that can be looked into was looked into.
    for (const kind of [`job/${id}`, `job/${id}/1`, 'treasury/', 'garbage']) {
      expect(names).toMatch(new RegExp(`^history of ${kind}`, 'm'))
      expect(names).toMatch(new RegExp(`^what is listed of ${kind}`, 'm'))
    }
    expect(names).toMatch(/^store meanwhile jobs\/job-canary\/.*secrets\.sealed$/m)
    const asked = new Set(cloud.journal.calls().map(({ action }) => action))
    expect([...asked]).toEqual(expect.arrayContaining(['CreateLaunchTemplate', 'CreateFleet', 'SendCommand']))
    expect(commandLines.seen().join('\n')).toContain('train.py')
    expect(findCanary(canary, places)).toEqual([])
  }, 300_000)

  itInAll(
    'would have been found: a plain variable, which is stored with the job, is',
    async () => {
      const canary = makeCanary()
      const id = 'job-plain'
      await ran(id, { args: ['--env', `HF_TOKEN=${canary}`] })
      const found = findCanary(canary, await everyPlace(id))
      expect(found).toEqual(
        expect.arrayContaining([
          `history of job/${id}: in clear`,
          expect.stringMatching(/^store afterwards jobs\/job-plain\/.*: in clear$/),
          'command lines: in clear',
        ]),
      )
    },
    300_000,
  )
})
