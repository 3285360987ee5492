import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Finding } from '../../cli/kit/findings'
import type { JobView } from '../../client/job/job-view'
import type { JobLogLine } from '../../client/job/logs'
import type { GarbageVerdict } from '../../core/messages'
import type { RecordEntry } from '../../core/job/record'
import type { JobExplained, WhatIfAnswer } from '../../core/job/why'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { attemptWorkflowId, GARBAGE_COLLECTION_SCHEDULE_ID, jobWorkflowId } from '../../core/queues'
import { until } from '../support/until'
import type { CommandLine } from './process'
import { hasSaved, isOver, Stage } from './stage'
import { itInAll } from '../support/selection'

/** Names a server that does not exist; without it, the one at Temporal's usual port would be asked. */
const NOWHERE = { TEMPORAL_ADDRESS: '127.0.0.1:1' }

let stage: Stage
let crucible: CommandLine

beforeAll(async () => {
  stage = await Stage.set()
  crucible = stage.crucible
}, 120_000)

afterAll(() => stage?.close(), 60_000)

/** The keys of each command's document, as docs/reference/cli.md tells them. */
function documented(): Map<string, string[]> {
  const page = readFileSync(join(__dirname, '..', '..', 'docs', 'reference', 'cli.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)]
  const keysOf = (text: string): string[] =>
    [
      ...text
        .split(/;| with `| newest|, each with/)[0]!
        .replace(/\([^)]*\)/g, '')
        .matchAll(/`(\w+)`/g),
    ].map(([, key]) => key!)
  return new Map(rows.map(([, command, text]) => [command!, keysOf(text!)]))
}

describe('a job that loses two machines while somebody follows it', () => {
  let id: string
  let followed: JobLogLine[]

  it('resumes each time, and the follower sees every line once and in order', async () => {
    const follower = crucible.start([
      'submit',
      'train.py',
      '--name',
      'moved',
      '--interruptible',
      '--secret',
      'TOKEN',
      '--env',
      'STEPS=60',
      '--env',
      `GATE=${stage.gate(3)}`,
      '-f',
    ])
    await until(() => /Submitted ([\w-]+)/.test(follower.stderr()), 30_000)
    id = /Submitted ([\w-]+)/.exec(follower.stderr())![1]!
    const logs = crucible.start(['logs', '-f', id, '--json'])
    await stage.untilShown(id, hasSaved(1))
    expect(await crucible.json('interrupt', 'moved', '--notice', '3s')).toEqual({
      schema: 'crucible/1',
      id,
      attemptId: `${id}-1`,
      noticeMs: 3_000,
    })
    await stage.untilShown(id, hasSaved(2))
    expect((await crucible.run('interrupt', id, '--without-notice')).exitCode).toBe(0)
    const { exitCode, stdout, stderr } = await follower.ended
    expect({ exitCode, stderr }).toEqual({
      exitCode: 0,
      stderr: expect.stringMatching(/succeeded in .*3 attempts/),
    })
    expect(stderr).toMatch(/attempt 1: interrupted\. [^]*attempt 2: interrupted/)
    const answer = await logs.ended
    expect(answer.stderr).toMatch(/^crucible: .*Training\.$/m)
    followed = answer.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as JobLogLine)
    const { lines } = await crucible.json<{ lines: JobLogLine[] }>('logs', id)
    expect(followed).toEqual(lines.map((line) => ({ schema: 'crucible/1', ...line })))
    expect(stdout.split('\n').filter((line) => line.startsWith('step'))).toEqual(
      lines.filter(({ m }) => m.startsWith('step')).map(({ m }) => m),
    )
  })

  it('has a log without holes, in which each attempt continues from the checkpoint of the previous one', () => {
    expect(followed.filter(({ s }) => s === 'gap')).toEqual([])
    for (const attempt of [1, 2, 3]) {
      const lines = followed.filter((line) => line.attempt === attempt)
      expect(lines.map(({ n }) => n)).toEqual(lines.map((_, index) => index + 1))
      const steps = lines.flatMap(({ m }) => /^step (\d+)/.exec(m)?.[1] ?? []).map(Number)
      expect(steps).toEqual(steps.map((_, index) => steps[0]! + index))
    }
    expect(followed.map(({ attempt }) => attempt)).toEqual([...followed.map(({ attempt }) => attempt)].sort())
  })

  it('passes its secret to the program only', async () => {
    expect(followed.filter(({ m }) => m.startsWith('secret')).map(({ m }) => m)).toContain(
      'secret of 8 letters: ***',
    )
    const { stdout } = await crucible.run('events', id, '--record', '--json')
    expect(stdout).not.toContain('abcdefgh')
  })

  it('shows what was asked for and got, what it cost, and what was lost', async () => {
    const view = await stage.show(id)
    expect(view).toMatchObject({
      id,
      name: 'moved',
      state: 'succeeded',
      reason: 'completed',
      progress: { step: 60, stepsTotal: 60, percent: 100 },
      placement: { backend: 'local', capacityType: 'spot', realised: { capacityType: 'spot' } },
      attempts: [
        { number: 1, workflowId: `job/${id}/1`, state: 'interrupted', stepsLost: 0 },
        { number: 2, workflowId: `job/${id}/2`, state: 'interrupted' },
        { number: 3, workflowId: `job/${id}/3`, state: 'succeeded', reason: 'completed' },
      ],
    })
    expect(view.cost.spentMicroUsd).toBe(
      view.attempts.reduce((sum, { costMicroUsd }) => sum + costMicroUsd!, 0),
    )
    const { jobs } = await crucible.json<{ jobs: JobView[] }>('list', '--name', 'moved')
    expect(jobs).toMatchObject([{ id, state: 'succeeded', cost: view.cost }])
    const text = (await crucible.run('show', 'moved')).stdout
    expect(text).toMatch(/60\/60 \(100 %\)[^]*REQUESTED +MACHINE/)
    const isLong = (line: string): boolean => line.length > 100 && !line.includes('http')
    expect(text.split('\n').filter(isLong)).toEqual([])
  })

  it('has each decision explained from its record, with the figures of the plan', async () => {
    const { decisions, ended } = await crucible.json<JobExplained>('why', id)
    expect(decisions.map(({ kind, replay, attempt }) => [kind, replay, attempt])).toEqual(
      [1, 2, 3].flatMap((attempt) => [
        ['plan', 'same', attempt],
        ['after-attempt', 'same', attempt],
      ]),
    )
    for (const decision of decisions) {
      if (decision.kind !== 'plan') continue
      const total = decision.arithmetic.reduce((sum, line) => sum + line.addedMicroUsd, 0)
      expect(total).toBe(decision.chosen!.costMicroUsd)
    }
    expect(ended).toMatch(/^succeeded/)
    const { whatIf } = await crucible.json<{ whatIf: WhatIfAnswer }>(
      'why',
      id,
      '--what-if',
      'price.spot=+500%',
    )
    expect(whatIf).toMatchObject({
      decision: 5,
      replay: 'same',
      ruledOut: [],
      was: { place: { offer: { capacityType: 'spot' } } },
      now: { place: { offer: { capacityType: 'on-demand' } } },
    })
  })

  it('has its artifacts copied, and its checkpoints compared', async () => {
    const target = join(stage.folder, 'results')
    expect(await crucible.json('artifacts', id, '--download', 'results')).toMatchObject({
      folder: target,
      artifacts: [{ path: 'result.txt' }],
    })
    expect(await readFile(join(target, 'result.txt'), 'utf8')).toBe('counted to 60')
    await writeFile(join(target, 'result.txt'), 'mine')
    expect((await crucible.run('artifacts', id, '--download', 'results')).exitCode).toBe(2)
    expect(await crucible.json('checkpoints', id, 'verify')).toMatchObject({ isGood: true })
    const checkpoints = join(stage.folder, 'home', 'store', 'jobs', id, 'checkpoints')
    const newest = (await readdir(checkpoints)).sort().at(-1)!
    const [file] = await readdir(join(checkpoints, newest, 'files'))
    await writeFile(join(checkpoints, newest, 'files', file!), 'nonsense')
    const { exitCode, stdout } = await crucible.run('checkpoints', id, 'verify')
    expect(exitCode).toBe(1)
    expect(stdout).toContain(`${newest}  damaged`)
  })

  itInAll('can be read by who stops early', () => {
    const { status, stderr } = spawnSync(
      'bash',
      [
        '--norc',
        '-o',
        'pipefail',
        '-c',
        `"$0" "$1" logs ${id} | head -n 1`,
        process.execPath,
        join('dist', 'cli', 'main.js'),
      ],
      {
        cwd: join(__dirname, '..', '..'),
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], CRUCIBLE_HOME: join(stage.folder, 'home') },
      },
    )
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })
})

describe('an owner', () => {
  it('stops following without stopping the job, then moves, extends and cancels it', async () => {
    const follower = crucible.start([
      'submit',
      'train.py',
      '--interruptible',
      '--env',
      `GATE=${stage.gate()}`,
      '--name',
      'long',
      '-f',
    ])
    await until(() => follower.stdout().includes('step 5/'), 60_000)
    follower.child.kill('SIGINT')
    expect(await follower.ended).toMatchObject({
      exitCode: 130,
      stderr: expect.stringMatching(/continues\. Follow it with/),
    })
    const { id } = await stage.untilShown('long', hasSaved(1))

    expect(await crucible.run('migrate', id, '--to', 'moon')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('moon is not configured in this deployment'),
    })
    expect((await crucible.run('migrate', id, '--to', 'local:on-demand')).exitCode).toBe(0)
    const moved = await stage.untilShown(id, hasSaved(2))
    expect(moved.attempts).toMatchObject([
      { capacityType: 'spot', state: 'stopped', reason: 'migrated' },
      { capacityType: 'on-demand', state: 'running' },
    ])
    const { cost } = await stage.untilShown(id, (view) => view.cost.estimatedRemainingMicroUsd !== null)
    expect(cost.estimatedRemainingMicroUsd).toBeGreaterThan(0)

    expect(await crucible.json('extend', id, '--budget', '7', '--deadline', '3h')).toMatchObject({
      budgetMicroUsd: 7_000_000,
    })
    expect(await crucible.run('extend', id, '--deadline', '2020-01-01T00:00:00Z')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('has already passed'),
    })
    expect((await stage.show(id)).cost.budgetMicroUsd).toBe(7_000_000)
    expect((await crucible.run('interrupt', id, '--notice', '9s')).exitCode).not.toBe(0)

    expect((await crucible.run('cancel', id)).exitCode).toBe(0)
    const { checkpoints, state } = await stage.untilShown(id, isOver)
    expect({ state, hasCheckpoint: checkpoints.newest !== null }).toEqual({
      state: 'cancelled',
      hasCheckpoint: true,
    })
    expect((await crucible.run('cancel', id)).exitCode).toBe(0)
    for (const command of ['migrate', 'interrupt']) expect((await crucible.run(command, id)).exitCode).toBe(1)
  })

  itInAll('cancels at once what does not want to stop', async () => {
    const id = await stage.submit('--env', `GATE=${stage.gate()}`)
    await stage.untilShown(id, ({ state }) => state === 'running')
    expect(await crucible.json('cancel', '--now', id)).toMatchObject({ id, message: expect.any(String) })
    expect((await stage.untilShown(id, isOver)).state).toBe('cancelled')
    const inTemporal = await stage.temporal(async ({ workflow }) => {
      const handle = workflow.getHandle(jobWorkflowId(id))
      await handle.result().catch(() => undefined)
      return (await handle.describe()).status.name
    })
    expect(inTemporal).toBe('CANCELLED')
  })
})

describe('garbage collection', () => {
  let id: string
  const found = async (...flags: string[]): Promise<GarbageVerdict[]> => {
    const { verdicts } = await crucible.json<{ verdicts: GarbageVerdict[] }>('gc', ...flags)
    return verdicts.filter(({ owner }) => owner === `${id}-1`)
  }

  it('reports its last scheduled run, also in doctor', async () => {
    id = await stage.submit('--env', `GATE=${stage.gate()}`)
    await stage.untilShown(id, hasSaved(1))
    await stage.temporal((client) => client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).trigger())
    await until(async () => (await found('--last')).length > 0, 60_000)
    expect(await found('--last')).toMatchObject([
      { backend: 'local', kind: 'machine', action: 'kept', reason: `attempt 1 of job ${id} is running` },
    ])
    const { stdout, stderr } = await crucible.run('gc', '--last')
    expect(stdout).toMatch(new RegExp(`^kept +local +machine .* ${id}-1 `, 'm'))
    expect(stderr).toContain('workflow garbageCollection')
    const { findings } = await crucible.json<{ findings: Finding[] }>('doctor')
    expect(findings.filter(({ check }) => check === 'garbage')).toEqual([
      {
        check: 'garbage',
        status: 'ok',
        message: expect.stringMatching(/^collected .* ago: 0 removed, [1-9]\d* kept$/),
      },
    ])
  })

  it('names orphaned resources in a dry run, and otherwise ends them', async () => {
    await stage.temporal(async ({ workflow }) => {
      for (const workflowId of [jobWorkflowId(id), attemptWorkflowId(id, 1)])
        await workflow.getHandle(workflowId).terminate('by hand')
    })
    const { stdout } = await crucible.run('gc', '--dry-run')
    expect(stdout).toMatch(new RegExp(`^would-end +local +machine .* ${id}-1 .*job ${id} is over`, 'm'))
    // Nothing came of that look.
    expect(await found('--dry-run')).toMatchObject([{ action: 'would-end' }])
    expect(await found('--grace', '1s')).toMatchObject([{ action: 'ended' }])
    expect(await found('--dry-run')).toEqual([])
  })
})

describe('each command', () => {
  it('prints the JSON that docs/reference/cli.md documents', async () => {
    const id = await stage.submit('--name', 'table', '--env', 'STEPS=5')
    await stage.untilShown(id, isOver)
    const cases: [string, ...string[]][] = [
      ['submit', 'train.py', '--id', 'job-table', '--env', 'STEPS=1'],
      ['plan', 'train.py'],
      ['list'],
      ['list', '--name', 'nothing'],
      ['show', id],
      ['logs', id],
      ['events', id],
      ['why', id],
      ['artifacts', id],
      ['checkpoints', id],
      ['gc', '--dry-run'],
      ['doctor'],
      ['completion', 'fish'],
      ['cancel', '--now', await stage.submit('--env', `GATE=${stage.gate()}`)],
    ]
    const keys = documented()
    const answers: object[] = []
    for (const args of cases) answers.push(await crucible.json(...args))
    expect(answers.map((answer, index) => [cases[index]![0], Object.keys(answer).sort()])).toEqual(
      cases.map(([command]) => [command, ['schema', ...keys.get(command)!].sort()]),
    )
    expect(Object.keys(stage.dev.document).sort()).toEqual(['schema', ...keys.get('dev')!].sort())
  })

  it('ends with the exit code that docs/reference/cli.md documents', async () => {
    const failing = await crucible.run('submit', 'train.py', '--env', 'STEPS=x', '-f')
    expect(failing).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/failed in .*ValueError/) })
    expect((await crucible.run('submit', 'train.py', '--gpus', '64', '-f')).exitCode).toBe(3)
    for (const command of [['plan'], ['submit', '--dry-run']])
      expect((await crucible.run(...command, 'train.py', '--gpus', '64')).exitCode).toBe(3)
    expect((await crucible.run('show', 'job-none')).exitCode).toBe(5)
    expect((await crucible.start(['list'], NOWHERE).ended).exitCode).toBe(7)
  })
})

describe('a computer with a wrong clock', () => {
  it('counts the age and cost of a job by the server, and submits none', async () => {
    const gate = stage.gate()
    const id = await stage.submit('--env', `GATE=${gate}`)
    await stage.untilShown(id, hasSaved(1))
    for (const [side, aheadMs] of [
      ['ahead of', 2 * HOUR_MS],
      ['behind', -DAY_MS],
    ] as const) {
      const shifted = join(stage.folder, 'home', 'clock.js')
      await writeFile(shifted, clockWith(aheadMs))
      const off = { NODE_OPTIONS: `--require ${shifted}` }
      const shown = await crucible.start(['show', id, '--json'], off).ended
      const { cost } = JSON.parse(shown.stdout) as JobView
      const now = (await crucible.json<JobView>('show', id)).cost.spentMicroUsd!
      expect(cost.spentMicroUsd!).toBeGreaterThan(0)
      expect(cost.spentMicroUsd!).toBeLessThanOrEqual(now)
      expect(shown.stderr).toContain(`${side} the deployment's, which counts for ages and costs here`)
      const refused = await crucible.start(['submit', 'train.py', '--id', 'job-late'], off).ended
      expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('nothing was sent') })
      expect(refused.stderr.match(/clock of this computer/g)).toHaveLength(1)
    }
    expect((await crucible.run('show', 'job-late')).exitCode).toBe(5)
    await writeFile(join(gate, '1'), '')
  })

  it('counts deadlines from the present time of the server', async () => {
    const gate = stage.gate()
    const deadlineOf = async (aheadMs: number, ...args: string[]): Promise<number> => {
      const shifted = join(stage.folder, 'home', 'clock.js')
      await writeFile(shifted, clockWith(aheadMs))
      const ended = await crucible.start([...args, '--json'], { NODE_OPTIONS: `--require ${shifted}` }).ended
      const { id } = JSON.parse(ended.stdout) as { id: string }
      return (await crucible.json<JobView>('show', id)).deadlineAtMs!
    }
    const submission = ['submit', 'train.py', '--env', `GATE=${gate}`, '--id', 'job-due', '--deadline', '30m']
    for (const [dueMs, deadlineAtMs] of [
      [30 * MINUTE_MS, await deadlineOf(-40 * MINUTE_MS, ...submission)],
      [12 * HOUR_MS, await deadlineOf(-2 * HOUR_MS, 'extend', 'job-due', '--deadline', '12h')],
      [14 * HOUR_MS, await deadlineOf(2 * HOUR_MS, 'extend', 'job-due', '--deadline', '14h')],
    ] as const)
      expect(Math.abs(deadlineAtMs - Date.now() - dueMs)).toBeLessThan(2 * MINUTE_MS)
    await writeFile(join(gate, '1'), '')
  })
})

