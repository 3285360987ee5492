/** The table of signed inputs in docs/guides/security.md, and each way to use one of them a second time. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { onlyFor } from '../../activities/only-for'
import { createPlanningActivities, type PlanningDeps } from '../../activities/plan/planning'
import type { RetrainingDeps } from '../../activities/retraining/activities'
import { resolveRun } from '../../activities/retraining/resolve'
import { Received } from '../../core/received'
import {
  activityProblem,
  refusalOfArguments,
  signalProblem,
  startProblem,
  updateProblem,
  type Stamp,
} from '../../core/stamps'
import { HOUR_MS } from '../../core/time/time'
import { sealGrant, openGrant } from '../../storage/grants'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { PayloadSeal } from '../../storage/payload-seal'
import { putReservationEntry } from '../../storage/reservations'
import { putPermit } from '../../storage/schedule-permits'
import { putRevision, type ScheduleRevision } from '../../storage/schedules'
import { attemptKey } from '../../storage/secrets'
import { Sends } from '../../storage/sends'
import { Desk } from '../activities/reserving/desk'
import { INTENT, START_MS } from '../activities/reserving/place'
import { MemoryStore } from '../backends/scripted/memory-store'
import { SPEC } from '../support/spec'
import { DEPLOYMENT_ID, TEST_KEY } from '../workflows/harness'
import { inputOf, SCHEDULE } from '../workflows/retraining'

const PAGE = readFileSync(join(__dirname, '..', '..', 'docs', 'guides', 'security.md'), 'utf8')

interface Row {
  kind: string
  until: string
  howOften: string
}

const ROWS: readonly Row[] = PAGE.split('<!-- permissions -->')[1]!
  .split('<!-- /permissions -->')[0]!
  .split('\n')
  .filter((line) => /^\| (?!SIGNED)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, kind, , until, howOften]) => ({ kind: kind!, until: until!, howOften: howOften! }))

const WAYS = ['same id', 'other id', 'other type', 'later', 'after its end', 'other deployment'] as const

/** Ways to use a signed input again; each answers whether it has an effect. */
type Plays = Partial<Record<(typeof WAYS)[number], () => Promise<boolean>>>

const NOW_MS = Date.UTC(2027, 0, 4)
const OTHER_KEY = Buffer.alloc(32, 'a key of others')
const LATER_MS = NOW_MS + 2 * HOUR_MS

/** Whether a copy of a signed message is read as signed, under another id or with another key. */
async function isSigned(workflowId: string, { to = workflowId, key = TEST_KEY } = {}): Promise<boolean> {
  const seal = (by: Buffer): PayloadSeal => new PayloadSeal({ key: async () => by, onRefused: 'mark' })
  const payload = { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('{}') }
  const at = (id: string) => ({ type: 'workflow', namespace: 'default', workflowId: id }) as const
  const sealed = await seal(TEST_KEY).encode([payload], at(workflowId))
  const [read] = await seal(key).decode(sealed, at(to))
  return refusalOfArguments([JSON.parse(Buffer.from(read!.data).toString())]) === undefined
}

/** Whether a step is not refused. Fails if it fails for another reason. */
async function happens(work: Promise<unknown>): Promise<boolean> {
  try {
    await work
    return true
  } catch (error) {
    const { failure, details, code } = error as Refusal
    expect([failure?.code, details?.[0]?.code, code, (error as Error).name]).toContainEqual(
      expect.stringMatching(/^(NOT_ALLOWED|SecretsError)$/),
    )
    return false
  }
}

interface Refusal {
  failure?: { code?: string }
  details?: { code?: string }[]
  code?: string
}

/** A signed start of a workflow, whose end is in the store. */
function startOf(type: string, id: string, again: () => Promise<unknown>): Plays {
  const stamp: Stamp = { kind: 'start', name: type, atMs: NOW_MS }
  const allows = (run: object): boolean =>
    startProblem(stamp, { workflowType: type, startedAtMs: NOW_MS, ...run }) === undefined
  return {
    'same id': async () => allows({}) && happens(again()),
    'other id': () => isSigned(id, { to: `${id}-other` }),
    'other type': async () => allows({ workflowType: 'treasury' }),
    later: async () => allows({ startedAtMs: LATER_MS }),
    'after its end': () => happens(again()),
    'other deployment': () => isSigned(id, { key: OTHER_KEY }),
  }
}

/** A child that its parent has started: no other workflow can be its parent. */
function childOf(type: string, id: string, again: () => Promise<boolean>): Plays {
  const stamp: Stamp = { kind: 'child', name: type, run: 'run-1' }
  const allows = async (run: object): Promise<boolean> =>
    startProblem(stamp, { workflowType: type, startedAtMs: NOW_MS, ...run }) === undefined
  return {
    'same id': again,
    'other id': () => isSigned(id, { to: `${id}0` }),
    'other type': () => allows({ workflowType: 'treasury', parentRun: 'run-1' }),
    later: () => allows({ startedAtMs: LATER_MS }),
    'after its end': () => allows({ parentRun: 'run-2' }),
    'other deployment': () => isSigned(id, { key: OTHER_KEY }),
  }
}

