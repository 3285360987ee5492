import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { Context } from '../../client/context'
import { HOUR_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { ClientWorld, JOB, NOW } from '../client/world'
import { ownedOf } from '../planner/reserving/facts'
import { STORE_OWNER } from '../support/marked-store'
import { chosen } from '../support/selection'
import { SPEC_BY_HAND } from '../workflows/retraining'
import { DAMAGES, RAW } from './damages'
import { World } from './outside'

/**
 * Documents that are not a job's, with every kind of damage, as the commands show them: the damage is reported for its own reservation,
 * schedule or job, the others are shown as before, and what ends spending works.
 */

const RESERVATION = 'res-a'
const SCHEDULE = 'ranker'
const RUN = '2026-11-01'
const HELD = 'cr-1'

interface Kind {
  key: string
  own: string
  /** Commands that read it; each must show what it showed before about the others. */
  commands: string[][]
  /** Whether a reader can notice that the document is missing. */
  isNamed?: false
}

const RESERVATIONS = [
  ['reservations', 'list'],
  ['reservations', 'show', RESERVATION],
  ['reservations', 'calendar'],
]
const SCHEDULES = [
  ['schedule', 'list'],
  ['schedule', 'show', SCHEDULE],
  ['schedule', 'history', SCHEDULE],
]
const COSTS = [['costs'], ['costs', '--by', 'owner'], ['budget']]

const costsOf = (jobId: string): unknown => ({
  version: 1,
  jobId,
  name: jobId,
  owner: `owner-of-${jobId}`,
  state: 'succeeded',
  finishedAtMs: NOW,
  costMicroUsd: 1_000_000,
  parts: [
    { backend: 'local', capacityType: 'spot', costMicroUsd: 1_000_000, machineMs: HOUR_MS, listMicroUsd: 0 },
  ],
})
const costsKey = (jobId: string): string => layout.jobCosts(costsOf(jobId) as never)

const KINDS: Record<string, Kind> = {
  'request of a reservation': {
    key: layout.reservationRecord(RESERVATION, 0),
    own: RESERVATION,
    commands: RESERVATIONS,
  },
  'last entry of a reservation': {
    key: layout.reservationRecord(RESERVATION, 1),
    own: RESERVATION,
    commands: RESERVATIONS,
  },
  'holder of a reservation': {
    key: layout.reservationHolder(RESERVATION),
    own: 'ada',
    commands: RESERVATIONS,
    isNamed: false,
  },
  'claim of a reservation': {
    key: layout.reservationClaim('ec2', HELD),
    own: RESERVATION,
    commands: RESERVATIONS,
    isNamed: false,
  },
  'mark of a purchase': {
    key: layout.purchase(RESERVATION, 1),
    own: RESERVATION,
    commands: RESERVATIONS,
    isNamed: false,
  },
  'effect of a purchase': {
    key: layout.purchaseEffect(RESERVATION, 1),
    own: HELD,
    commands: RESERVATIONS,
    isNamed: false,
  },
  'revision of a schedule': { key: layout.scheduleRevision(SCHEDULE, 2), own: SCHEDULE, commands: SCHEDULES },
  'entry of a run': { key: layout.runRecord(SCHEDULE, RUN, 1), own: 'model-of', commands: SCHEDULES },
  'pause of a schedule': {
    key: layout.schedulePause(SCHEDULE, NOW),
    own: 'ada',
    commands: SCHEDULES,
    isNamed: false,
  },
  'permit of a schedule': {
    key: layout.schedulePermit(SCHEDULE, 'trigger-1'),
    own: 'ada',
    commands: SCHEDULES,
    isNamed: false,
  },
  'model in production': {
    key: layout.model('ranker-model', 1),
    own: 'job-trained',
    commands: [['schedule', 'show', SCHEDULE]],
  },
  'costs of a job': { key: costsKey(JOB), own: JOB, commands: COSTS },
  'place in the waiting line': {
    key: `${layout.waiting()}${String(NOW).padStart(15, '0')}.${JOB}.wish.local.json`,
    own: JOB,
    commands: [['list']],
    isNamed: false,
  },
  'turn of the waiting line': {
    key: `${layout.waiting()}turn.wish.json`,
    own: JOB,
    commands: [['list']],
    isNamed: false,
  },
}

let world: ClientWorld
let cli: World
let ended: string[]

beforeEach(async () => {
  world = await ClientWorld.make()
  cli = new World()
  cli.environment['CRUCIBLE_STORE'] = world.context.config.home.storeUrl
  ended = []
  jest.spyOn(Context.prototype, 'temporal').mockResolvedValue(serverOf())
})
afterEach(async () => {
  jest.restoreAllMocks()
  cli.remove()
  await world.remove()
})

/** One damaged and one whole thing of each kind, while the reservation is open or over. */
async function prepare(isOver: boolean): Promise<void> {
  const put = (key: string, value: unknown): Promise<void> => world.store.put(key, JSON.stringify(value))
  const wish = { backend: 'ec2', kind: 'hourly', types: ['p5'], count: 4, durationMs: HOUR_MS }
  for (const id of [RESERVATION, 'res-other']) {
    const input = { reservationId: id, owner: 'ada', wish, rule: {}, submittedAtMs: NOW }
    const entry = (seq: number, kind: string, data: unknown): Promise<void> =>
      put(layout.reservationRecord(id, seq), { seq, atMs: NOW, kind, summary: `${kind} ${id}`, data })
    await entry(0, 'requested', input)
    const status = { ...input, id, message: 'Released.', alternatives: [], spentMicroUsd: 5, idleMicroUsd: 2 }
    const held = { state: 'active', reservation: ownedOf({ id: HELD }), upfrontMicroUsd: 5 }
    if (isOver) await entry(1, 'over', { ...status, state: 'released' })
    else await entry(1, 'held', { held, message: '', next: 'hold', lookInMs: 1, of: id })
  }
  await put(layout.reservationHolder(RESERVATION), { owner: 'ada', share: 'owner' })
  await put(layout.reservationClaim('ec2', HELD), { intent: RESERVATION })
  const order = { intent: RESERVATION, send: 1, backend: 'ec2', quote: {} }
  await put(layout.purchase(RESERVATION, 1), { kind: 'sent', order, atMs: NOW, ownedBefore: [] })
  await put(layout.purchaseEffect(RESERVATION, 1), { kind: 'bought', reservationId: HELD, atMs: NOW })
  for (const name of [SCHEDULE, 'other']) await schedule(name, put)
  await put(layout.model('ranker-model', 1), {
    seq: 1,
    jobId: 'job-trained',
    run: RUN,
    digest: 'abc',
    previousSeq: null,
  })
  await put(costsKey(JOB), costsOf(JOB))
  await put(costsKey('job-other'), costsOf('job-other'))
  await put(KINDS['place in the waiting line']!.key, { jobId: JOB })
  await put(KINDS['turn of the waiting line']!.key, { jobId: JOB })
}

async function schedule(name: string, put: (key: string, value: unknown) => Promise<void>): Promise<void> {
  const promotion = { model: `${name}-model` }
  const input = {
    schedule: name,
    spec: { ...SPEC_BY_HAND, name, promotion },
    bundle: null,
    secrets: [],
    owner: 'ada',
  }
  for (const revision of [1, 2])
    await put(layout.scheduleRevision(name, revision), {
      revision,
      atMs: NOW,
      by: 'ada',
      kind: revision === 1 ? 'created' : 'updated',
      input: { ...input, revision },
    })
  const entry = (seq: number, kind: string, data: unknown): Promise<void> =>
    put(layout.runRecord(name, RUN, seq), { seq, atMs: NOW, kind, summary: kind, data })
  await entry(0, 'started', { run: { id: RUN } })
  const model = { state: 'promoted', message: `model-of ${name}`, warnings: [], jobs: [], costMicroUsd: 3 }
  const run = { id: RUN, dates: { window: { start: 'a', end: 'b' } } }
  await entry(1, 'finished', { ...model, run, startedAtMs: NOW, endedAtMs: NOW, capacityMicroUsd: 0 })
  await put(layout.schedulePause(name, NOW), { kind: 'resumed', atMs: NOW, by: 'ada' })
  await put(layout.schedulePermit(name, 'trigger-1'), {
    id: 'trigger-1',
    kind: 'trigger',
    atMs: NOW,
    by: 'ada',
  })
}

function serverOf(): Client {
  const gone = (id: string): Promise<never> =>
    Promise.reject(new WorkflowNotFoundError('none', id, undefined))
  const open = { id: RESERVATION, state: 'active', wish: { kind: 'prepaid', types: ['p5'], count: 4 } }
  const isOpen = (id: string): boolean => id === `reservation/${RESERVATION}` && isReservationOpen
  return {
    withDeadline: (_untilMs: number, call: () => unknown) => call(),
    withAbortSignal: (_signal: AbortSignal, call: () => unknown) => call(),
    workflowService: { pollActivityTaskQueue: async () => ({}), describeTaskQueue: async () => ({}) },
    activity: { execute: () => Promise.reject(new Error('no worker')) },
    schedule: {
      getHandle: (id: string) => ({
        describe: async () => ({
          action: { args: [{ deployment: STORE_OWNER }] },
          state: {},
          raw: {},
          info: { nextActionTimes: [], runningActions: [] },
        }),
        pause: async () => void ended.push(`pause ${id}`),
        delete: async () => void ended.push(`delete ${id}`),
      }),
    },
    workflow: {
      async *list({ query }: { query: string }) {
        if (query.includes('STARTS_WITH') && isReservationOpen)
          yield { workflowId: `reservation/${RESERVATION}` }
      },
      getHandle: (id: string) => ({
        query: () => (isOpen(id) ? Promise.resolve(open) : gone(id)),
        describe: () => (isOpen(id) ? Promise.resolve({ status: { name: 'RUNNING' } }) : gone(id)),
        executeUpdate: async (update: string) => {
          ended.push(`${update} ${id}`)
          return { message: 'Done.' }
        },
      }),
    },
  } as unknown as Client
}
let isReservationOpen = false

const CASES = [false, true].flatMap((isOver) =>
  Object.keys(KINDS).flatMap((kind) =>
    Object.keys(DAMAGES).map((damage) => ({ job: isOver ? 'over' : 'open', isOver, kind, damage })),
  ),
)
/** A selection with every kind and every damage. */
const FEW = CASES.filter((_, index) => index % 11 === 0)

/** Lines and rows about everything but the damaged thing. */
function ofOthers(document: string): unknown {
  const answer = JSON.parse(document) as Record<string, unknown>
  const lists = ['reservations', 'schedules', 'rows', 'lines'].flatMap((name) => answer[name] ?? [])
  return lists.filter((row) => /other/.test(JSON.stringify(row)))
}

describe.each(chosen(CASES, FEW))('the $kind that is $job, $damage,', ({ isOver, kind, damage }) => {
  it('is reported for its own, and changes nothing that is shown of others', async () => {
    await prepare(isOver)
    isReservationOpen = false
    const { key, own, commands, isNamed } = KINDS[kind]!
    const before: unknown[] = []
    for (const command of commands) before.push(ofOthers((await cli.run(...command, '--json')).stdout))
    const path = join(world.folder, 'store', key)
    const body = (await world.store.get(key))!
    await mkdir(dirname(path), { recursive: true })
    await DAMAGES[damage]!(path, body, own)
    const isDamaged = isNamed !== false && !['missing', 'a folder', 'refused'].includes(damage)

    for (const [index, command] of commands.entries()) {
      for (const flags of [[], ['--json']]) {
        const { stdout, stderr, exitCode } = await cli.run(...command, ...flags)
        expect({ command, said: `${stdout}${stderr}` }).not.toMatchObject({
          said: expect.stringMatching(RAW),
        })
        expect([0, 7, ...(damage === 'missing' || damage === 'a folder' ? [5] : [])]).toContain(exitCode)
        if (flags.length === 0 || !stdout.includes('"schema"')) continue
        const answer = JSON.parse(stdout) as { incomplete?: string | null; error?: object }
        if (answer.error === undefined) expect(ofOthers(stdout)).toEqual(before[index])
      }
    }
    const told = await Promise.all(commands.map((command) => cli.run(...command, '--json')))
    if (isDamaged && damage !== 'of another owner')
      expect(told.map(({ stdout }) => stdout).join('')).toContain(key.split('/').slice(0, -1).join('/'))
  })
})

const removed = (folder: string): Promise<void> => rm(folder, { recursive: true })

describe('a command that ends spending', () => {
  beforeEach(async () => {
    await prepare(false)
    isReservationOpen = true
  })

  const STORES: Record<string, (folder: string) => Promise<void>> = {
    missing: removed,
    emptied: async (folder) => {
      await removed(folder)
      await mkdir(folder)
    },
    "another deployment's": async (folder) => {
      await removed(folder)
      await mkdir(folder)
      await writeFile(join(folder, layout.deployment()), '{"id":"dep-9999999999"}')
    },
  }

  describe.each(Object.entries(STORES))('with a store that is %s', (_, away) => {
    beforeEach(() => away(join(world.folder, 'store')))

    it.each([
      [['reservations', 'reject', RESERVATION], [`reject reservation/${RESERVATION}`]],
      [['reservations', 'release', 'res-'], [`release reservation/${RESERVATION}`]],
      // The command says that the store has no note of the pause or the deletion.
      [['schedule', 'pause', SCHEDULE], [`pause retrain/${SCHEDULE}`]],
      [['schedule', 'delete', SCHEDULE, '--yes'], [`delete retrain/${SCHEDULE}`]],
    ])('asks Temporal alone: %j', async (command, done) => {
      const { stdout, stderr } = await cli.run(...command)
      expect(ended).toEqual(done)
      expect(`${stdout}${stderr}`).not.toMatch(RAW)
    })
  })
})
