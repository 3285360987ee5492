import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { budgetOf } from '../../client/budget'
import { costsOf, rebuildCosts } from '../../client/costs'
import type { AttemptRecord } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import type { CostGroup } from '../../core/money/job-costs'
import { microUsd } from '../../core/money/money'
import type { OwnTags } from '../../core/own-tags'
import { emptyTreasury, settle, type TreasuryState } from '../../core/money/treasury'
import { HOUR_MS } from '../../core/time/time'
import { readJobCosts } from '../../storage/job-costs'
import { keepMarket } from '../../storage/market'
import { putRecord } from '../../storage/record'
import { noteSubmission } from '../../storage/submissions'
import { partialEntry } from '../support/record'
import { World } from '../cli/outside'
import { ClientWorld, NOW, OFFER, SPEC, statusOf } from './world'

let world: ClientWorld
let treasury: TreasuryState | undefined

beforeEach(async () => {
  world = await ClientWorld.make()
  treasury = undefined
  world.client = {
    schedule: { getHandle: () => ({ describe: () => Promise.reject(named('ScheduleNotFoundError')) }) },
    workflow: {
      getHandle: (id: string) => ({
        query: async () => {
          if (treasury === undefined) throw new WorkflowNotFoundError('none', id, undefined)
          return treasury
        },
      }),
    },
  } as unknown as Client
})
afterEach(() => world.remove())

const named = (name: string): Error => Object.assign(new Error(name), { name })

/** Two hours on a machine. */
function attempt(number: number, changes: Partial<AttemptRecord>): AttemptRecord {
  const { type, place, priceMicroUsdPerHour } = OFFER
  return {
    ...statusOf().attempts[0]!,
    number,
    state: 'succeeded',
    realised: { capacityType: 'spot', type, place, priceMicroUsdPerHour },
    launchedAtMs: NOW - 2 * HOUR_MS,
    endedAtMs: NOW,
    costMicroUsd: microUsd(7.2),
    ...changes,
  }
}

/** A job that ended by the rules of an older version: its record has its end, and nothing has its costs. */
async function ended(
  id: string,
  {
    owner,
    attempts,
    month,
    tags,
  }: { owner: string; attempts: AttemptRecord[]; month?: string; tags?: OwnTags },
): Promise<void> {
  const spentMicroUsd = attempts.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0)
  const status: JobStatus = statusOf({
    id,
    owner,
    state: 'succeeded',
    attempts,
    attemptsTotal: attempts.length,
    spentMicroUsd,
  })
  const input = {
    jobId: id,
    spec: SPEC,
    bundle: null,
    owner,
    deployment: 'dep-0',
    submittedAtMs: NOW - 3 * HOUR_MS,
  }
  const market = await keepMarket(
    world.store,
    [
      {
        backend: 'local',
        capabilities: {} as never,
        offers: [OFFER, { ...OFFER, capacityType: 'on-demand', priceMicroUsdPerHour: microUsd(10) }],
      },
    ],
    { jobId: id, nowMs: NOW },
  )
  const result = { id, state: 'succeeded', costMicroUsd: spentMicroUsd, finishedAtMs: NOW }
  const entries: [string, unknown, number?][] = [
    ['submitted', input],
    ['resolved', { month, spec: { ...SPEC, tags } }],
    ['planned', { facts: { market }, outcome: { kind: 'wait' }, inputs: {} }, 1],
    ['finished', { status, result }],
  ]
  for (const [seq, [kind, data, number]] of entries.entries())
    await putRecord(
      world.store,
      id,
      partialEntry({ seq, atMs: NOW, kind: kind as never, summary: '', data, attempt: number }),
    )
  await noteSubmission(world.store, input)
}

