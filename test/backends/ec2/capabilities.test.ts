import { expect, it } from '@jest/globals'
import { EMPTY_LEDGER } from '../../../core/job/ledger'
import type { PlanInput } from '../../../core/activities'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { makeOrder } from '../../../planner/plan/order'
import { makePlan } from '../../../planner/plan/plan'
import { SPEC } from '../../support/spec'
import { patiently } from '../harness'
import { Ec2Harness } from './harness'

it('a machine that the provider may take back reads its notice in its metadata: spot and reserved alike', async () => {
  const h = await Ec2Harness.onPaper({ way: 'block' })
  const { backend } = h
  const nowMs = h.clock.nowMs()
  const input: PlanInput = {
    jobId: 'job-1',
    deployment: 'dep-1',
    recordSeq: 2,
    attempt: 1,
    bundle: null,
    avoid: [],
    resolved: {
      spec: SPEC,
      timing: DEFAULT_TIMING,
      runnerSha256: '',
      storeUrl: '',
      policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
    },
    ledger: EMPTY_LEDGER,
  }
  const offers = await backend.offers({}, patiently())
  const noticeOf = (capacityType: string): unknown => {
    const backends = [{ backend: 'ec2', capacityType: capacityType as 'spot' }]
    const answers = [{ backend: 'ec2', capabilities: backend.capabilities, offers }]
    const spec = { ...SPEC, isInterruptible: true, backends }
    const wish = { spec, timing: DEFAULT_TIMING, answers, silentBackends: [], avoid: [], nowMs }
    return makeOrder(makePlan(wish), input, answers).runner.notice
  }
  expect(['spot', 'reserved', 'on-demand'].map(noticeOf)).toEqual([
    { kind: 'instance-metadata' },
    { kind: 'instance-metadata' },
    { kind: 'none' },
  ])
  await h.dispose()
})
