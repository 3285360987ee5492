import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ServiceError } from '@temporalio/client'
import { Context } from '../../client/context'
import { Crucible } from '../../client/crucible'
import { EXIT_CODES } from '../../client/errors'
import type { JobState } from '../../core/job/job'
import { formatUsd } from '../../core/money/money'
import { MINUTE_MS } from '../../core/time/time'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { putReservationEntry } from '../../storage/reservations'
import { putRevision, type ScheduleRevision } from '../../storage/schedules'
import { noteSubmission } from '../../storage/submissions'
import { putWaiter } from '../../storage/waiting-line'
import { ClientWorld, JOB, machineOf, NOW, statusOf } from '../client/world'
import { SPEC_BY_HAND } from '../workflows/retraining'
import { Cli, type Outside } from '../../cli/cli'
import { exitCodeOf, follow } from '../../cli/job/follow'
import { runCli } from '../../cli/run'
import { chosen } from '../support/selection'
import { until } from '../support/until'
import {
  DEPLOYMENT,
  LAUNCHED,
  serverOf,
  SETTLED,
  SEVENTH,
  SO_FAR,
  storeAway,
  SUBMITTED,
  type Held,
} from './outages'
import { World } from './outside'

/**
 * What is away, what state a job is in, and what each command and each view may say of it: the truth, or that it is unknown.
 */

let world: ClientWorld
let cli: World

interface Truth {
  state: JobState
  reasons: string[]
  /** What it has cost; null if nothing can tell. */
  cost: number | null
}

interface Case {
  name: string
  prepare: () => Promise<void>
  held?: Held
  /** Whether the job's machine ends only when a person ends it. `list` names such jobs. */
  isLost?: boolean
  truth: Truth
}

const launch = async (): Promise<void> => {
  await world.planned(1)
  await world.record('launched', {}, 1)
  const machine = { ...machineOf(1), launchedAtMs: LAUNCHED }
  await world.store.put(layout.machine(JOB, 1), JSON.stringify(machine))
}

const finish = async (state: 'succeeded' | 'failed' | 'cancelled', reason: string): Promise<void> => {
  await launch()
  const [attempt] = statusOf().attempts
  await world.finished(
    statusOf({
      state,
      reason: reason as never,
      message: 'The end.',
      submittedAtMs: SUBMITTED,
      spentMicroUsd: SETTLED,
      attempts: [{ ...attempt!, state: 'stopped', costMicroUsd: SETTLED, endedAtMs: NOW - MINUTE_MS }],
    }),
  )
}

const result = (outcome: 'succeeded' | 'failed' | 'stopped', reason: string): Promise<void> =>
  world.store.put(
    layout.result(JOB, 1),
    JSON.stringify({
      version: 1,
      attemptId: `${JOB}-1`,
      outcome,
      reason,
      message: 'The runner says so.',
      exitCode: outcome === 'succeeded' ? 0 : 1,
      signal: null,
      progress: null,
      checkpoint: null,
      restoredFrom: null,
      artifacts: [],
      phases: [],
      logLines: 0,
      finishedAtMs: NOW - 2 * MINUTE_MS,
    }),
  )

