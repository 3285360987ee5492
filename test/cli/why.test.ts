import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { microUsd } from '../../core/money/money'
import type { RecordKind } from '../../core/job/record'
import { HOUR_MS } from '../../core/time/time'
import type { JobExplained, PlanExplained, VerdictExplained, WhatIfAnswer } from '../../core/job/why'
import { Output } from '../../cli/kit/output'
import { showDecisions } from '../../cli/job/why-text'
import { decide } from '../../planner/policy/decide'
import { explainPlan } from '../../planner/why/why'
import { layout } from '../../storage/layout'
import { keepMarket } from '../../storage/market'
import { putRecord } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { JOB } from '../client/world'
import { recordedPlan } from '../planner/recorded'
import { NOW_MS, offer, SPEC } from '../planner/wishes'
import { partialEntry } from '../support/record'
import { Paper, World } from './outside'
import { markedStore } from '../support/marked-store'

const world = new World()
let store: ObjectStore
let seq = 0

const gpu = { cpus: 8, memoryGiB: 32, gpus: 1, accelerator: 'A100', gpuMemoryGiB: 40 }
const SPOT = offer({ capacityType: 'spot', type: 'p4', shape: gpu, priceMicroUsdPerHour: microUsd(1) })
const FIXED = offer({ type: 'p4', shape: gpu, priceMicroUsdPerHour: microUsd(1.2) })
const SPEC_OF_JOB = {
  durationMs: 10 * HOUR_MS,
  durationOn: 'A100',
  isInterruptible: true,
  resources: { gpus: { min: 1 } },
}
const BUDGET = { budgetMicroUsd: microUsd(60) }
const LOST = {
  kind: 'failed',
  isLaunched: true,
  failure: { class: 'interrupted', message: 'The provider took the machine.' },
} as const
const LEDGER = { attempts: 0, failures: 0, interruptions: 0, unclassified: 0, misses: 0, spentMicroUsd: 0 }
const VERDICT_FACTS = {
  end: LOST,
  drainReason: null,
  offerKeys: ['here/spot/p4/a'],
  ledger: LEDGER,
  hasSaved: true,
  machine: { offerKey: 'here/spot/p4/a', placeKey: 'here/*/*/a' },
  policy: { failuresMax: 0, interruptionsMax: 9, unclassifiedMax: 3 },
}
const verdict = decide(VERDICT_FACTS)

async function record(kind: RecordKind, data: unknown, attempt?: number): Promise<void> {
  const entry = { seq: seq++, atMs: NOW_MS + seq, kind, summary: `${kind} it`, data }
  await putRecord(store, JOB, partialEntry(attempt === undefined ? entry : { ...entry, attempt }))
}

async function recordPlan(question: ReturnType<typeof recordedPlan>, attempt: number): Promise<void> {
  const { data } = question.entry
  const market = await keepMarket(store, question.answers!, { jobId: JOB, nowMs: NOW_MS })
  await record('planned', { ...data, facts: { ...data.facts, market } }, attempt)
}

const second = recordedPlan([SPOT, FIXED], {
  spec: SPEC_OF_JOB,
  input: {
    ...BUDGET,
    attempt: 2,
    ledger: { ...verdict.ledger, spentMicroUsd: microUsd(2) },
    avoid: verdict.decision.kind === 'again' ? verdict.decision.avoid : [],
  },
  facts: { leftShare: 0.8, savedBefore: { totalBytes: 1e9 } },
})

beforeAll(async () => {
  store = markedStore(join(world.environment['CRUCIBLE_HOME']!, 'store'))
  await record('submitted', {
    jobId: JOB,
    spec: { ...SPEC, ...SPEC_OF_JOB },
    bundle: null,
    owner: 'me',
    deployment: 'd',
    submittedAtMs: NOW_MS,
  })
  await recordPlan(recordedPlan([SPOT, FIXED], { spec: SPEC_OF_JOB, input: BUDGET }), 1)
  await record('decided', { facts: VERDICT_FACTS, verdict }, 1)
  await recordPlan(second, 2)
})
afterAll(() => world.remove())

const json = async <T>(...args: string[]): Promise<T> => {
  const { stdout, exitCode, stderr } = await world.run('why', JOB, '--json', ...args)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return JSON.parse(stdout) as T
}

