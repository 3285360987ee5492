import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Command } from 'commander'
import type { Cli } from '../../../cli/cli'
import * as artifacts from '../../../cli/commands/job/artifacts'
import * as checkpoints from '../../../cli/commands/job/checkpoints'
import * as events from '../../../cli/commands/job/events'
import { FIT as GC_FIT, HEAD as GC_HEAD } from '../../../cli/commands/deployment/gc'
import { FIT as LIST_FIT, HEAD as LIST_HEAD } from '../../../cli/commands/job/list'
import { render } from '../../../cli/commands/job/show'
import { Output, type TableOptions } from '../../../cli/kit/output'
import { showPlan } from '../../../cli/job/planning'
import type { AttemptView, JobView, RecoveryView } from '../../../client/job/job-view'
import { NO_FORECAST } from '../../../core/job/forecast'
import type { Placement } from '../../../core/job/plan'
import { DAY_MS, MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { putRecord } from '../../../storage/record'
import { ClientWorld, JOB, NOW, OFFER, SPEC } from '../../client/world'
import { Paper } from '../outside'
import { partialEntry } from '../../support/record'

const WIDTH = 80

function screen(): { out: Output; lines: () => string[]; notes: () => string } {
  const [stdout, stderr] = [new Paper(), new Paper()]
  Object.assign(stdout, { isTTY: true, columns: WIDTH })
  const out = new Output({ stdout, stderr, isJson: false, isColourWanted: false })
  return { out, lines: () => stdout.text.trimEnd().split('\n'), notes: () => stderr.text }
}

const widest = (lines: string[]): number => Math.max(...lines.map((line) => line.length))

const LONG_ID = `${'long-name-'.repeat(3)}xyz-xm8n27`
const WORDS = 'The provider takes the machine back, and says so two minutes before it does.'

describe('a table on a screen of 80 columns', () => {
  it.each<[string, readonly string[], TableOptions, string[]]>([
    [
      'list',
      LIST_HEAD,
      LIST_FIT,
      [
        LONG_ID,
        LONG_ID,
        'provisioning',
        'waiting-for-capacity',
        'ec2 on-demand > spot',
        '123456/1500000 (8 %)',
        '$123.45',
        '$99.99',
        '23h',
      ],
    ],
    [
      'gc',
      GC_HEAD,
      GC_FIT,
      [
        'would-end',
        'ec2',
        'machine',
        'i-0123456789abcdef0',
        'us-east-1a',
        LONG_ID,
        '23h',
        '$123.45',
        WORDS,
        'g5.12xlarge, running',
      ],
    ],
  ])(
    'of %s is no wider, begins with what it is about, and names what it leaves out',
    (_name, head, options, row) => {
      const { out, lines, notes } = screen()
      out.table(head, [row, row], options)
      expect(widest(lines())).toBeLessThanOrEqual(WIDTH)
      expect(lines()[1]!.startsWith(row[0]!)).toBe(true)
      expect(notes()).toMatch(/^Left out to fit 80 columns: [A-Z., /]+\. --json has everything\.\n$/)
    },
  )

  it('leaves nothing out where there is room', () => {
    const { out, lines, notes } = screen()
    out.table(
      LIST_HEAD,
      [['a-x1', 'a', 'running', 'training', 'local spot', '1/2 (50 %)', '$1', '$1', '2m']],
      LIST_FIT,
    )
    expect(lines()[0]!.split(/ {2,}/)).toEqual(LIST_HEAD)
    expect(notes()).toBe('')
  })

  it('of show is no wider', () => {
    const { out, lines } = screen()
    const attempt = {
      number: 1,
      workflowId: `job/${JOB}/1`,
      backend: 'ec2',
      capacityType: 'on-demand',
      place: 'us-east-1a',
      realised: {
        capacityType: 'spot',
        type: 'p6-b200.48xlarge',
        place: 'us-east-1a',
        priceMicroUsdPerHour: 300_000,
      },
      state: 'interrupted',
      reason: WORDS,
      phase: null,
      rebalanceAtMs: null,
      endedAtMs: NOW,
      launchedAtMs: NOW - 700 * MINUTE_MS,
      billedFromAtMs: null,
      costMicroUsd: 5_000_000,
      costBasis: null,
      phases: [],
      restoredFrom: { step: 1_234_567, attempt: 1 },
      checkpoint: { step: 2_345_678, attempt: 1 },
      progress: null,
      stepsLost: 3_000,
    } as unknown as AttemptView
    const ms = 754_321
    const recovery: RecoveryView = {
      from: 1,
      to: 2,
      cause: 'interrupted',
      stepsLost: 0,
      detectMs: ms,
      drainMs: ms,
      acquireMs: ms,
      bootMs: ms,
      restoreMs: ms,
      firstStepMs: ms,
      totalMs: ms,
      overheadMs: ms,
    }
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
      progress: null,
      deadlineAtMs: null,
      placement: null,
      attemptsTotal: 1,
      isLive: true,
      uiUrl: null,
      isRehearsal: false,
      cost: {
        spentMicroUsd: 5_000,
        estimatedRemainingMicroUsd: null,
        remainingBasis: null,
        budgetMicroUsd: null,
      },
      checkpoints: { newest: null, state: null, count: 0 },
      trouble: null,
      waiting: null,
      queuedSinceMs: null,
      phase: null,
      retrying: null,
      attempts: [attempt, attempt],
      recoveries: [recovery],
      placementReasons: [],
      continuation: null,
      warning: null,
      trackers: [],
    }
    render(out, view, NOW)
    expect(widest(lines())).toBeLessThanOrEqual(WIDTH)
  })

  it('of plan is no wider', () => {
    const { out, lines } = screen()
    const placement: Placement = {
      offer: {
        ...OFFER,
        backend: 'ec2',
        capacityType: 'on-demand',
        type: 'p6-b200.48xlarge',
        place: 'us-east-1a',
        shape: { cpus: 192, memoryGiB: 2048, gpus: 8, accelerator: 'RTXPRO6000', gpuMemoryGiB: 179.1 },
        priceSource: { kind: 'static', observedAtMs: NOW - 300 * DAY_MS },
      },
      costMicroUsd: 1_234_560_000,
      durationMs: 1_000 * MINUTE_MS,
      reasons: ['cheap'],
      risks: [],
      forecast: {
        ...NO_FORECAST,
        cost: { lowMicroUsd: 987_650_000, highMicroUsd: 2_345_670_000 },
        chances: { deadline: 0.5, budget: 0.5 },
      },
    }
    const plan = {
      placements: [placement],
      others: [],
      prospect: { kind: 'place' as const },
      othersTotal: 0,
      rejections: [],
      silentBackends: [],
      relaxations: [],
      isDurationAssumed: false,
    }
    showPlan(out, plan, { nowMs: NOW })
    const table = lines().slice(0, 2)
    expect(widest(table)).toBeLessThanOrEqual(WIDTH)
    expect(table[1]).toContain('p6-b200.48xlarge')
    expect(table[1]).toContain('8x RTXPRO')
    expect(table[0]).toMatch(/ IN TIME +IN BUDGET$/)
  })

  it('continues in the next line if a text says too much to be cut', () => {
    const { out, lines } = screen()
    out.table(['WHEN', 'WHAT'], [['2026-11-22 18:00:00', `${WORDS} ${WORDS}`]], { wrapped: 'WHAT' })
    expect(widest(lines())).toBeLessThanOrEqual(WIDTH)
    const said = lines()
      .slice(1)
      .map((line) => line.slice(21))
      .join(' ')
    expect(said).toBe(`${WORDS} ${WORDS}`)
  })

  it('has every column in a pipe', () => {
    const stdout = new Paper()
    const out = new Output({ stdout, stderr: new Paper(), isJson: false, isColourWanted: false })
    out.table(LIST_HEAD, [[LONG_ID, LONG_ID, 'running', 'x', 'y', 'z', '$1', '$1', '2m']], LIST_FIT)
    expect(stdout.text.split('\n')[0]!.split(/ {2,}/)).toEqual(LIST_HEAD)
  })
})

describe('the commands that read the store', () => {
  let world: ClientWorld
  beforeEach(async () => {
    world = await ClientWorld.make()
  })
  afterEach(() => world.remove())

  it.each([
    ['events', events],
    ['artifacts', artifacts],
    ['checkpoints', checkpoints],
  ])('fit 80 columns: %s', async (name, { define }) => {
    const data = {
      jobId: JOB,
      spec: { ...SPEC, run: WORDS },
      submittedAtMs: NOW,
      owner: 'somebody',
      bundle: null,
    }
    const summary = `${WORDS} ${WORDS}`
    await putRecord(world.store, JOB, partialEntry({ seq: 0, atMs: NOW, kind: 'submitted', summary, data }))
    await world.store.put(`${layout.artifactsOf(JOB, 1)}${'deep/'.repeat(30)}weights.bin`, 'x')
    const { out, lines } = screen()
    const cli = {
      out,
      context: () => world.context,
      now: () => NOW,
      asCalled: (text: string) => text,
    } as unknown as Cli
    const command = new Command(name)
    define(command, cli)
    await command.parseAsync([JOB], { from: 'user' })
    expect(lines().length).toBeGreaterThan(0)
    expect(widest(lines())).toBeLessThanOrEqual(WIDTH)
  })
})
