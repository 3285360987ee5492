import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { render } from '../../cli/commands/job/show'
import { Output } from '../../cli/kit/output'
import type { AttemptView, JobView, RecoveryView } from '../../client/job/job-view'
import type { Diagnosis } from '../../core/documents'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Manifest } from '../../core/job/checkpoint'
import { layout, manifestName } from '../../storage/layout'
import { manifestOf } from '../support/manifests'
import { ClientWorld, JOB, NOW } from '../client/world'
import { Paper, World, type Answer } from './outside'

const CHECKPOINT = { step: 40, attempt: 1, savedAtMs: NOW } as unknown as AttemptView['checkpoint']

function attempt(fields: Partial<AttemptView>): AttemptView {
  return {
    number: 1,
    workflowId: `job/${JOB}/1`,
    backend: 'ec2',
    capacityType: 'spot',
    place: 'us-east-1a',
    realised: { capacityType: 'spot', type: 'g5.xlarge', place: 'us-east-1a', priceMicroUsdPerHour: 300_000 },
    state: 'running',
    reason: 'training',
    phase: 'running',
    rebalanceAtMs: null,
    launchedAtMs: NOW - MINUTE_MS,
    billedFromAtMs: null,
    endedAtMs: null,
    costMicroUsd: 5_000,
    costBasis: null,
    restoredFrom: null,
    restoredBecause: null,
    checkpoint: null,
    checkpointState: null,
    warning: null,
    trackers: [],
    saving: null,
    retrying: null,
    progress: null,
    stepsLost: null,
    phases: [],
    ...fields,
  }
}

const RECOVERY: RecoveryView = {
  from: 1,
  to: 2,
  cause: 'interrupted',
  stepsLost: 0,
  detectMs: 700,
  drainMs: 0,
  acquireMs: 14_000,
  bootMs: 95_000,
  restoreMs: 1_200,
  firstStepMs: null,
  totalMs: null,
  overheadMs: null,
}

/** The lines that a job is shown in; blanks between columns are one. */
function shown(fields: Partial<JobView>): string[] {
  const view: JobView = {
    id: JOB,
    name: 'train',
    owner: 'somebody',
    workflowId: `job/${JOB}`,
    incomplete: null,
    state: 'running',
    reason: 'training',
    message: 'Training.',
    submittedAtMs: NOW - 5 * MINUTE_MS,
    endedAtMs: null,
    warning: null,
    trackers: [],
    progress: null,
    deadlineAtMs: null,
    placement: null,
    attemptsTotal: 1,
    isLive: true,
    uiUrl: null,
    isRehearsal: false,
    trouble: null,
    waiting: null,
    queuedSinceMs: null,
    phase: null,
    retrying: null,
    cost: {
      spentMicroUsd: 5_000,
      estimatedRemainingMicroUsd: null,
      remainingBasis: null,
      budgetMicroUsd: null,
    },
    checkpoints: { newest: null, state: null, count: 0 },
    continuation: null,
    attempts: [],
    recoveries: [],
    placementReasons: [],
    ...fields,
  }
  const stdout = new Paper()
  render(new Output({ stdout, stderr: new Paper(), isJson: false, isColourWanted: false }), view, NOW)
  return stdout.text.split('\n').map((line) => line.trim().replace(/ {2,}/g, ' | '))
}