const CASES: Case[] = [
  {
    name: 'waits for a machine',
    prepare: async () => {
      await world.record('waiting', { outcome: { kind: 'wait', reason: SEVENTH } }, 1)
      await putWaiter(world.store, { wish: 'cpu', backends: ['local'], jobId: JOB, sinceMs: SUBMITTED })
    },
    held: { status: 'RUNNING', state: 'pending', reason: 'waiting-for-capacity' },
    truth: { state: 'pending', reasons: ['waiting-for-capacity'], cost: 0 },
  },
  {
    name: 'starts its machine',
    prepare: async () => {
      await launch()
    },
    held: { status: 'RUNNING', state: 'running', reason: 'under-way', attempt: 'provisioning' },
    truth: { state: 'provisioning', reasons: ['launching', 'starting'], cost: SO_FAR },
  },
  {
    name: 'runs',
    prepare: async () => {
      await launch()
      await world.beat(1)
    },
    held: { status: 'RUNNING', state: 'running', reason: 'under-way', attempt: 'running' },
    truth: { state: 'running', reasons: ['training'], cost: SO_FAR },
  },
  {
    name: 'succeeded',
    prepare: () => finish('succeeded', 'completed'),
    held: { status: 'COMPLETED', state: 'succeeded', reason: 'completed' },
    truth: { state: 'succeeded', reasons: ['completed'], cost: SETTLED },
  },
  {
    name: 'failed',
    prepare: () => finish('failed', 'workload-failed'),
    held: { status: 'FAILED', state: 'failed', reason: 'workload-failed' },
    truth: { state: 'failed', reasons: ['workload-failed'], cost: SETTLED },
  },
  {
    name: 'was cancelled',
    prepare: () => finish('cancelled', 'cancelled'),
    held: { status: 'CANCELLED', state: 'cancelled', reason: 'cancelled' },
    truth: { state: 'cancelled', reasons: ['cancelled'], cost: SETTLED },
  },
  {
    name: 'was terminated by hand',
    prepare: launch,
    held: { status: 'TERMINATED', state: 'running', reason: 'under-way' },
    truth: { state: 'failed', reasons: ['unclassified'], cost: null },
  },
  {
    name: 'was terminated by hand after its program had finished',
    prepare: async () => {
      await launch()
      await world.beat(1)
      await result('succeeded', 'completed')
    },
    held: { status: 'TERMINATED', state: 'running', reason: 'under-way' },
    truth: { state: 'succeeded', reasons: ['completed'], cost: null },
  },
  {
    name: 'is forgotten by the server, and its program had finished',
    prepare: async () => {
      await launch()
      await result('succeeded', 'completed')
    },
    truth: { state: 'succeeded', reasons: ['completed'], cost: null },
  },
  {
    name: 'is forgotten by the server, and its program had failed',
    prepare: async () => {
      await launch()
      await result('failed', 'workload')
    },
    truth: { state: 'failed', reasons: ['workload-failed'], cost: null },
  },
  {
    name: 'is forgotten by the server, and its lease had lapsed',
    prepare: async () => {
      await launch()
      await result('stopped', 'lease')
    },
    truth: { state: 'failed', reasons: ['lease-lapsed'], cost: null },
  },
  {
    name: 'is forgotten by the server, and its machine may still run',
    isLost: true,
    prepare: async () => {
      await launch()
      await world.beat(1)
    },
    truth: { state: 'running', reasons: ['training'], cost: SO_FAR },
  },
  {
    name: 'is forgotten by the server, and had ended long before',
    prepare: () => finish('succeeded', 'completed'),
    truth: { state: 'succeeded', reasons: ['completed'], cost: SETTLED },
  },
]

type Outage = 'nothing' | 'the store' | 'the disk of the store' | 'Temporal' | 'the worker'
const OUTAGES: Outage[] = ['nothing', 'the store', 'the disk of the store', 'Temporal', 'the worker']
const isOfStore = (outage: Outage): boolean => outage === 'the store' || outage === 'the disk of the store'

beforeEach(async () => {
  world = await ClientWorld.make()
  cli = new World()
  cli.environment['CRUCIBLE_STORE'] = world.context.config.home.storeUrl
  await putDocument(world.store, layout.deployment(), { id: DEPLOYMENT })
  await world.submitted({ submittedAtMs: SUBMITTED, deployment: DEPLOYMENT })
  await noteSubmission(world.store, { jobId: JOB, submittedAtMs: SUBMITTED })
})
afterEach(async () => {
  jest.restoreAllMocks()
  cli.remove()
  await world.remove()
})

