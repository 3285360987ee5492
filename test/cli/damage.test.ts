import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { Context } from '../../client/context'
import type { JobView } from '../../client/job/job-view'
import { checkpointId } from '../../core/job/checkpoint'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { layout, manifestName } from '../../storage/layout'
import { StoreError, type ObjectStore } from '../../storage/store'
import { noteSubmission } from '../../storage/submissions'
import { ClientWorld, JOB, machineOf, NOW, SPEC, statusOf } from '../client/world'
import { manifestOf } from '../support/manifests'
import { STORE_OWNER } from '../support/marked-store'
import { chosen } from '../support/selection'
import { DAMAGES, RAW } from './damages'
import { World } from './outside'

/**
 * Every kind of document of a job, with every kind of damage, as each command shows it: the damage is reported for its own job, nothing is
 * invented in its place, and what ends spending works.
 */

const OTHER = 'job-other'
const KINDS: Record<string, string> = {
  submission: layout.record(JOB, 0),
  plan: layout.record(JOB, 1),
  launch: layout.record(JOB, 2),
  'last entry': layout.record(JOB, 3),
  machine: layout.machine(JOB, 1),
  beat: layout.beat(JOB, 1),
  lease: layout.lease(JOB, 1),
  result: layout.result(JOB, 1),
  billing: layout.billing(JOB, 1),
  restores: layout.restores(JOB, 1),
  drain: layout.drain(JOB, 1),
  limits: layout.limits(JOB, 1, 1),
  diagnosis: layout.diagnosis(JOB, 1),
  outputs: layout.outputs(JOB, 1),
  order: layout.order(JOB, 1),
  claim: layout.claim(JOB, 1),
  manifest: `${layout.checkpoint(JOB, 10, 1)}${manifestName()}`,
  'log chunk': `${layout.logs(JOB, 1)}${'1'.padStart(12, '0')}-${'2'.padStart(12, '0')}.ndjson`,
}

const READING = ['show', 'events', 'logs', 'artifacts', 'checkpoints', 'why'] as const

let world: ClientWorld
let cli: World
let cancelled: string[]
let told: string[]

beforeEach(async () => {
  world = await ClientWorld.make()
  cli = new World()
  cli.environment['CRUCIBLE_STORE'] = world.context.config.home.storeUrl
  cancelled = []
  told = []
})
afterEach(async () => {
  jest.restoreAllMocks()
  cli.remove()
  await chmodAll()
  await world.remove()
})

const chmodAll = (): Promise<void[]> =>
  Promise.all(
    Object.values(KINDS).map((key) => chmod(join(world.folder, 'store', key), 0o700).catch(() => {})),
  )

/** A job of a dollar that runs or has ended, and another job. */
async function prepare(isRunning: boolean): Promise<void> {
  await world.submitted({ submittedAtMs: NOW - HOUR_MS, deployment: STORE_OWNER })
  await noteSubmission(world.store, { jobId: JOB, submittedAtMs: NOW - HOUR_MS })
  await world.planned(1)
  await world.record('launched', {}, 1)
  const { store } = world
  const machine = { ...machineOf(1), launchedAtMs: NOW - 10 * MINUTE_MS }
  await store.put(layout.machine(JOB, 1), JSON.stringify(machine))
  await world.beat(1)
  await world.chunk(1, [1, 2])
  const put = (key: string, value: unknown): Promise<void> => store.put(key, JSON.stringify(value))
  await put(layout.lease(JOB, 1), { seq: 1, renewedAtMs: NOW, ttlMs: 120_000 })
  await put(layout.billing(JOB, 1), { fromAtMs: NOW - 10 * MINUTE_MS })
  await put(layout.restores(JOB, 1), { version: 1, restores: [] })
  await put(layout.drain(JOB, 1), { reason: 'cancelled', windowMs: 1_000, requestedAtMs: NOW })
  await put(layout.limits(JOB, 1, 1), { seq: 1, deadlineAtMs: null, budget: null })
  await put(layout.diagnosis(JOB, 1), { atMs: NOW, machine: 'gone', text: 'words' })
  await put(layout.outputs(JOB, 1), { version: 1, files: [], folders: [], links: [] })
  await put(layout.result(JOB, 1), {})
  await put(layout.order(JOB, 1), { jobId: JOB, attempt: 1, leaseMs: 3_600_000 })
  await put(layout.claim(JOB, 1), { machine: 'machine-1' })
  for (const step of [10, 20]) await checkpointAt(store, step)
  await store.put(`${layout.artifactsOf(JOB, 1)}model.bin`, 'weights')
  if (isRunning) await rm(join(world.folder, 'store', layout.result(JOB, 1)))
  else
    await world.finished(
      statusOf({
        state: 'succeeded',
        reason: 'completed',
        spentMicroUsd: 1_000_000,
        attempts: [
          { ...statusOf().attempts[0]!, state: 'succeeded', costMicroUsd: 1_000_000, endedAtMs: NOW },
        ],
      }),
    )
  const input = {
    jobId: OTHER,
    spec: SPEC,
    bundle: null,
    owner: 'ada',
    deployment: STORE_OWNER,
    submittedAtMs: NOW,
  }
  await put(layout.record(OTHER, 0), {
    seq: 0,
    atMs: NOW,
    kind: 'submitted',
    summary: 'Submitted',
    data: input,
  })
  await noteSubmission(store, { jobId: OTHER, submittedAtMs: NOW })
  jest.spyOn(Context.prototype, 'temporal').mockResolvedValue(serverOf(isRunning))
}