/** A message to a workflow, after it was received. */
function messageOf(problemOf: (run: object, received: Received) => string | undefined): Plays {
  const received = new Received()
  received.add('m-1', NOW_MS)
  const next = new Received(received.carry(NOW_MS + HOUR_MS))
  const muchLater = new Received(received.carry(LATER_MS))
  const allows = async (run: object, by: Received): Promise<boolean> => problemOf(run, by) === undefined
  return {
    'same id': () => allows({}, next),
    'other id': () => isSigned('job/a', { to: 'job/b' }),
    'other type': () => allows({ name: 'other' }, new Received()),
    later: () => allows({ runStartedAtMs: LATER_MS }, muchLater),
    'after its end': () => allows({ runStartedAtMs: NOW_MS + HOUR_MS }, next),
    'other deployment': () => isSigned('job/a', { key: OTHER_KEY }),
  }
}

const OVER = { seq: 9, atMs: START_MS, kind: 'over', summary: '', data: {} } as const

async function jobAgain(): Promise<unknown> {
  const store = new MemoryStore(() => NOW_MS)
  await putDocument(store, layout.record('job-a', 2), { seq: 2, kind: 'finished', atMs: START_MS, data: {} })
  const planning = createPlanningActivities({ store } as unknown as PlanningDeps)
  const job = { jobId: 'job-a', spec: SPEC, bundle: null, owner: 'ada', deployment: 'dep', submittedAtMs: 1 }
  const environment = new MockActivityEnvironment()
  return environment.run(() => (planning.resolveJob as (input: object) => Promise<unknown>)(job))
}

async function reservationAgain(): Promise<unknown> {
  const desk = new Desk()
  await putReservationEntry(desk.store, INTENT, OVER)
  return desk.look({ isFirst: true })
}

/** Whether a purchase that is sent a second time buys a second time. */
async function purchaseAgain(): Promise<boolean> {
  const desk = new Desk()
  const order = desk.order()
  const [first, second] = [await desk.buy(order), await desk.buy(order)]
  return !isDeepStrictEqual(first, second) || first.kind !== 'reserved'
}

/** Whether an order goes out a second time. */
async function attemptAgain(): Promise<boolean> {
  const at = { jobId: 'job-a', attempt: 1, attemptId: 'job-a-1' }
  const sends = new Sends(new MemoryStore(() => NOW_MS), at, () => NOW_MS)
  await sends.begin()
  return (await sends.begin()) !== undefined
}

/** A run of a schedule, and copies of its input; its schedule has a date now, or its owner has asked for one run. */
function scheduleOf(kind: 'schedule' | 'trigger'): Plays {
  const calendar = { ...inputOf().spec.calendar, day: { kind: 'date', day: 4 } as const }
  const spec = kind === 'schedule' ? { calendar } : {}
  const input = { ...inputOf(spec), revision: 1 }
  const revision: ScheduleRevision = { revision: 1, atMs: 0, by: 'ada', kind: 'created', input }
  const ran = async (): Promise<{ deps: RetrainingDeps; start: typeof start }> => {
    const store = new MemoryStore(() => NOW_MS)
    await putRevision(store, revision)
    if (kind === 'trigger')
      await putPermit(store, SCHEDULE, { kind, id: 'trigger-1', atMs: NOW_MS, by: 'ada' })
    const describe = async () => ({ startTime: new Date(NOW_MS) })
    const client = { workflow: { getHandle: () => ({ describe }) }, schedule: { getHandle: () => ({}) } }
    const deps = { client, store, now: () => NOW_MS } as unknown as RetrainingDeps
    await start(deps, 'run-1')
    return { deps, start }
  }
  const start = (deps: RetrainingDeps, runId: string, more: object = {}): Promise<unknown> =>
    resolveRun(deps, { input, workflowId: `retrain/${SCHEDULE}-1`, runId, scheduledAtMs: NOW_MS, ...more })
  const again = async (more: object): Promise<boolean> => {
    const { deps } = await ran()
    return happens(start(deps, 'run-2', more))
  }
  const id = `retrain/${SCHEDULE}-2027-01-04T00:00:00Z`
  return {
    'same id': () => again({}),
    'other id': () => again({ workflowId: `retrain/${SCHEDULE}-2` }),
    'other type': async () =>
      startProblem({ kind: 'schedule', name: 'retrain' }, { workflowType: 'job', startedAtMs: NOW_MS }) ===
      undefined,
    later: () => again({ scheduledAtMs: NOW_MS - 9 * HOUR_MS }),
    'after its end': async () => {
      const { deps } = await ran()
      await putRevision(deps.store, { ...revision, revision: 2, kind: 'deleted' })
      return happens(start(deps, 'run-2'))
    },
    'other deployment': () => isSigned(id, { key: OTHER_KEY }),
  }
}