/** Plays the outage for every context of this process. */
function play(outage: Outage, held: Held | undefined): void {
  const client = serverOf(held, outage !== 'the worker')
  const none = new ServiceError('no server', { cause: Object.assign(new Error('away'), { code: 14 }) })
  jest
    .spyOn(Context.prototype, 'temporal')
    .mockImplementation(() => (outage === 'Temporal' ? Promise.reject(none) : Promise.resolve(client)))
  if (outage === 'the store')
    jest.spyOn(Context.prototype, 'store', 'get').mockReturnValue(storeAway(world.store.url))
  // An empty mount point is left.
  if (outage === 'the disk of the store') {
    renameSync(join(world.folder, 'store'), join(world.folder, 'unmounted'))
    mkdirSync(join(world.folder, 'store'))
  }
}

type Document = Record<string, unknown> & {
  id?: string
  state?: string | null
  reason?: string | null
  isLive?: boolean
  cost?: { spentMicroUsd: number | null }
  attempts?: { costMicroUsd: number | null }[]
}

/** Says nothing but the truth, or that it does not know. */
function judge(job: Document, { state, reasons, cost }: Truth): void {
  // The last recorded state is named as such.
  if (job.isLive !== false) expect([state, null]).toContain(job.state)
  if (job.isLive !== false) expect([...reasons, null]).toContain(job.reason)
  const costs = [job.cost!.spentMicroUsd, ...(job.attempts ?? []).map(({ costMicroUsd }) => costMicroUsd)]
  if (job.isLive !== false || cost !== null) for (const each of costs) expect([cost, null]).toContain(each)
}

const STATES = 'pending|provisioning|running|recovering|stopping|succeeded|failed|cancelled|unknown'

/** The states in the rows of a table, or at the head of a view. */
const statesIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.includes(JOB))
    .flatMap((line) => [...line.matchAll(new RegExp(`  (${STATES})\\b`, 'g'))].map(([, word]) => word!))

describe.each(CASES)('a job that $name', ({ prepare, held, truth, isLost = false }) => {
  it.each(OUTAGES)('is shown as it is, or as unknown, with %s away', async (outage) => {
    await prepare()
    play(outage, held)
    const isAway = outage !== 'nothing' && outage !== 'the worker'
    for (const filter of [[], ['--state', truth.state]]) {
      const list = await cli.run('list', '--json', ...filter)
      if (outage === 'Temporal') {
        expect(list.exitCode).toBe(EXIT_CODES.unavailable)
        continue
      }
      const { jobs, incomplete } = JSON.parse(list.stdout) as { jobs: Document[]; incomplete: string | null }
      const isIncomplete = isAway || isLost
      expect(list.exitCode).toBe(isIncomplete ? EXIT_CODES.unavailable : 0)
      expect(incomplete !== null).toBe(isIncomplete)
      // A job that only the store knows is missing without the store, and so is the state of one that was ended by hand.
      const isOnlyInStore = held === undefined || (filter.length > 0 && held.status === 'TERMINATED')
      expect(jobs).toHaveLength(isAway && isOnlyInStore ? 0 : 1)
      for (const job of jobs) judge(job, truth)
      // Without an outage, what can be known is known.
      if (!isAway) expect(jobs[0]).toMatchObject({ state: truth.state, cost: { spentMicroUsd: truth.cost } })
      const text = await cli.run('list', ...filter)
      expect(text.exitCode).toBe(list.exitCode)
      for (const state of statesIn(text.stdout)) expect([truth.state, 'unknown']).toContain(state)
      if (isAway) expect(text.stdout).not.toMatch(/\$\d|No jobs? /)
    }
    await checkShow(outage, truth)
    await checkOthers(outage, truth)
    const api = new Crucible(world.context.config, () => NOW)
    const listed = await api.list().catch(() => [])
    for (const job of listed) judge(job as unknown as Document, truth)
    const got = await api.get(JOB).catch(() => undefined)
    if (got !== undefined) judge(got as unknown as Document, truth)
    await api.close()
  })
})

