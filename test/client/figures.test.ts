import { describe, expect, it } from '@jest/globals'
import { joinView } from '../../client/job/view'
import { render } from '../../cli/commands/job/show'
import { Output } from '../../cli/kit/output'
import { showPlan } from '../../cli/job/planning'
import { showDecisions } from '../../cli/job/why-text'
import type { PlanInput } from '../../core/activities'
import { attemptOf } from '../../core/job/attempt-record'
import { expectedInWords } from '../../core/job/forecast'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import { formatUsd } from '../../core/money/money'
import { excerptOf, reportOf, type Plan } from '../../core/job/plan'
import { formatDuration, HOUR_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { makeOrder } from '../../planner/plan/order'
import { planFor } from '../../planner/policy/outcome'
import { makePlan } from '../../planner/plan/plan'
import { explainPlan } from '../../planner/why/why'
import { storePriceOf } from '../../storage/store-price'
import { jobDetails } from '../../workflows/job/details'
import { Paper } from '../cli/outside'
import { answer, NOW_MS, offer, request, SPEC } from '../planner/wishes'
import { JOB, statusOf } from './world'

const spec = { ...SPEC, durationMs: 7 * HOUR_MS }
const spot = offer({ capacityType: 'spot', interruptionsPerHour: 0.3, billedInStepsOfMs: 60_000 })
const storePrice = storePriceOf('s3://jobs')!
const asked = request([spot], { spec, isFirst: true, storePrice })
const plan = makePlan(asked)
const best = plan.placements[0]!
const input: PlanInput = {
  jobId: JOB,
  deployment: 'd',
  recordSeq: 2,
  attempt: 1,
  bundle: null,
  avoid: [],
  ledger: EMPTY_LEDGER,
  resolved: {
    spec,
    timing: DEFAULT_TIMING,
    runnerSha256: '',
    storeUrl: 's3://jobs',
    policy: { failuresMax: 0, interruptionsMax: 9, unclassifiedMax: 3 },
  },
}
const order = makeOrder(plan, input, [answer([spot])])
const usd = formatUsd(best.costMicroUsd)

function printed(show: (out: Output) => void): string {
  const stdout = new Paper()
  show(new Output({ stdout, stderr: new Paper(), isJson: false, isColourWanted: false }))
  return stdout.text
}

describe('the figures of a job at the instant of its plan', () => {
  const status = statusOf({ attempts: [attemptOf(order)], state: 'running', reason: 'under-way' })

  it('are the same in plan and submit, whose table is one, and in the reasons on record', () => {
    expect(
      printed((out) => showPlan(out, reportOf(plan, { kind: 'place' }, []), { nowMs: NOW_MS })),
    ).toContain(` ${usd} `)
    expect(best.reasons[0]).toContain(`about ${usd} in`)
    // As it is read back from the record.
    const kept = JSON.parse(JSON.stringify(plan)) as Plan
    expect(kept.placements[0]).toEqual(best)
    expect(makePlan(asked)).toEqual(plan)
  })

  it('are those of the order, and of the page in the Temporal UI', () => {
    const { costMicroUsd, durationMs, forecast } = best
    expect(order.expected).toEqual({ costMicroUsd, durationMs, forecast })
    const words = expectedInWords(order.expected!)
    expect(words).toContain(usd)
    expect(jobDetails(status).replaceAll('`', '')).toContain(`expected of attempt 1: ${words}`)
  })

  it('are those of why, in its table and as the sum of its arithmetic', () => {
    const answers = [answer([spot])]
    const facts = { nowMs: NOW_MS, silentBackends: [], inputSizes: [], storePrice }
    const { outcome } = planFor(input, { ...facts, answers })
    const data = { inputs: input, facts: { ...facts, market: [] }, plan: excerptOf(plan), outcome }
    const entry = { seq: 2, atMs: NOW_MS, kind: 'planned' as const, summary: '', data }
    const explained = explainPlan({ number: 1, entry, answers, submittedAtMs: NOW_MS, isSearched: false })
    const job = { id: JOB, name: 'train', rules: '', decisions: [explained], ended: null }
    const text = printed((out) => showDecisions(out, job))
    expect(explained).toMatchObject({ replay: 'same', chosen: { costMicroUsd: best.costMicroUsd } })
    expect(text).toContain(`about ${usd} in`)
    expect(text).toMatch(new RegExp(`here +spot +small .* \\${usd} `))
    expect(text).toMatch(/storage and requests .* \$0\.\d\d/)
    expect(text).toContain('charges as S3 Standard in us-east-1')
    expect(text).toMatch(new RegExp(`in total +${formatDuration(best.durationMs)} +\\${usd}`))
  })

  it('are those of show, which has spent nothing yet', () => {
    const view = joinView({
      status,
      spec,
      newest: { attempt: 1, beat: undefined, machine: undefined },
      endedAtMs: undefined,
      nowMs: NOW_MS,
      isLive: true,
      checkpoints: [],
      recoveries: [],
      uiUrl: undefined,
    })
    expect(view.cost).toMatchObject({
      spentMicroUsd: 0,
      estimatedRemainingMicroUsd: best.costMicroUsd,
      remainingBasis: 'forecast',
    })
    expect(printed((out) => render(out, view, NOW_MS))).toContain(`$0.00, about ${usd} left as planned`)
  })
})
