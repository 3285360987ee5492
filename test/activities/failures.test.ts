import { describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity'
import type * as common from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'
import { failureInterceptor } from '../../activities/failures'
import { BackendError } from '../../backends/errors'
import { FAILURE_CLASSES, failureFrom, type Failure, type FailureClass } from '../../core/failure'
import { PERSISTENT_ACTIVITIES } from '../../core/persistent-activities'
import { StoreError } from '../../storage/store'

/** What Temporal does about each class, for every existing class. */
const IS_RETRIED: Readonly<Record<FailureClass, boolean>> = {
  throttled: true,
  transient: true,
  capacity: false,
  quota: false,
  unreachable: false,
  interrupted: false,
  workload: false,
  expired: false,
  auth: false,
  invalid: false,
  damaged: false,
  unclassified: true,
}

/** How the interceptor passes on what an activity threw. */
async function passedOn(thrown: unknown, activityType = 'launch'): Promise<unknown> {
  const next = async (): Promise<unknown> => {
    throw thrown
  }
  return new MockActivityEnvironment({ activityType }).run(() =>
    failureInterceptor.execute({}, next).catch((error: unknown) => error),
  )
}

describe('what went wrong below', () => {
  it.each(FAILURE_CLASSES)('crosses Temporal with all that is known of it: %s', async (failureClass) => {
    const failure: Failure = { class: failureClass, message: 'no', hint: 'do this', code: 'Raw.Code' }
    const error = (await passedOn(new BackendError(failure))) as ApplicationFailure
    expect(error).toBeInstanceOf(ApplicationFailure)
    expect(error).toMatchObject({ type: failureClass, message: 'no', details: [failure] })
    expect(error.nonRetryable).toBe(!IS_RETRIED[failureClass])
    expect(failureFrom(error)).toEqual(failure)
  })

  it.each(FAILURE_CLASSES)('never ends what a job cannot go on without: %s', async (failureClass) => {
    for (const name of PERSISTENT_ACTIVITIES) {
      const error = await passedOn(new BackendError({ class: failureClass, message: 'no' }), name)
      expect(error).toMatchObject({ type: failureClass, nonRetryable: false })
    }
  })

  it('is tried again no sooner than the other side asked', async () => {
    const failure: Failure = { class: 'throttled', message: 'slow down', retryAfterMs: 7_000 }
    expect(await passedOn(new BackendError(failure))).toHaveProperty('nextRetryDelay', 7_000)
    const other = new BackendError({ class: 'throttled', message: '' })
    expect(await passedOn(other)).toHaveProperty('nextRetryDelay', undefined)
  })

  it('is nothing to warn of when it only takes its time', async () => {
    const categoryOf = async (failure: Failure): Promise<unknown> =>
      ((await passedOn(new BackendError(failure))) as ApplicationFailure).category
    expect(await categoryOf({ class: 'transient', message: 'not yet', retryAfterMs: 500 })).toBe('BENIGN')
    expect(await categoryOf({ class: 'transient', message: 'no answer' })).not.toBe('BENIGN')
    expect(await categoryOf({ class: 'throttled', message: 'slow down', retryAfterMs: 500 })).not.toBe(
      'BENIGN',
    )
  })

  it('is tried again whatever the store refuses, because that is no fact about the job', async () => {
    const away = new StoreError('no answer', { isTransient: true, code: 'EIO' })
    expect(await passedOn(away)).toMatchObject({
      type: 'transient',
      nonRetryable: false,
      details: [{ class: 'transient', message: 'no answer', code: 'EIO' }],
    })
    const wrong = new StoreError('bad key', { isTransient: false })
    expect(await passedOn(wrong)).toMatchObject({ type: 'transient', nonRetryable: false })
  })

  it('keeps its raw code if it has no class', async () => {
    const error = Object.assign(new Error('boom'), { code: 'EWHAT' })
    expect(await passedOn(error)).toMatchObject({
      type: 'unclassified',
      details: [{ class: 'unclassified', message: 'boom', code: 'EWHAT' }],
      cause: error,
    })
    expect(await passedOn('just text')).toMatchObject({ type: 'unclassified', message: 'just text' })
  })
})

describe("what is Temporal's own", () => {
  const copy = secondCopyOfSdk()

  it('is recognised although its class is another', () => {
    expect(copy.ApplicationFailure).not.toBe(ApplicationFailure)
  })

  it.each([
    ['a failure', ApplicationFailure.retryable('later', 'capacity')],
    ['a cancellation', new CancelledFailure('CANCELLED')],
    ['a failure of another copy of the SDK', copy.ApplicationFailure.retryable('later', 'capacity')],
    ['a cancellation of another copy', new copy.CancelledFailure('CANCELLED')],
  ])('passes as it is: %s', async (_name, thrown) => {
    expect(await passedOn(thrown)).toBe(thrown)
  })

  it('is not in the way of an answer', async () => {
    const add = (): Promise<unknown> => failureInterceptor.execute(1, (input) => Promise.resolve(input + 1))
    expect(await new MockActivityEnvironment().run(add)).toBe(2)
  })
})

/** All files share the packages; by its path Jest loads one for this file alone. */
function secondCopyOfSdk(): typeof common {
  return jest.requireActual<typeof common>(require.resolve('@temporalio/common'))
}