async function checkShow(outage: Outage, truth: Truth): Promise<void> {
  const [document, text] = [await cli.run('show', JOB, '--json'), await cli.run('show', JOB)]
  if (isOfStore(outage)) {
    expect([document.exitCode, text.exitCode]).toEqual([EXIT_CODES.unavailable, EXIT_CODES.unavailable])
    return
  }
  const view = JSON.parse(document.stdout) as Document
  const exitCode = view.isLive === false ? EXIT_CODES.unavailable : 0
  expect([document.exitCode, text.exitCode]).toEqual([exitCode, exitCode])
  judge(view, truth)
  if (outage === 'nothing') expect(view).toMatchObject({ state: truth.state })
  if (view.isLive === false) expect(text.stdout).toMatch(/showing the last recorded state/)
  else expect(statesIn(text.stdout)).toEqual([truth.state])
  const amounts = [...text.stdout.matchAll(/cost +(\S+)/g)].map(([, amount]) => amount)
  const known = truth.cost === null ? [] : [formatUsd(truth.cost)]
  if (view.isLive !== false)
    for (const amount of amounts) expect([...known, 'unknown', '-']).toContain(amount)
}

/** Commands that read the store alone say nothing without it; none invents an end, and a place in line is the present one. */
async function checkOthers(outage: Outage, truth: Truth): Promise<void> {
  for (const command of ['events', 'logs', 'checkpoints', 'artifacts', 'why']) {
    for (const flags of [[], ['--json']]) {
      const { exitCode, stdout, stderr } = await cli.run(command, JOB, ...flags)
      if (isOfStore(outage)) {
        expect({ command, exitCode }).toEqual({ command, exitCode: EXIT_CODES.unavailable })
        continue
      }
      const said = `${stdout}${stderr}`
      expect(said).not.toMatch(/ENOENT|EACCES|undefined|NaN/)
      if (command === 'logs' && flags.length === 0 && truth.state === 'pending') expect(said).toContain('1st')
      const wrong = ['succeeded', 'cancelled', 'failed'].filter((state) => state !== truth.state)
      if (command === 'logs') expect(said).not.toMatch(new RegExp(`No lines: (?:${wrong.join('|')})`))
    }
  }
}

describe('the money and capacity of a deployment', () => {
  it.each(OUTAGES)('is shown as it is, or not at all, with %s away', async (outage) => {
    const wish = { backend: 'ec2', kind: 'hourly', types: ['g5.xlarge'], count: 1 }
    const requested = { reservationId: 'res-a', owner: 'ada', wish, rule: {}, submittedAtMs: SUBMITTED }
    const entry = { seq: 0, atMs: SUBMITTED, kind: 'requested' as const, summary: '', data: requested }
    await putReservationEntry(world.store, 'res-a', entry)
    const input = { schedule: 'ranker', spec: SPEC_BY_HAND, owner: 'ada', secrets: [] }
    const revision = { revision: 1, atMs: SUBMITTED, by: 'ada', kind: 'created', input }
    await putRevision(world.store, revision as unknown as ScheduleRevision)
    play(outage, undefined)
    const isAway = isOfStore(outage) || outage === 'Temporal'

    const budget = await cli.run('budget', '--json', '--month', '2026-11')
    if (outage === 'nothing')
      expect(JSON.parse(budget.stdout)).toMatchObject({ total: { spentMicroUsd: 77 } })
    else expect(budget.exitCode).toBe(EXIT_CODES.unavailable)

    const reservations = await cli.run('reservations', 'list', '--json')
    expect(reservations.exitCode).toBe(EXIT_CODES.unavailable)
    const calendar = await cli.run('reservations', 'calendar')
    expect(calendar.exitCode).toBe(EXIT_CODES.unavailable)
    if (!isAway)
      expect(JSON.parse(reservations.stdout)).toMatchObject({
        reservations: [{ id: 'res-a', state: null, spentMicroUsd: null, trouble: expect.any(String) }],
      })

    const costs = await cli.run('costs')
    expect(costs.exitCode).toBe(isOfStore(outage) ? EXIT_CODES.unavailable : 0)

    const list = await cli.run('schedule', 'list', '--json')
    const show = await cli.run('schedule', 'show', 'ranker', '--json')
    if (isOfStore(outage)) {
      expect(list.exitCode).toBe(EXIT_CODES.unavailable)
      expect(show.exitCode).not.toBe(0)
      return
    }
    const isUnknown = outage === 'Temporal'
    const exitCode = isUnknown ? EXIT_CODES.unavailable : 0
    expect([list.exitCode, show.exitCode]).toEqual([exitCode, exitCode])
    expect(JSON.parse(list.stdout)).toMatchObject({
      schedules: [{ name: 'ranker', state: isUnknown ? 'unknown' : 'active' }],
    })
    expect(JSON.parse(show.stdout)).toMatchObject({
      waiting: isUnknown ? null : 0,
      silentRuns: isUnknown ? null : 0,
      nextStartsAtMs: isUnknown ? null : [],
    })
    const text = (await cli.run('schedule', 'show', 'ranker')).stdout
    expect(text.includes('No run is active.')).toBe(!isUnknown)
  })
})

