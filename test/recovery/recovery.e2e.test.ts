import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { CloudDeployment } from './deployment'

jest.setTimeout(180_000)

let at: TestConnection
let d: CloudDeployment

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  d = await CloudDeployment.start(at, {
    settings: {
      ...{ CRUCIBLE_BEAT: '0.5s', CRUCIBLE_OBSERVE: '0.3s', CRUCIBLE_GONE_CONFIRM: '0.6s' },
      ...{ CRUCIBLE_CHECKPOINT_QUIET: '0.3s', CRUCIBLE_DRAIN: '6s', CRUCIBLE_POWER_OFF: '2s' },
    },
  })
})
afterAll(async () => {
  await d?.stop()
  await at.close()
})

describe('a machine that is taken back', () => {
  it('with a notice costs no step, and the recovery is told part by part', async () => {
    const job = await d.submit()
    await d.atStep(job, 30)
    d.cloud.interrupt(d.machineOf(job), { noticeMs: 10_000 })
    const view = await d.ended(job)
    console.log(JSON.stringify(view, null, 1))
    expect(view.state).toBe('succeeded')
  })
})