/** A month's budget: only one runs at a time, and a person who may end it may delete it too. */
function treasuryStart(): Plays {
  const plays: Partial<Plays> = startOf('treasury', 'treasury/2027-01', async () => undefined)
  delete plays['after its end']
  return {
    ...plays,
    'other type': async () =>
      startProblem(TREASURY, { workflowType: 'job', startedAtMs: NOW_MS }) === undefined,
  }
}

const TREASURY: Stamp = { kind: 'start', name: 'treasury', atMs: NOW_MS }
const GARBAGE: Stamp = { kind: 'schedule', name: 'garbageCollection' }
const COLLECTION = 'garbageCollection-2027-01-04T00:00:00Z'

/** A collection that is repeated ends only what the next one would end. */
const COLLECTIONS: Plays = {
  'same id': () => isSigned(COLLECTION),
  'other type': async () => startProblem(GARBAGE, { workflowType: 'job', startedAtMs: 0 }) === undefined,
  'other deployment': () => isSigned(COLLECTION, { key: OTHER_KEY }),
}

/** An activity of one run; its workers look whose it is. */
const ACTIVITY: Plays = {
  'same id': async () => activity({}),
  'other id': () => isSigned('job/a/1', { to: 'job/a/2' }),
  'other type': async () => activity({ name: 'settle' }),
  later: async () => activity({ run: 'run-2' }),
  'after its end': async () => activity({ run: undefined }),
  'other deployment': async () => {
    const info = { activityType: 'launch' } as never
    const args = [
      {},
      { crucibleStamp: { kind: 'activity', name: 'launch', run: 'run-1', deployment: 'dep-1' } },
    ]
    const done = onlyFor({ info }, DEPLOYMENT_ID).execute({ args }, async () => true)
    return (await done.catch(({ message }: Error) => message)) === true
  },
}

function activity(at: { name?: string; run?: string | undefined }): boolean {
  const stamp: Stamp = { kind: 'activity', name: 'launch', run: 'run-1' }
  return activityProblem(stamp, { name: 'launch', run: 'run-1', ...at }) === undefined
}

/** Credentials of one attempt, sealed with its key; the store refuses them after their end. */
const GRANT: Plays = {
  'same id': async () => opensGrantWith(attemptKey(TEST_KEY, 'job-a-1')),
  'other id': async () => opensGrantWith(attemptKey(TEST_KEY, 'job-a-2')),
  'other deployment': async () => opensGrantWith(attemptKey(OTHER_KEY, 'job-a-1')),
}

async function opensGrantWith(key: Buffer): Promise<boolean> {
  const sealed = sealGrant(attemptKey(TEST_KEY, 'job-a-1'), { endsAtMs: NOW_MS } as never)
  return happens((async () => openGrant(key, sealed))())
}

const RUN = { workflowId: 'job/a', name: 'drain', updateId: 'm-1', runStartedAtMs: NOW_MS }

const PLAYS: Readonly<Record<string, Plays>> = {
  job: startOf('job', 'job/job-a', jobAgain),
  attempt: childOf('attempt', 'job/job-a/1', attemptAgain),
  schedule: scheduleOf('schedule'),
  trigger: scheduleOf('trigger'),
  reservation: startOf('reserveCapacity', `reservation/${INTENT}`, reservationAgain),
  purchase: childOf('buyCapacity', 'buyer/scripted/a/east', purchaseAgain),
  update: messageOf((run, received) =>
    updateProblem(
      { kind: 'update', name: 'drain', updateId: 'm-1', atMs: NOW_MS },
      { ...RUN, ...run, received },
    ),
  ),
  signal: messageOf((run, received) =>
    signalProblem(
      { kind: 'signal', name: 'drain', id: 'm-1', atMs: NOW_MS },
      { ...RUN, mayBeOld: () => true, ...run, received },
    ),
  ),
  treasury: treasuryStart(),
  activity: ACTIVITY,
  grant: GRANT,
  'garbage collection': COLLECTIONS,
}

describe('the table of signed inputs', () => {
  it('has a row for each kind', () => {
    expect(ROWS.map(({ kind }) => kind)).toEqual(Object.keys(PLAYS))
    for (const row of ROWS) expect(Object.values(row)).not.toContain('')
  })

  it.each(
    ROWS.flatMap((row) =>
      WAYS.filter((way) => PLAYS[row.kind]?.[way] !== undefined).map((way) => ({ ...row, way })),
    ),
  )('tells what a copy does: $kind, $way', async ({ kind, way, howOften }) => {
    const isRepeatable = way === 'same id' && !howOften.startsWith('once')
    expect(await PLAYS[kind]![way]!()).toBe(isRepeatable)
  })
})