/** A module that sets the clock of a process of Node. */
const clockWith = (aheadMs: number): string => `
  const Real = Date
  globalThis.Date = class extends Real {
    constructor(...given) { given.length === 0 ? super(Date.now()) : super(...given) }
    static now() { return Real.now() + ${aheadMs} }
  }`

describe('an outage', () => {
  /** A bucket without a server. */
  const STORE_AWAY = {
    CRUCIBLE_STORE: 's3://away/store',
    AWS_ENDPOINT_URL: 'http://127.0.0.1:1',
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'x',
    AWS_SECRET_ACCESS_KEY: 'x',
  }

  it('of the store leaves a list with the states that Temporal knows, and no invented cost', async () => {
    const id = await stage.submit('--name', 'known', '--env', 'STEPS=1')
    await stage.untilShown(id, isOver)
    for (const flags of [[], ['--state', 'succeeded']]) {
      const args = ['list', '--name', 'known', ...flags]
      const document = await crucible.start([...args, '--json'], STORE_AWAY).ended
      expect(document.exitCode).toBe(7)
      expect(JSON.parse(document.stdout)).toMatchObject({
        jobs: [
          { id, state: 'succeeded', reason: 'completed', progress: null, cost: { spentMicroUsd: null } },
        ],
        incomplete: expect.stringMatching(/^The store s3:\/\/away\/store does not answer/),
      })
      const { exitCode, stdout } = await crucible.start(args, STORE_AWAY).ended
      expect(exitCode).toBe(7)
      expect(stdout).toMatch(new RegExp(`^${id} .* succeeded +completed +- +- +- +- `, 'm'))
    }
  })

  it('that loses the workflow of a job leaves the result that its program had', async () => {
    const id = await stage.submit('--name', 'lost', '--env', 'STEPS=5')
    await stage.untilShown(id, isOver)
    const record = join(stage.folder, 'home', 'store', 'jobs', id, 'record')
    const entries = async (): Promise<[path: string, kind: RecordEntry['kind']][]> =>
      Promise.all(
        (await readdir(record)).map(async (name) => {
          const path = join(record, name)
          return [path, (JSON.parse(await readFile(path, 'utf8')) as RecordEntry).kind]
        }),
      )
    // The workflow tells its state before its last entry is put.
    await until(async () => (await entries()).some(([, kind]) => kind === 'finished'))
    for (const [path, kind] of await entries())
      if (['settled', 'decided', 'finished'].includes(kind)) await rm(path)
    await stage.temporal(async ({ connection }) => {
      for (const workflowId of [jobWorkflowId(id), attemptWorkflowId(id, 1)])
        await connection.workflowService.deleteWorkflowExecution({
          namespace: 'default',
          workflowExecution: { workflowId },
        })
    })
    const told = { id, state: 'succeeded', reason: 'completed', cost: { spentMicroUsd: null } }
    await until(async () => (await stage.show(id)).message.includes('has no workflow'))
    expect(await stage.show(id)).toMatchObject(told)
    const { jobs } = await crucible.json<{ jobs: JobView[] }>('list', '--name', 'lost')
    expect(jobs).toMatchObject([told])
    expect((await crucible.run('artifacts', id)).stdout).toContain('result.txt')
  })

  it('of the disk behind an answer is a failure', () => {
    for (const args of [
      ['list'],
      ['list', '--json'],
      ['--version'],
      ['show', '--help'],
      ['completion', 'bash'],
    ])
      expect({ args, status: intoFullDisk(args) }).toEqual({ args, status: 1 })
  })
})

