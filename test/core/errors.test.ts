import { expect, it, jest } from '@jest/globals'
import { ApplicationFailure, DefaultFailureConverter, defaultPayloadConverter } from '@temporalio/common'
import { BackendError } from '../../backends/errors'
import { toCrucibleError } from '../../client/errors'
import { isCoded } from '../../core/errors'
import { carrying, FAILURE_CLASSES, failureFrom } from '../../core/failure'
import type * as files from '../../storage/store'
import { StoreError } from '../../storage/store'

it.each(FAILURE_CLASSES)('a failure of class %s crosses Temporal whole', (failureClass) => {
  const failure = {
    class: failureClass,
    message: 'It broke.',
    hint: 'Fix it.',
    code: 'BROKEN_1',
    retryAfterMs: 1500,
  }
  const thrown = ApplicationFailure.create(carrying(failure))
  const converter = new DefaultFailureConverter()
  const arrived = converter.failureToError(
    converter.errorToFailure(thrown, defaultPayloadConverter),
    defaultPayloadConverter,
  )
  expect(failureFrom(arrived)).toEqual(failure)
  expect(thrown.nextRetryDelay).toBe(1500)
})

it('an error of a second copy of its module is recognised by its code', () => {
  jest.resetModules()
  const copy = jest.requireActual<typeof files>('../../storage/store')
  expect(copy.StoreError).not.toBe(StoreError)
  const error = new copy.StoreError('no answer', { isTransient: true })
  expect(error instanceof StoreError).toBe(false)
  expect(isCoded(error, 'store')).toBe(true)
  expect(isCoded(error, 'document')).toBe(false)
})

it.each([undefined, null, 'text', new Error('text'), { name: 'StoreError' }])('%p has no code', (thrown) => {
  expect(isCoded(thrown, 'store')).toBe(false)
})

it('subclasses keep their code, whatever their name', () => {
  class Wrapped extends BackendError {}
  const error = new Wrapped({ class: 'quota', message: 'No more of it.', hint: 'Ask for more.' })
  expect(toCrucibleError(error)).toMatchObject({ kind: 'capacity', hint: 'Ask for more.' })
  class LateStoreError extends StoreError {}
  expect(toCrucibleError(new LateStoreError('It is late.', { isTransient: true })).kind).toBe('unavailable')
})