describe('the costs of ended jobs', () => {
  beforeEach(async () => {
    const onDemand = { ...attempt(2, {}).realised!, capacityType: 'on-demand' as const }
    await ended('job-a', {
      owner: 'ada',
      attempts: [attempt(1, {}), attempt(2, { realised: onDemand, costMicroUsd: microUsd(20) })],
    })
    await ended('job-b', { owner: 'bob', attempts: [attempt(1, {})], tags: { team: 'ml' } })
    await ended('job-c', { owner: 'bob', attempts: [], month: '2026-10' })
  })

  it('are rebuilt from records, once, and added up by each group, with the price on demand', async () => {
    expect(await costsOf(world.context, { by: 'job' })).toMatchObject({ rows: [], total: { jobs: 0 } })
    expect(await rebuildCosts(world.context)).toEqual({ jobs: 3, added: 3, open: 0 })
    expect(await rebuildCosts(world.context)).toEqual({ jobs: 3, added: 0, open: 0 })
    const rows = async (by: CostGroup): Promise<unknown[]> =>
      (await costsOf(world.context, { by })).rows.map(({ key, jobs, costMicroUsd, listMicroUsd }) => [
        key,
        jobs,
        costMicroUsd / 1e6,
        listMicroUsd! / 1e6,
      ])
    expect(await rows('job')).toEqual([
      ['job-a', 1, 27.2, 40],
      ['job-b', 1, 7.2, 20],
      ['job-c', 1, 0, 0],
    ])
    expect(await rows('owner')).toEqual([
      ['ada', 1, 27.2, 40],
      ['bob', 2, 7.2, 20],
    ])
    expect(await rows('tag:team')).toEqual([
      ['none', 2, 27.2, 40],
      ['ml', 1, 7.2, 20],
    ])
    expect(await rows('tag:constructor')).toHaveLength(1)
    expect(await rows('backend')).toEqual([
      ['local', 2, 34.4, 60],
      ['none', 1, 0, 0],
    ])
    expect(await rows('capacity')).toEqual([
      ['on-demand', 1, 20, 20],
      ['spot', 2, 14.4, 40],
      ['none', 1, 0, 0],
    ])
    expect(await rows('month')).toEqual([
      ['2026-10', 1, 0, 0],
      ['2026-11', 2, 34.4, 60],
    ])
    const { total } = await costsOf(world.context, { by: 'job', month: '2026-11', owner: 'ada' })
    expect(total).toEqual({
      key: 'total',
      jobs: 1,
      costMicroUsd: microUsd(27.2),
      machineMs: 4 * HOUR_MS,
      listMicroUsd: microUsd(40),
    })
  })

  it('have an unknown price on demand without the offers of the plan', async () => {
    for await (const { key } of world.store.list('market/')) await world.store.delete(key)
    await rebuildCosts(world.context)
    const { rows, total } = await costsOf(world.context, { by: 'owner' })
    expect(rows.map(({ listMicroUsd }) => listMicroUsd)).toEqual([null, null])
    expect(total.listMicroUsd).toBeNull()
  })

  it('are the spending of a month without a budget, and join that of one with a budget', async () => {
    await rebuildCosts(world.context)
    const owners = async (): Promise<unknown[]> =>
      (await budgetOf(world.context, '2026-11')).owners.map(({ owner, spentMicroUsd }) => [
        owner,
        spentMicroUsd,
      ])
    expect(await owners()).toEqual([
      ['ada', microUsd(27.2)],
      ['bob', microUsd(7.2)],
    ])
    // A budget was set in the middle of the month.
    const state = { ...emptyTreasury('2026-11'), limits: { monthMicroUsd: microUsd(50), owners: {} } }
    treasury = settle(state, { jobId: 'job-d', owner: 'ada', spentMicroUsd: 5, isCertain: true })
    expect(await owners()).toEqual([
      ['ada', microUsd(27.2) + 5],
      ['bob', microUsd(7.2)],
    ])
    // Only reserved money counts against it.
    expect((await budgetOf(world.context, '2026-11')).total.leftMicroUsd).toBe(microUsd(50) - 5)
    expect(await readJobCosts(world.store, '2026-10')).toMatchObject({ costs: [{ jobId: 'job-c' }] })
  })

  it('are a table, a document, or CSV', async () => {
    const cli = new World()
    cli.environment['CRUCIBLE_STORE'] = world.context.config.home.storeUrl
    try {
      const table = await cli.run('costs', '--rebuild')
      expect(table.stderr).toBe('Added the costs of 3 jobs.\n')
      expect(table.stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
        'JOB | JOBS | MACHINE TIME | COST | ON DEMAND',
        'job-a | 1 | 4h | $27.20 | $40.00',
        'job-b | 1 | 2h | $7.20 | $20.00',
        'total 2026-11 | 2 | 6h | $34.40 | $60.00',
        '',
      ])
      const csv = await cli.run('costs', '--by', 'owner', '--csv')
      expect(csv.stdout).toBe(
        'owner,jobs,machine_hours,cost_usd,on_demand_usd\nada,1,4.0000,27.2,40\nbob,1,2.0000,7.2,20\n',
      )
      const document = JSON.parse((await cli.run('costs', '--json', '--month', '2026-09')).stdout) as object
      expect(document).toMatchObject({ by: 'job', month: '2026-09', rows: [] })
      expect((await cli.run('costs', '--month', 'May')).exitCode).toBe(2)
      expect((await cli.run('costs', '--csv', '--json')).exitCode).toBe(2)
    } finally {
      cli.remove()
    }
  })
})