describe('a job for people', () => {
  it('has each attempt with what it does now, what it began from and what it lost', () => {
    const lines = shown({
      attempts: [
        attempt({
          state: 'interrupted',
          reason: 'interrupted: The provider takes the machine back.',
          phase: null,
          endedAtMs: NOW,
          checkpoint: CHECKPOINT,
          stepsLost: 3,
        }),
        attempt({
          number: 2,
          state: 'provisioning',
          reason: 'starting',
          phase: 'pulling',
          launchedAtMs: NOW - 4 * SECOND_MS,
          restoredFrom: CHECKPOINT,
        }),
      ],
    })
    expect(
      lines.slice(
        lines.indexOf('# | REQUESTED | MACHINE | STATE | REASON | TIME | COST | FROM | SAVED | LOST'),
      ),
    ).toEqual([
      '# | REQUESTED | MACHINE | STATE | REASON | TIME | COST | FROM | SAVED | LOST',
      expect.stringMatching(
        /^1 \| ec2 spot \| spot g5\.xlarge \| interrupted \| The provider .*… \| 1m \| \$0\.005 \| - \| 40 \| 3$/,
      ),
      '2 | ec2 spot | spot g5.xlarge | provisioning | pulling | 4s | $0.005 | 40 | - | -',
      '',
    ])
  })

  it('shows the parts of each recovery, and a dash for unknown ones', () => {
    expect(shown({ recoveries: [RECOVERY, { ...RECOVERY, to: null, acquireMs: null }] }).slice(-4)).toEqual([
      'RECOVERY | AFTER | DETECT | DRAIN | ACQUIRE | BOOT | RESTORE | FIRST STEP | TOTAL | EXCL. BOOT',
      '1 to 2 | interrupted | 0.7s | 0s | 14s | 1m 35s | 1.2s | - | - | -',
      '1 to - | interrupted | 0.7s | 0s | - | 1m 35s | 1.2s | - | - | -',
      '',
    ])
  })

  it('warns while the provider may interrupt the machine', () => {
    const warned = (rebalanceAtMs: number | null): string[] =>
      shown({ attempts: [attempt({ rebalanceAtMs })] }).filter((line) => line.startsWith('warning'))
    expect(warned(null)).toEqual([])
    expect(warned(NOW)).toEqual([
      'warning | the provider may interrupt this machine soon; warned since 2026-11-21T12:00:00Z',
    ])
  })

  it('shows the progress of saving, and how much is read so far', () => {
    const GB = 1_000_000_000
    const saving = { what: 'artifacts' as const, filesDone: 3, filesTotal: 7, bytesTotal: 40 * GB }
    const said = (more: { bytesDone: number; bytesRead?: number }): string[] =>
      shown({ attempts: [attempt({ phase: 'finishing', saving: { ...saving, ...more } })] }).filter((line) =>
        line.startsWith('saving'),
      )
    expect(said({ bytesDone: 12 * GB, bytesRead: 12 * GB })).toEqual([
      'saving | artifacts: 3 of 7 files, 12 GB of 40 GB',
    ])
    expect(said({ bytesDone: 12 * GB, bytesRead: 20 * GB })).toEqual([
      'saving | artifacts: 3 of 7 files, 12 GB of 40 GB (20 GB read)',
    ])
    expect(shown({ attempts: [attempt({})] }).filter((line) => line.startsWith('saving'))).toEqual([])
  })

  it('shows the state and source of its newest checkpoint, and the warnings of its runner', () => {
    const text = 'No complete checkpoint for 20 min: out/log.txt is held open by pid 123.'
    const unknown = { id: '000000000003-1', step: 3, attempt: 1, isStepKnown: false }
    const lines = shown({
      checkpoints: { newest: unknown, state: 'settled', count: 2 },
      warning: { kind: 'no-checkpoint', text, sinceMs: NOW },
      attempts: [
        attempt({
          checkpoint: unknown,
          restoredFrom: CHECKPOINT,
          restoredBecause: 'newest complete checkpoint: DONE is there',
        }),
      ],
    })
    expect(lines).toContain('checkpoint | step unknown, provisional, 2 kept')
    expect(lines).toContain('restored | step 40 of attempt 1: newest complete checkpoint: DONE is there')
    expect(lines).toContain(`warning | ${text}`)
    expect(lines.at(-2)).toMatch(/ \| 40 \| - \| -$/)
    const proven = shown({ checkpoints: { newest: CHECKPOINT, state: 'complete', count: 1 } })
    expect(proven).toContain('checkpoint | step 40, complete, 1 kept')
  })

  it('names the runs of its trackers, with their pages where those are certain', () => {
    const trackers = [
      { kind: 'mlflow', runId: 'abc', url: 'https://mlflow.example.org/#/experiments/1/runs/abc' },
      { kind: 'wandb', runId: 'def' },
    ]
    expect(shown({ trackers }).filter((line) => line.startsWith('tracked'))).toEqual([
      'tracked | MLflow run abc, https://mlflow.example.org/#/experiments/1/runs/abc',
      'tracked | W&B run def',
    ])
  })

  it('says for what its machine was chosen while it starts, and not on every later call', () => {
    const placementReasons = ['$0.30/h', 'not interruptible']
    expect(shown({ placementReasons, state: 'provisioning' })).toContain('chosen for | $0.30/h')
    for (const state of ['running', 'succeeded'] as const)
      expect(shown({ placementReasons, state }).join()).not.toContain('chosen for')
  })
})