async function checkpointAt(store: ObjectStore, step: number): Promise<void> {
  const manifest = manifestOf({ jobId: JOB, step, createdAtMs: NOW })
  await store.put(`${layout.checkpoint(JOB, step, 1)}${manifestName()}`, JSON.stringify(manifest))
}

function serverOf(isRunning: boolean, of?: readonly string[]): Client {
  const workflow = (id: string, isOpen: boolean, state: string, reason: string) => ({
    workflowId: `job/${id}`,
    startTime: new Date(NOW - HOUR_MS),
    closeTime: isOpen ? undefined : new Date(NOW),
    status: { name: isOpen ? 'RUNNING' : 'COMPLETED' },
    raw: {},
    typedSearchAttributes: {
      get: ({ name }: { name: string }) =>
        ({ CrucibleName: 'train', CrucibleOwner: 'ada', CrucibleState: state, CrucibleReason: reason })[name],
    },
  })
  const known = [
    isRunning ? workflow(JOB, true, 'running', 'under-way') : workflow(JOB, false, 'succeeded', 'completed'),
    workflow(OTHER, true, 'pending', 'planning'),
  ].filter(({ workflowId }) => of?.includes(workflowId) !== false)
  return {
    withDeadline: (_untilMs: number, call: () => unknown) => call(),
    workflow: {
      async *list({ query }: { query: string }) {
        if (query.includes("WorkflowType = 'job'") && !query.includes('Running')) yield* known
      },
      getHandle: (workflowId: string) => ({
        describe: async () => {
          const one = known.find((each) => each.workflowId === workflowId)
          if (one === undefined) throw new WorkflowNotFoundError('none', workflowId, undefined)
          return one
        },
        query: () => Promise.reject(new Error('no worker')),
        cancel: async () => void cancelled.push(workflowId),
        signal: async (name: string) => {
          if (known.every((each) => each.workflowId !== workflowId))
            throw new WorkflowNotFoundError('none', workflowId, undefined)
          told.push(name)
        },
        executeUpdate: async (name: string) => {
          told.push(name)
          return { message: 'Done.' }
        },
      }),
    },
  } as unknown as Client
}

interface Row {
  id: string
  state: string | null
  cost: { spentMicroUsd: number | null }
}

async function rows(): Promise<{ jobs: Row[]; incomplete: string | null }> {
  return JSON.parse((await cli.run('list', '--json')).stdout) as { jobs: Row[]; incomplete: string | null }
}

const CASES = [true, false].flatMap((isRunning) =>
  Object.keys(KINDS).flatMap((kind) =>
    Object.keys(DAMAGES).map((damage) => ({ job: isRunning ? 'running' : 'ended', isRunning, kind, damage })),
  ),
)
/** A selection with every kind and every damage of each job, and with a record that has lost its plan. */
const FEW = CASES.filter(
  ({ kind, damage }, index) => index % 7 === 0 || (kind === 'plan' && damage === 'missing'),
)

