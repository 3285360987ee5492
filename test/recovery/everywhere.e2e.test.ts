/** One job on three providers, over the wire: a spot machine of EC2, Modal up to its limit of a run, and Lambda. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCanary, findCanary, type Place } from '../support/canary'
import { CommandLines, executionsIn, storedIn } from '../support/places'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { JobView } from '../../client/job/job-view'
import type { JobSpec } from '../../core/job/job'
import { attemptIdOf } from '../../core/queues'
import { openStore } from '../../storage/open-store'
import { SecretIssuer } from '../../service/secrets'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { SPEC } from '../workflows/harness'
import { CloudDeployment, QUICK } from './deployment'

jest.setTimeout(600_000)

/** The least with which a job that saves is placed: a minute of work, and what saving, stopping and clocks take. */
const MODAL_RUN_MAX_S = 110
/** Each takes at least its pause, so that the limit is reached before the work is done on any computer. */
const STEPS = 2_400
const TRAINING: Partial<JobSpec> = {
  run: `exec python3 train.py --steps ${STEPS} --pause 0.04`,
  resources: { gpuMemoryGb: { min: 20 } },
  checkpoint: { ...SPEC.checkpoint, directory: 'checkpoints' },
  // It takes longer than it says: a job that says so would not be placed on a machine that ends before.
  durationMs: 60_000,
  secrets: ['HF_TOKEN'],
}

const TOKEN = makeCanary()

const commandLines = new CommandLines()
let at: TestConnection
let d: CloudDeployment

beforeAll(async () => {
  quietWorkers()
  commandLines.watch()
  at = await connectTo()
  d = await CloudDeployment.start(at, {
    isRecorded: true,
    world: {
      account: '111122223333',
      durations: { pending: '100ms', boot: '50ms', osShutdown: '1s', slotReturn: '1h' },
      regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
      prices: [{ type: 'g6.xlarge', zone: 'us-east-1a', usdPerHour: 0.3 }],
      stock: [{ zone: 'us-east-1a', type: 'g6.xlarge', capacity: 'spot', count: 1 }],
    },
    settings: ({ providers: { modal, lambda }, ...cloud }) => ({
      ...QUICK,
      CRUCIBLE_QUEUE_WITHIN: '4s',
      CRUCIBLE_BACKENDS: 'ec2,modal,lambda',
      CRUCIBLE_GRANT_ROLE: cloud.account().roles.find(({ name }) => name === 'crucible-grant')!.arn,
      CRUCIBLE_EC2_TYPES: 'g6.xlarge',
      HF_TOKEN: TOKEN,
      CRUCIBLE_MODAL_URL: modal!['endpoint']!,
      CRUCIBLE_MODAL_KEY: modal!['key']!,
      CRUCIBLE_MODAL_SECRET: modal!['secret']!,
      CRUCIBLE_MODAL_GPUS: 'B200',
      CRUCIBLE_MODAL_RUN_MAX: `${MODAL_RUN_MAX_S}s`,
      CRUCIBLE_LAMBDA_ENDPOINT: lambda!['endpoint']!,
      LAMBDA_API_KEY: lambda!['apiKey']!,
      CRUCIBLE_LAMBDA_TYPES: 'gpu_1x_a100_sxm4',
      CRUCIBLE_LAMBDA_STALE_FOR: '2s',
    }),
  })
}, 240_000)
afterAll(async () => {
  commandLines.stop()
  await d?.stop()
  await at?.close()
}, 60_000)

async function submit(id: string, spec: Partial<JobSpec>): Promise<string> {
  const directory = join(__dirname, '../../examples/char-lm')
  const { id: jobId } = await d.client.submit({
    id,
    spec: { ...SPEC, ...TRAINING, ...spec },
    directory,
  })
  return jobId
}

const onAttempt = (jobId: string, backend: string, step: number): Promise<JobView> =>
  d.see(jobId, ({ attempts }) =>
    attempts.some((attempt) => attempt.backend === backend && (attempt.progress?.step ?? 0) >= step),
  )

async function weightsOf(jobId: string): Promise<Buffer> {
  const folder = join(d.cloud.folder, `weights-${jobId}`)
  await d.client.downloadArtifacts(jobId, folder)
  return readFileSync(join(folder, 'weights.json'))
}