describe('a deployment in which nothing was reserved', () => {
  it.each(OUTAGES)('says so, or that it is unknown, with %s away', async (outage) => {
    play(outage, undefined)
    const { stdout, stderr, exitCode } = await cli.run('reservations', 'list')
    // The worker of a backend that a deployment does not have never answers.
    if (outage === 'nothing' || outage === 'the worker') {
      expect({ stdout, exitCode }).toEqual({
        exitCode: 0,
        stdout: expect.stringMatching(/^Nothing was reserved with Crucible/),
      })
      expect(stderr).toMatch(/^Not seen: reservations of ec2 that were bought elsewhere: No worker of ec2/)
    } else expect({ exitCode, stdout }).toEqual({ exitCode: EXIT_CODES.unavailable, stdout: '' })
  })
})

const FOLLOWERS: [string, (outside: Outside) => Promise<number>][] = [
  ['show --watch', (outside) => runCli(['show', JOB, '--watch'], outside)],
  ['logs --follow', (outside) => runCli(['logs', JOB, '--follow'], outside)],
  [
    'submit --follow',
    async (outside) => {
      const followed = new Cli(outside, false)
      const view = await follow(followed, JOB)
      await followed.close()
      return exitCodeOf(view!)
    },
  ],
]
const THROUGH = FOLLOWERS.flatMap(([name, run]) => OUTAGES.slice(1).map((outage) => ({ name, run, outage })))
/** Each command, and each outage. */
const SOME = THROUGH.filter((_, index) => index % 5 === 0 || index === 2)

describe.each(chosen(THROUGH, SOME))('$name of a job', ({ name, run, outage }) => {
  it(`says what it does not know with ${outage} away, continues afterwards, and ends as the job does`, async () => {
    const running = CASES.find((one) => one.name === 'runs')!
    await running.prepare()
    await world.chunk(1, [1])
    play('nothing', running.held)
    const { outside, stdout, stderr } = cli.outside()
    const said = (): string => `${stdout.text}${stderr.text}`
    const ended = run(outside)
    await until(() =>
      name === 'logs --follow' ? /1\.1/.test(said()) : said().includes('running (training)'),
    )
    play(outage, running.held)
    const isLog = name === 'logs --follow'
    // The log is in the store alone.
    const isTold = isOfStore(outage) || !isLog
    const mark = isOfStore(outage) ? 'the store does not answer' : 'The workflow is not responding.'
    if (isTold)
      await until(() => {
        cli.nowMs += 1_000
        return said().includes(mark)
      })
    expect(said()).not.toMatch(/succeeded|failed|cancelled|provisioning/)
    jest.restoreAllMocks()
    if (outage === 'the disk of the store') {
      rmSync(join(world.folder, 'store'), { recursive: true })
      renameSync(join(world.folder, 'unmounted'), join(world.folder, 'store'))
    }
    const over = CASES.find((one) => one.name === 'failed')!
    await over.prepare()
    play('nothing', over.held)
    expect(await ended).toBe(name === 'submit --follow' ? EXIT_CODES.failed : 0)
    if (!isLog) expect(said()).toMatch(/failed/)
    if (isOfStore(outage)) expect(said().split('The store answers again.')).toHaveLength(2)
  })
})
