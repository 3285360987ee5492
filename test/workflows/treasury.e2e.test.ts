import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { BudgetAnswer, BudgetQuestion, TreasuryState } from '../../core/money/treasury'
import { monthOf } from '../../core/money/treasury'
import { formatUsd, microUsd } from '../../core/money/money'
import type { PlanReport } from '../../core/job/plan'
import { ORCHESTRATOR_QUEUE } from '../../core/queues'
import { patient } from '../support/patience'
import { SPEC } from '../support/spec'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { eventually, TEST_LIMIT_MS } from './looks'
import { admit } from '../../planner/plan/monthly-budget'
import { ensureDeployment } from '../../storage/deployment'
import { sweep } from '../clouds/cloud'
import { DEPLOYMENT_ID, LONG, SPOT, statusOf, worldsOn, type Deployment, type JobHandle } from './harness'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const SWEEP = { deployment: DEPLOYMENT_ID, backends: [], graceMs: 100 }
const MONTHLY = { monthMicroUsd: microUsd(1_000), ownerMicroUsd: microUsd(700), owners: {} }
const stateOf = ({ client }: Deployment): Promise<TreasuryState> =>
  client.workflow.getHandle(`treasury/${monthOf(Date.now())}`).query<TreasuryState>('treasury')

async function failureOf(job: JobHandle): Promise<string> {
  return job.result().then(
    () => 'none',
    (error: { cause?: Error }) => error.cause?.message ?? '',
  )
}

/** A policy that fails for one job as long as the test wants, and is the product's own for the others. */
class FailingPolicy {
  failures = 0
  isFailing = true

  readonly admitBudget = async (question: BudgetQuestion): Promise<BudgetAnswer> => {
    if (!this.isFailing || question.jobId !== 'job-a') return admit(question)
    this.failures += 1
    throw new Error('the policy is broken')
  }
}

const failing = new FailingPolicy()

