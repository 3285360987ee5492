import { describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError } from '@temporalio/client'
import { ApplicationFailure } from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createRetrainingActivities, type RetrainingDeps } from '../../../activities/retraining/activities'
import type { ReservationNotice, ReservationState } from '../../../core/reservation/reserving'
import type { RunTask } from '../../../core/retraining/run'

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
    ['RUNNING', 'searching'],
    ['PAUSED', 'searching'],
    ['PAUSED', 'scheduled'],
    ['COMPLETED', 'rejected'],
  ] as const)('is what it last said while it is %s and %s', async (status, state) => {
    expect(await noticeOf(status, state)).toEqual({
      id: 'res-1',
      state,
      message: 'Its last word.',
      spentMicroUsd: 5,
    })
  })

  it.each(['TERMINATED', 'CANCELLED'])('is not available once its workflow is %s', async (status) => {
    expect(await noticeOf(status, 'searching')).toEqual({
      id: 'res-1',
      state: 'unavailable',
      message: 'Its workflow was terminated by hand.',
      spentMicroUsd: 5,
    })
  })

  it('is not available if the server does not know its workflow, and is asked again after other trouble', async () => {
    const read = (error: Error): Promise<ReservationNotice> =>
      activitiesOf({ describe: () => Promise.reject(error) }).read()
    expect(await read(new WorkflowNotFoundError('not found', 'id', undefined))).toEqual({
      id: 'res-1',
      spentMicroUsd: 0,
      state: 'unavailable',
      message: 'Its workflow no longer exists.',
    })
    await expect(read(new Error('no answer'))).rejects.toThrow('no answer')
  })
})

const TASK = {
  input: { schedule: 'ranker', owner: 'ada' },
  run: { id: '2027-01-04' },
  recordSeq: 3,
  reservationId: 'res-1',
} as unknown as RunTask & { reservationId: string }

function activitiesOf(handle: object) {
  const client = {
    withAbortSignal: (_: unknown, ask: () => unknown) => ask(),
    workflow: { getHandle: () => ({ query: async () => ({}), ...handle }) },
  }
  const activities = createRetrainingActivities({ client } as unknown as RetrainingDeps)
  const environment = new MockActivityEnvironment()
  return {
    environment,
    read: (): Promise<ReservationNotice> =>
      environment.run(() => activities.readReservation({ reservationId: 'res-1' })),
    release: (kind: 'prepaid' | 'hourly'): Promise<{ message: string }> =>
      environment.run(() => activities.releaseCapacity({ ...TASK, kind })),
  }
}

describe('the capacity of a run that ends', () => {
  it('is given back if it is hourly, with one id for a repeated activity, and for no charge', async () => {
    const updates: unknown[] = []
    const { release } = activitiesOf({ executeUpdate: async (...update: unknown[]) => updates.push(update) })
    expect(await release('hourly')).toEqual({ message: 'The reservation res-1 was released.' })
    expect(updates).toEqual([
      [
        'release',
        { args: [{ by: 'retrain/ranker', chargeMaxMicroUsd: 0 }], updateId: 'release/2027-01-04/3' },
      ],
    ])
  })

  it('stays for other jobs of its owner if it is prepaid', async () => {
    const { release } = activitiesOf({})
    expect((await release('prepaid')).message).toBe(
      'The rest of the reservation res-1 stays for other jobs of ada: they ask for reserved capacity in `backends`.',
    )
  })

  it.each([
    ['what is refused is not asked again', new Error('Nothing is held.'), 'invalid'],
    ['what may pass is', ApplicationFailure.create({ type: 'transient', message: 'Busy.' }), 'transient'],
  ])('reports why it is not given back: %s', async (_, error, failureClass) => {
    const { release } = activitiesOf({ executeUpdate: () => Promise.reject(error) })
    await expect(release('hourly')).rejects.toMatchObject({
      failure: { class: failureClass, message: error.message },
    })
  })

  it('is asked for again if its answer was not awaited, as when the worker shuts down', async () => {
    const { release, environment } = activitiesOf({
      executeUpdate: () => {
        environment.cancel()
        return Promise.reject(new Error('aborted'))
      },
    })
    await expect(release('hourly')).rejects.toMatchObject({ message: 'The wait for the answer was aborted.' })
  })
})
