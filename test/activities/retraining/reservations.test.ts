import { describe, expect, it } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createRetrainingActivities, type RetrainingDeps } from '../../../activities/retraining/activities'
import type { ReservationNotice, ReservationState } from '../../../core/reserving'

/** What a run hears of a reservation whose workflow has this status, and that last said this state. */
function noticeOf(status: string, state: ReservationState): Promise<ReservationNotice> {
  const last = { state, message: 'Its last word.', spentMicroUsd: 5 }
  const handle = { describe: async () => ({ status: { name: status } }), query: async () => last }
  const client = {
    withAbortSignal: (_: unknown, ask: () => unknown) => ask(),
    workflow: { getHandle: () => handle },
  }
  const activities = createRetrainingActivities({ client } as unknown as RetrainingDeps)
  return new MockActivityEnvironment().run(() => activities.readReservation({ reservationId: 'res-1' }))
}

describe('a reservation that another history of the run has asked for', () => {
  it.each([
    ...([
      ['RUNNING', 'searching'],
      ['PAUSED', 'searching'],
      ['PAUSED', 'scheduled'],
      ['COMPLETED', 'rejected'],
    ] as const),
  ])('is what it last said while it is %s and %s', async (status, state) => {
    expect(await noticeOf(status, state)).toEqual({
      ...{ id: 'res-1', state, message: 'Its last word.', spentMicroUsd: 5 },
    })
  })

  it.each(['TERMINATED', 'CANCELLED'])('is not available once its workflow is %s', async (status) => {
    expect(await noticeOf(status, 'searching')).toEqual({
      ...{ id: 'res-1', state: 'unavailable', message: 'Its workflow was ended by hand.', spentMicroUsd: 5 },
    })
  })
})