describe('a deployment with budgets for months and owners', () => {
  it.concurrent(
    'promises each job its budget, refuses what cannot fit, and takes back what was not spent',
    inWorld(
      { monthly: MONTHLY, behave: ({ jobId }) => (jobId === 'job-a' ? LONG : {}) },
      async (deployment) => {
        const first = await deployment.submit(
          { budgetMicroUsd: microUsd(500) },
          { jobId: 'job-a', owner: 'ada' },
        )
        await eventually(async () => (await statusOf(first)).state === 'running')
        const second = await deployment.submit(
          { budgetMicroUsd: microUsd(300) },
          { jobId: 'job-b', owner: 'ada' },
        )
        expect(await failureOf(second)).toMatch(/may cost \$300.00, and the budget of ada .* \$200.00 left/)
        const extend = (usd: number): Promise<unknown> =>
          first.executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(usd) }] })
        await expect(extend(701)).rejects.toMatchObject({
          cause: { message: expect.stringContaining('the budget of ada') as unknown },
        })
        expect((await statusOf(first)).budgetMicroUsd).toBe(microUsd(500))
        await extend(700)
        expect((await stateOf(deployment)).promised['job-a']).toMatchObject({ microUsd: microUsd(700) })
        await first.cancel()
        await failureOf(first)
        const { spentMicroUsd } = await statusOf(first)
        expect(spentMicroUsd).toBeGreaterThan(0)
        expect(await stateOf(deployment)).toMatchObject({ promised: {}, spent: { ada: spentMicroUsd } })
      },
    ),
  )

  it.concurrent(
    'keeps a job waiting whose budget cannot be checked, and serves the others meanwhile',
    inWorld(
      { monthly: MONTHLY, admitBudget: failing.admitBudget, wares: [{ ...SPOT, stock: 0 }] },
      async (deployment) => {
        const first = await deployment.submit({ budgetMicroUsd: microUsd(300) }, { jobId: 'job-a' })
        // Each update is tried once: the job has asked again.
        await eventually(async () => failing.failures > 1)
        const second = await deployment.submit({ budgetMicroUsd: microUsd(300) }, { jobId: 'job-b' })
        await eventually(async () => (await statusOf(second)).reason === 'waiting-for-capacity')
        expect(Object.keys((await stateOf(deployment)).promised)).toEqual(['job-b'])
        failing.isFailing = false
        await eventually(async () => (await statusOf(first)).reason === 'waiting-for-capacity')
        expect(Object.keys((await stateOf(deployment)).promised).sort()).toEqual(['job-a', 'job-b'])
      },
    ),
  )

  it.concurrent(
    'promises to one job what does not suffice for two, however long each decision takes',
    inWorld(
      {
        monthly: MONTHLY,
        admitBudget: (question) => new Promise((resolve) => setTimeout(() => resolve(admit(question)), 300)),
        wares: [{ ...SPOT, stock: 0 }],
      },
      async (deployment) => {
        const jobs = await Promise.all(
          ['job-a', 'job-b', 'job-c'].map((jobId) =>
            deployment.submit({ budgetMicroUsd: microUsd(600) }, { jobId, owner: jobId }),
          ),
        )
        await eventually(async () => {
          const states = await Promise.all(jobs.map(async (job) => (await statusOf(job)).reason))
          return states.filter((reason) => reason === 'quota').length === 2
        })
        expect(Object.keys((await stateOf(deployment)).promised)).toHaveLength(1)
      },
    ),
  )

  it.concurrent(
    'takes back what was promised to a job that was ended by hand, once somebody needs it',
    inWorld({ monthly: MONTHLY, wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const first = await deployment.submit({ budgetMicroUsd: microUsd(600) }, { jobId: 'job-a' })
      await eventually(async () => (await statusOf(first)).reason === 'waiting-for-capacity')
      await first.terminate('by hand')
      const second = await deployment.submit({ budgetMicroUsd: microUsd(600) }, { jobId: 'job-b' })
      await eventually(async () => (await statusOf(second)).reason === 'waiting-for-capacity')
      expect(Object.keys((await stateOf(deployment)).promised).sort()).toEqual(['job-b'])
    }),
  )

  it.concurrent(
    'takes it back with the garbage as well, and leaves their promises to jobs that run',
    inWorld({ monthly: MONTHLY, wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      await ensureDeployment(deployment.store, () => DEPLOYMENT_ID)
      const [lost] = await Promise.all(
        ['job-lost', 'job-well'].map(async (jobId) => {
          const job = await deployment.submit({ budgetMicroUsd: microUsd(300) }, { jobId, owner: 'ada' })
          await eventually(async () => (await statusOf(job)).reason === 'waiting-for-capacity')
          return job
        }),
      )
      await lost!.terminate('by hand')
      const collect = async (isDryRun: boolean) =>
        (await sweep(deployment.client, { ...SWEEP, isDryRun })).verdicts
      const told = {
        kind: 'promise',
        id: 'job-lost',
        place: monthOf(Date.now()),
        sinceMs: expect.any(Number),
      }
      expect(await collect(true)).toMatchObject([{ ...told, action: 'would-end' }])
      expect(Object.keys((await stateOf(deployment)).promised).sort()).toEqual(['job-lost', 'job-well'])
      expect(await collect(false)).toMatchObject([{ ...told, action: 'ended' }])
      expect(await stateOf(deployment)).toMatchObject({
        promised: { 'job-well': { owner: 'ada' } },
        spent: { ada: 0 },
      })
      expect(await collect(false)).toEqual([])
    }),
  )

  it.concurrent(
    'wants a budget of every job, and says how much the plan expects',
    inWorld({ monthly: MONTHLY }, async (deployment) => {
      const durationMs = 3_600_000
      const plan = await deployment.client.activity.execute<PlanReport>('previewPlan', {
        id: 'plan/treasury',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{ spec: { ...SPEC, durationMs } }],
        startToCloseTimeout: patient(10_000),
      })
      const expected = formatUsd(plan.placements[0]!.costMicroUsd)
      const job = await deployment.submit({ durationMs })
      expect(await failureOf(job)).toMatch(/every job needs a budget. Set one, such as budget: \$\d+/)
      expect(await failureOf(job)).toMatch(new RegExp(`the plan expects it to cost \\${expected}\\.$`))
    }),
  )
})