describe.each(chosen(CASES, FEW))(
  'the $kind of a job that is $job, $damage,',
  ({ isRunning, kind, damage }) => {
    it('is reported for its own job, and stops no command', async () => {
      await prepare(isRunning)
      const [before] = [await rows()]
      const path = join(world.folder, 'store', KINDS[kind]!)
      const body = await world.store.get(KINDS[kind]!)
      // A job that runs has no result yet.
      if (body === undefined) await mkdir(dirname(path), { recursive: true })
      if (body === undefined) await writeFile(path, '{}')
      await DAMAGES[damage]!(path, body ?? Buffer.from('{}'), JOB)

      const after = await rows()
      const rowOf = (list: { jobs: Row[] }, id: string): Row | undefined =>
        list.jobs.find((job) => job.id === id)
      expect(rowOf(after, OTHER)).toEqual(rowOf(before, OTHER))
      const row = rowOf(after, JOB)
      const known = rowOf(before, JOB)!
      expect([known.state, 'running', 'provisioning', null]).toContain(row?.state ?? null)
      if (row?.state !== 'running' && row?.state !== 'provisioning')
        expect([known.state, null]).toContain(row?.state ?? null)
      if (row !== undefined)
        expect([known.cost.spentMicroUsd, null, ...plausible(damage, isRunning)]).toContain(
          row.cost.spentMicroUsd,
        )

      for (const command of READING) {
        for (const flags of [[], ['--json']]) {
          const { stdout, stderr, exitCode } = await cli.run(command, JOB, ...flags)
          expect({ command, said: `${stdout}${stderr}` }).not.toMatchObject({
            said: expect.stringMatching(RAW),
          })
          if (command === 'show') expect(stdout).not.toMatch(/failed \(unclassified\)/)
          const isShown = command === 'logs' || command === 'artifacts' || command === 'checkpoints'
          if (isShown) expect([`${command} 0`, `${command} 7`]).toContain(`${command} ${exitCode}`)
          if (command === 'artifacts') expect(stdout).toContain('model.bin')
          if (command === 'checkpoints') expect(stdout).toContain(checkpointId(20, 1))
        }
      }
      const cancel = await cli.run('cancel', JOB)
      expect(cancel.exitCode).toBe(isRunning ? 0 : 1)
      expect(cancelled).toEqual(isRunning ? [`job/${JOB}`] : [])
    })
  },
)

/** What the rest proves if a document is missing without a trace. */
function plausible(damage: string, isRunning: boolean): number[] {
  return damage === 'missing' || damage === 'a folder' ? (isRunning ? [0, 600_000] : [0]) : []
}

describe('a job that Temporal no longer knows', () => {
  it('is not called over by a retry, which names its machine', async () => {
    await prepare(true)
    jest.spyOn(Context.prototype, 'temporal').mockResolvedValue(serverOf(true, []))
    const { stderr, exitCode } = await cli.run('retry', JOB)
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 5,
      stderr: expect.stringMatching(/does not know job-0123456789.* machine local\/machine-1 may still run/s),
    })
  })
})

describe('a store that refuses everything', () => {
  const OUTCOMES: [command: string[], told: string[], cancelled: boolean][] = [
    [['cancel'], [], true],
    [['cancel', '--now'], ['cancelNow'], true],
    [['retry'], ['retry'], false],
  ]
  it.each(OUTCOMES)('keeps no job from being ended or retried: %j', async (command, says, isCancelled) => {
    await prepare(true)
    const refused = Object.assign(new Error('EACCES'), {
      errorCode: 'store',
      code: 'EACCES',
      isTransient: false,
    })
    jest.spyOn(Context.prototype, 'store', 'get').mockImplementation(() => {
      throw refused
    })
    expect(await cli.run(...command, JOB)).toMatchObject({ exitCode: 0 })
    expect({ cancelled, told }).toEqual({ cancelled: isCancelled ? [`job/${JOB}`] : [], told: says })
  })

  it('leaves a job its state in Temporal, and says what is unknown', async () => {
    await prepare(true)
    const refused = new StoreError('Could not read the store (EACCES).', {
      code: 'EACCES',
      isTransient: false,
    })
    jest.spyOn(Context.prototype, 'store', 'get').mockImplementation(() => {
      throw refused
    })
    const { stdout, stderr, exitCode } = await cli.run('show', JOB)
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 7,
      stderr: expect.stringMatching(
        /Temporal alone answers: cost, progress and checkpoints are unknown.*EACCES/s,
      ),
    })
    expect(stdout).toMatch(/train {2}job-0123456789 {2}running/)
    const json = JSON.parse((await cli.run('show', JOB, '--json')).stdout) as JobView
    expect(json).toMatchObject({ state: 'running', incomplete: expect.stringContaining('EACCES') })
    expect(json.cost).toMatchObject({ spentMicroUsd: null, estimatedRemainingMicroUsd: null })
    expect(await cli.run('show', 'job-unknown')).toMatchObject({ exitCode: 4 })
  })
})