describe('crucible why', () => {
  it('explains a plan, its interruption and the next plan from the store alone', async () => {
    const { decisions, ended } = await json<JobExplained>()
    expect(decisions).toMatchObject([
      { number: 1, kind: 'plan', outcome: 'place', replay: 'same', attempt: 1 },
      {
        number: 2,
        kind: 'after-attempt',
        outcome: 'again',
        replay: 'same',
        otherwise: ['With retries.interruptions: 0 the job would have ended here.'],
      },
      { number: 3, kind: 'plan', outcome: 'place', replay: 'same', attempt: 2 },
    ])
    expect(ended).toBeNull()
    const [first, , next] = decisions as [PlanExplained, VerdictExplained, PlanExplained]
    expect([first, next].map(({ chosen }) => chosen!.offer.capacityType)).toEqual(['spot', 'on-demand'])
    expect(next.inputs.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['avoided', 'budget', 'work done']),
    )
  })

  it('prints the same for a person, with the sum of the arithmetic', async () => {
    const { stdout } = await world.run('why', JOB)
    expect(stdout).toMatch(/3 decisions\n/)
    expect(stdout).toMatch(
      /1\. 2026-11-21T00:00:00Z, for attempt 1\n {3}Attempt 1 was ordered: here spot, p4 in a, \$1\.00\/h/,
    )
    expect(stdout).toContain('here/spot/p4/a interrupted this job (for another 2h)')
    const { chosen } = (await json<JobExplained>()).decisions[2] as PlanExplained
    expect(stdout).toMatch(
      new RegExp(`in total +\\S+( \\S+)? +\\$${(chosen!.costMicroUsd / 1e6).toFixed(2)}`),
    )
  })

  it('decides the last plan again, or another one', async () => {
    const last = await json<{ whatIf: WhatIfAnswer }>('--what-if', 'price.spot=-50%')
    expect(last.whatIf).toMatchObject({
      decision: 3,
      changes: ['price.spot=-50%'],
      replay: 'same',
      isUnchanged: false,
    })
    const first = await json<{ whatIf: WhatIfAnswer }>('--decision', '1', '--what-if', 'price.spot=+30%')
    expect(first.whatIf).toMatchObject({
      decision: 1,
      was: { text: 'here spot, p4 in a, $1.00/h' },
      now: { text: 'here on-demand, p4 in a, $1.20/h' },
    })
    const { stdout } = await world.run(
      'why',
      JOB,
      '--decision',
      '1',
      '--what-if',
      'price.spot=+30%',
      '--what-if',
      'backend=-here:spot',
    )
    expect(stdout).toMatch(/Decision 1 with price\.spot=\+30%, backend=-here:spot/)
    expect(stdout).toMatch(/place +here spot, p4 in a, \$1\.00\/h +here on-demand, p4 in a/)
    expect(stdout).toMatch(/Ruled out now\n +here spot p4: left out/)
  })

  it('says that nothing changes', async () => {
    const { stdout } = await world.run('why', JOB, '--what-if', 'budget=+0usd')
    expect(stdout).toMatch(/Nothing changes[^]*gives the same result/)
  })

  it.each([
    [['--what-if', 'colour=red'], /"colour" is not a key of --what-if/],
    [
      ['--what-if', 'price.p9=1'],
      /No offer of the decision matches price\.p9\.\nIt has capacity types: spot, on-demand/,
    ],
    [['--decision', '9'], /no decision 9\.\nChoose one from 1 to 3/],
    [
      ['--decision', '2', '--what-if', 'price=+1%'],
      /Decision 2 followed from the end of an attempt[^]*Choose one of the plans: 1, 3\./,
    ],
    [['--decision', '0'], /whole number from 1/],
  ])('refuses %j', async (args, stderr) => {
    expect(await world.run('why', JOB, ...args)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(stderr),
    })
  })

  it('does not find a job that does not exist', async () => {
    expect((await world.run('why', 'job-none')).exitCode).toBe(5)
  })

  it('shows what is on record when a market document is gone or was changed', async () => {
    const keys: string[] = []
    for await (const { key } of store.list(layout.markets())) if (key.endsWith('.json')) keys.push(key)
    await store.put(keys[0]!, '{}')
    const changed = await json<JobExplained>('--decision', '1')
    await store.delete(keys[0]!)
    const gone = await json<JobExplained>('--decision', '1')
    for (const { decisions } of [changed, gone])
      expect(decisions).toMatchObject([
        {
          replay: 'impossible',
          missing: [expect.stringMatching(/no longer in the store/), expect.any(String)],
          chosen: { offer: SPOT },
        },
      ])
    expect((await world.run('why', JOB, '--what-if', 'price=+1%')).exitCode).toBe(2)
  })
})

