import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { BudgetQuestion } from '../../../core/money/treasury'
import { admit } from '../../../planner/plan/monthly-budget'

const none = { spentMicroUsd: 0, promisedMicroUsd: 0 }
const QUESTION: BudgetQuestion = {
  jobId: 'job-1',
  owner: 'ada',
  month: '2026-11',
  microUsd: microUsd(10),
  limits: { owners: {} },
  byOwner: none,
  byAll: none,
}

describe('a job that reserves its budget', () => {
  it('is admitted without limits, whatever others have spent', () => {
    const byAll = { spentMicroUsd: microUsd(1e6), promisedMicroUsd: microUsd(1e6) }
    expect(admit({ ...QUESTION, byOwner: byAll, byAll })).toEqual({ kind: 'promised' })
  })

  it('is admitted up to the last micro-dollar of a limit', () => {
    const limits = { monthMicroUsd: microUsd(30), owners: {} }
    const byAll = { spentMicroUsd: microUsd(15), promisedMicroUsd: microUsd(5) }
    expect(admit({ ...QUESTION, limits, byAll })).toEqual({ kind: 'promised' })
    const more = { ...byAll, promisedMicroUsd: byAll.promisedMicroUsd + 1 }
    expect(admit({ ...QUESTION, limits, byAll: more }).kind).toBe('refused')
  })

  it('is limited by its owner, whose own limit replaces the common one', () => {
    const byOwner = { spentMicroUsd: 0, promisedMicroUsd: microUsd(5) }
    const limits = { ownerMicroUsd: microUsd(14), owners: {} }
    expect(admit({ ...QUESTION, limits, byOwner })).toEqual({
      kind: 'refused',
      message:
        'The job may cost $10.00, and the budget of ada for 2026-11 has $9.00 left: of $14.00, $0.00 are spent and $5.00 are reserved for jobs and reservations.',
      hint: 'Give it a budget of at most $9.00, wait for a job to end (crucible budget shows them), or have the limit raised.',
    })
    const own = { ...limits, owners: { ada: microUsd(15) } }
    expect(admit({ ...QUESTION, limits: own, byOwner })).toEqual({ kind: 'promised' })
    const others = { ...limits, owners: { bob: microUsd(15) } }
    expect(admit({ ...QUESTION, limits: others, byOwner }).kind).toBe('refused')
  })

  it('reports nothing left, and not less, when more is committed than the limit', () => {
    const limits = { monthMicroUsd: microUsd(1), owners: {} }
    const byAll = { spentMicroUsd: microUsd(2), promisedMicroUsd: 0 }
    expect(admit({ ...QUESTION, limits, byAll })).toMatchObject({
      message: expect.stringContaining('the budget for 2026-11 has $0.00 left') as unknown,
    })
  })
})