/** The exit code of a command whose output goes to a full disk. */
function intoFullDisk(args: string[]): number | null {
  const full = openSync('/dev/full', 'w')
  const main = join(__dirname, '..', '..', 'dist', 'cli', 'main.js')
  const env = { PATH: process.env['PATH'], CRUCIBLE_HOME: join(stage.folder, 'home') }
  const { status } = spawnSync(process.execPath, [main, ...args], { env, stdio: ['ignore', full, 'ignore'] })
  closeSync(full)
  return status
}

describe('crucible dev', () => {
  it('runs once for each home', async () => {
    const { exitCode, stderr } = await crucible.run('dev')
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`(process ${String(stage.dev.document['pid'])}) is already running`)
    expect(stderr).toContain(String(stage.dev.document['address']))
  })

  // In `npm test`, test/workers/upgrade.e2e.test.ts stops and starts it while jobs run.
  itInAll('keeps its state when it is stopped while a job runs, and takes the job up again', async () => {
    const path = stage.gate()
    const id = await stage.submit('--env', `GATE=${path}`)
    await stage.untilShown(id, hasSaved(1))
    stage.dev.child.kill('SIGINT')
    expect((await stage.dev.ended).exitCode).toBe(0)
    const { stdout } = await crucible.start(['show', id, '--json'], NOWHERE).ended
    expect(JSON.parse(stdout)).toMatchObject({ isLive: false, state: 'running' })
    expect((await crucible.start(['cancel', id], NOWHERE).ended).exitCode).toBe(7)
    stage.dev = await crucible.ready('dev')
    await writeFile(join(path, '1'), '')
    expect(await stage.untilShown(id, isOver)).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
  })
})