describe('a job of many plans', () => {
  it('has the newest ones searched for what would have changed them, or the one that is asked for', async () => {
    const other = 'job-of-many-plans'
    const question = recordedPlan([SPOT, FIXED], { spec: SPEC_OF_JOB })
    const market = await keepMarket(store, question.answers!, { jobId: other, nowMs: NOW_MS })
    const { data } = question.entry
    const input = {
      jobId: other,
      spec: SPEC,
      bundle: null,
      owner: 'me',
      deployment: 'd',
      submittedAtMs: NOW_MS,
    }
    const kinds = [
      ['submitted', input],
      ...Array.from({ length: 11 }, () => ['planned', { ...data, facts: { ...data.facts, market } }]),
    ]
    for (const [index, [kind, content]] of kinds.entries())
      await putRecord(
        store,
        other,
        partialEntry({ seq: index, atMs: NOW_MS, kind: kind as RecordKind, summary: '', data: content }),
      )
    const explained = async (...args: string[]): Promise<PlanExplained[]> =>
      (
        JSON.parse((await world.run('why', other, '--json', ...args)).stdout) as {
          decisions: PlanExplained[]
        }
      ).decisions
    const all = await explained()
    expect(all.map(({ isSearched, switchPoints }) => isSearched && switchPoints.length > 0)).toEqual([
      false,
      ...Array<boolean>(10).fill(true),
    ])
    expect((await explained('--decision', '1'))[0]).toMatchObject({
      isSearched: true,
      switchPoints: all[1]!.switchPoints,
    })
    expect((await world.run('why', other)).stdout).toMatch(
      /What would have changed it\n +--decision 1 searches for it/,
    )
  })
})

describe('excluded offers in an explanation', () => {
  const plan = explainPlan(recordedPlan([SPOT, FIXED], { spec: { ...SPEC_OF_JOB, isInterruptible: false } }))
  const printed = (excluded: PlanExplained['excluded']): string => {
    const stdout = new Paper()
    const out = new Output({ stdout, stderr: new Paper(), isJson: false, isColourWanted: false })
    showDecisions(out, { id: JOB, name: 'a', rules: '', decisions: [{ ...plan, excluded }], ended: null })
    return stdout.text
  }

  it('are grouped as in a plan', () => {
    expect(printed(plan.excluded)).toMatch(
      /Excluded\n +1 offer of spot capacity, .*: here\/spot\/p4\/a; set `interruptible: true`/,
    )
  })
})

describe('crucible plan --explain', () => {
  const script = join(world.home, 'train.py')
  const LOCAL = { CRUCIBLE_LOCAL_SPOT: 'yes', CRUCIBLE_LOCAL_PRICE: '4', CRUCIBLE_LOCAL_SPOT_PRICE: '1' }

  beforeAll(() => {
    writeFileSync(script, 'print(1)')
    Object.assign(world.environment, LOCAL)
  })

  it('shows the arithmetic of one offer, or why it is excluded', async () => {
    const { stdout } = await world.run('plan', script, '--interruptible', '--explain', 'spot')
    const [, cost] = /^local\/spot\/process\/\S+: about (\$\S+) in .*, rank 1 of 2$/m.exec(stdout)!
    expect(stdout).toMatch(new RegExp(`in total +\\S+( \\S+)? +\\${cost}`))
    const excluded = await world.run('plan', script, '--explain', 'spot')
    expect(excluded.stdout).toMatch(/^local\/spot\/process\/\S+ is excluded: it is interruptible/)
  })

  it.each([
    [['--interruptible'], true],
    [[], false],
  ])('with %j warns of work that an interruption loses: %s', async (flags, isWarned) => {
    const { exitCode, stderr } = await world.run('plan', script, ...flags)
    expect(exitCode).toBe(0)
    expect(/An interruption loses all work of this job.*train\.py/.test(stderr)).toBe(isWarned)
  })

  it('refuses what no offer is called, in one document with --json', async () => {
    const { exitCode, stdout } = await world.run('plan', script, '--explain', 'p9', '--json')
    expect({ exitCode, ...JSON.parse(stdout) }).toMatchObject({
      exitCode: 2,
      error: { message: 'No offer matches "p9".' },
    })
  })
})
