import { beforeEach, describe, expect, it } from '@jest/globals'
import { ScheduleNotFoundError } from '@temporalio/client'
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import type { Context } from '../../../client/context'
import { reserve } from '../../../client/reservation/reserve'
import { DAY_MS } from '../../../core/time/time'
import { putReservationEntry } from '../../../storage/reservations'
import { OWN_START } from '../own-start'
import { MemoryStore } from '../../backends/scripted/memory-store'

const NOW = Date.UTC(2027, 0, 3)
const ID = 'res-a'
const REQUEST = {
  id: ID,
  wish: { backend: 'ec2', kind: 'prepaid', types: ['p5'], count: 4, durationMs: DAY_MS, places: undefined },
  rule: { searchUntilAtMs: undefined },
} as const

/** Of the workflow with this id; undefined if Temporal has none. */
let workflow: string | undefined
let context: Context

beforeEach(() => {
  workflow = undefined
  const store = new MemoryStore(() => NOW)
  const describeSchedule = (): Promise<never> => Promise.reject(new ScheduleNotFoundError('none', 'gc'))
  const client = {
    ...OWN_START,
    schedule: { getHandle: () => ({ describe: describeSchedule }) },
    workflow: {
      getHandle: () => ({ describe: async () => ({ status: { name: workflow } }) }),
      start: async () => {
        if (workflow !== undefined)
          throw new WorkflowExecutionAlreadyStartedError('exists', `reservation/${ID}`, 'reserveCapacity')
        workflow = 'RUNNING'
      },
    },
  }
  const config = { owner: 'ada', temporal: { connection: {} } }
  context = {
    store,
    config,
    now: () => NOW,
    clock: { check: () => {} },
    compareClocks: async () => {},
    temporal: async () => client,
  } as unknown as Context
})

describe('a reservation that is asked for again', () => {
  it('is the same while its workflow runs, or is paused', async () => {
    expect(await reserve(context, REQUEST)).toMatchObject({ id: ID, isNew: true })
    expect(await reserve(context, REQUEST)).toMatchObject({ id: ID, isNew: false })
    workflow = 'PAUSED'
    expect(await reserve(context, REQUEST)).toMatchObject({ id: ID, isNew: false })
  })

  it.each(['TERMINATED', 'FAILED'])('is refused with the remedy if its workflow is %s', async (status) => {
    await reserve(context, REQUEST)
    workflow = status
    await expect(reserve(context, REQUEST)).rejects.toMatchObject({
      kind: 'failed',
      message: expect.stringMatching(/was terminated by hand: it is not watched/) as unknown,
      hint: expect.stringMatching(/temporal workflow reset --workflow-id reservation\/res-a /) as unknown,
    })
  })

  it.each([undefined, 'COMPLETED'])(
    'is over once its record says so, with its workflow %s',
    async (status) => {
      await reserve(context, REQUEST)
      workflow = status
      await putReservationEntry(context.store, ID, {
        seq: 4,
        atMs: NOW,
        kind: 'over',
        summary: 'Over.',
        data: {},
      })
      expect(await reserve(context, REQUEST)).toMatchObject({ id: ID, isNew: false, isOver: true })
      expect(workflow).toBe(status)
    },
  )
})
