import { describe, expect, it } from '@jest/globals'
import { troubleOf } from '../../../client/job/workflow-state'

const stuck = (attempt: number): Parameters<typeof troubleOf>[0] => ({
  workflowId: 'job/a/1',
  raw: { pendingWorkflowTask: { attempt } },
})

describe('the trouble of a workflow that no worker can continue', () => {
  it('names the command that ends it', () => {
    expect(troubleOf(stuck(4))?.message).toContain('`temporal workflow terminate -w job/a/1`')
  })

  it('is none while its task may only have lost a worker', () => {
    expect(troubleOf(stuck(3))).toBeNull()
  })
})