/** Keys and credentials that the run has made: of each attempt, and what the token service has handed out. */
async function secretsOf(views: readonly JobView[]): Promise<Record<string, string>> {
  const store = openStore(d.home.storeUrl)
  const keys = await SecretIssuer.open(store, d.home.secretKeyFile)
  const attempts = views.flatMap(({ id, attempts }) => attempts.map(({ number }) => attemptIdOf(id, number)))
  const grants = d.calls
    .filter(({ action }) => action === 'AssumeRole')
    .map(({ answer }) => /<SecretAccessKey>(.+?)<\/SecretAccessKey>/.exec(answer)![1]!)
  expect(grants.length).toBeGreaterThan(2)
  return Object.fromEntries([
    ['the secret of the jobs', TOKEN],
    ...attempts.map((attemptId) => [`the key of ${attemptId}`, keys.keyOf(attemptId)]),
    ...grants.map((secret, index) => [`grant ${index + 1}`, secret]),
  ]) as Record<string, string>
}

async function linesOf(jobId: string): Promise<string[]> {
  const lines: string[] = []
  for await (const { m } of d.client.logs(jobId)) lines.push(m)
  return lines
}

async function placesOf(jobIds: readonly string[]): Promise<Place[]> {
  const logs = await Promise.all(
    jobIds.map(async (id) => ({ name: `logs of ${id}`, content: await linesOf(id) })),
  )
  return [
    ...(await executionsIn(at, d.temporal.options.namespace)),
    ...(await storedIn(d.home.storeUrl, 'afterwards')),
    ...logs,
    { name: 'journal of the small cloud', content: d.cloud.journal.calls() },
    {
      name: 'calls of AWS on the wire',
      // What the token service answers is where a grant comes from.
      content: d.calls.map((call) => (call.action === 'AssumeRole' ? { ...call, answer: '' } : call)),
    },
    { name: 'tags of machines', content: d.cloud.instances() },
    { name: 'command lines', content: commandLines.seen() },
  ]
}

describe('a job on EC2, Modal and Lambda', () => {
  let moved: JobView
  let calm: JobView

  it('moves twice and ends with the weights of an undisturbed run', async () => {
    const movedId = await submit('job-moved', {
      backends: [{ backend: 'ec2', capacityType: 'spot' }, { backend: 'modal' }, { backend: 'lambda' }],
    })
    const calmId = await submit('job-calm', {
      isInterruptible: false,
      backends: [{ backend: 'ec2', capacityType: 'on-demand' }],
    })
    await onAttempt(movedId, 'ec2', 100)
    d.cloud.interrupt(d.machineOf(movedId), { noticeMs: 20_000 })
    await onAttempt(movedId, 'modal', 150)
    d.cloud.addFault({ fault: 'no-capacity', where: { service: 'modal' } })
    ;[moved, calm] = await Promise.all([d.ended(movedId), d.ended(calmId)])
    expect([moved.state, calm.state]).toEqual(['succeeded', 'succeeded'])
    const worked = moved.attempts.filter(({ progress }) => progress !== null)
    expect(worked.map(({ backend, capacityType }) => [backend, capacityType])).toEqual([
      ['ec2', 'spot'],
      ['modal', 'on-demand'],
      ['lambda', 'on-demand'],
    ])
    const [onSpot, onModal, onLambda] = worked
    expect(onSpot).toMatchObject({ state: 'interrupted' })
    // Planned by the job itself: nothing is lost, and no interruption is counted.
    expect(onModal).toMatchObject({ state: 'stopped', stepsLost: 0 })
    expect(onModal!.restoredFrom).toEqual(onSpot!.checkpoint)
    expect(onLambda!.restoredFrom).toEqual(onModal!.checkpoint)
    expect(calm.attempts).toHaveLength(1)
    expect(await weightsOf(movedId)).toEqual(await weightsOf(calmId))
    expect(
      d.cloud.instances().filter(({ bill }) => bill.fromMs !== undefined && bill.untilMs === undefined),
    ).toEqual([])
  })

  it('leaves no secret, key or grant anywhere', async () => {
    const places = await placesOf([moved.id, calm.id])
    for (const [name, secret] of Object.entries(await secretsOf([moved, calm])))
      expect({ name, found: findCanary(secret, places) }).toEqual({ name, found: [] })
  })
})