describe('crucible checkpoints', () => {
  it('has the state of each, what proves it, and no running number as a step', async () => {
    const client = await ClientWorld.make()
    const world = new World()
    world.environment['CRUCIBLE_STORE'] = client.context.config.home.storeUrl
    await client.submitted()
    const save = (step: number, changes: Partial<Manifest>): Promise<void> => {
      const manifest = manifestOf({
        jobId: JOB,
        step,
        createdAtMs: NOW,
        totalBytes: 1_200_000_000,
        ...changes,
      })
      const folder = layout.checkpoint(JOB, step, 1)
      return client.store.put(`${folder}${manifestName(manifest.revision)}`, JSON.stringify(manifest))
    }
    try {
      await save(400, {})
      const text = 'nothing changed for 5 s'
      await save(600, { isStepKnown: false, state: 'quiet', evidence: { kind: 'quiet', text } })
      await client.store.put(`${layout.checkpoint(JOB, 700, 1)}${manifestName()}`, '{')
      const lines = (await world.run('checkpoints', JOB)).stdout.trimEnd().split('\n')
      expect(
        lines.map((line) => line.replace(/ {2,}/g, ' | ').replace(/\| \d+[smhd] (?=\|)/, '| AGE ')),
      ).toEqual([
        'CHECKPOINT | STATE | STEP | SIZE | AGE | EVIDENCE',
        '000000000700-1 | damaged | - | - | - | its manifest cannot be read',
        '000000000600-1 | provisional | - | 1.2 GB | AGE | nothing changed for 5 s',
        '000000000400-1 | complete | 400 | 1.2 GB | AGE | model.pt ends with its zip directory',
      ])
    } finally {
      world.remove()
      await client.remove()
    }
  })
})

describe('crucible events and logs', () => {
  let client: ClientWorld
  let world: World
  beforeEach(async () => {
    client = await ClientWorld.make()
    world = new World()
    world.environment['CRUCIBLE_STORE'] = client.context.config.home.storeUrl
    await client.submitted()
    await client.planned(1)
    await client.machine(1)
  })
  afterEach(async () => {
    world.remove()
    await client.remove()
  })
  const events = (...flags: string[]): Promise<Answer> => world.run('events', JOB, ...flags)

  it('says why a job has no lines, with the output of a machine that started no runner', async () => {
    expect(await world.run('logs', JOB)).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: expect.not.stringContaining('Output of machine'),
    })
    const text = `# The start\n\n${Array.from({ length: 12 }, (_, at) => `line ${at}`).join('\n')}\n`
    const diagnosis: Diagnosis = { atMs: NOW, machine: 'machine-1', lastWords: 'line 11', text }
    await client.store.put(layout.diagnosis(JOB, 1), JSON.stringify(diagnosis))
    const { stdout, stderr } = await world.run('logs', JOB)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^No lines: /m)
    const last = Array.from({ length: 10 }, (_, at) => `  line ${at + 2}\n`).join('')
    expect(stderr).toContain(
      `Output of machine machine-1 of attempt 1, whose runner left no result:\n${last}`,
    )
    expect(stderr).not.toContain('line 1\n')
    const asked = await world.run('logs', JOB, '--json')
    expect(JSON.parse(asked.stdout)).toMatchObject({ lines: [] })
    await client.chunk(1, [1])
    expect(await world.run('logs', JOB)).toMatchObject({ stdout: '1.1\n', stderr: '' })
  })

  it('ends with the last messages of a lost machine', async () => {
    const diagnosis: Diagnosis = {
      atMs: NOW,
      machine: 'machine-1',
      lastWords: 'out of memory',
      text: '# The agent (SSM)\nhas lost its connection\n\n# The console\nout of memory',
    }
    await client.store.put(layout.diagnosis(JOB, 1), JSON.stringify(diagnosis))
    const { stdout, exitCode } = await events()
    expect(exitCode).toBe(0)
    expect(stdout).toContain('its diagnosis (machine-1): out of memory\n')
    expect(stdout.slice(stdout.indexOf('Last messages'))).toBe(
      'Last messages from the machine of attempt 1:\n  # The agent (SSM)\n  has lost its connection\n\n  # The console\n  out of memory\n',
    )
    const { events: told } = JSON.parse((await events('--json')).stdout) as { events: { detail?: string }[] }
    expect(told.map(({ detail }) => detail).filter(Boolean)).toEqual([diagnosis.text])
  })
})
