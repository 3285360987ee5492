import { describe, expect, it } from '@jest/globals'
import { troubleOf } from '../../../client/job/workflow-state'

const stuck = (attempt: number): Parameters<typeof troubleOf>[0] => ({
  workflowId: 'job/a/1',
  raw: { pendingWorkflowTask: { attempt } },
})

describe('the trouble of a workflow that no worker can continue', () => {
  it('names the command that ends it', () => {
    expect(troubleOf(stuck(4))?.message).toContain('`temporal workflow terminate --workflow-id job/a/1`')
  })

  it('is not reported before the fourth try of its task, because a worker may have been lost', () => {
    expect(troubleOf(stuck(3))).toBeNull()
  })
})
