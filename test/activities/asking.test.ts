import { expect, it } from '@jest/globals'
import { answerOf } from '../../activities/plan/asking'
import type { Backend } from '../../backends/backend'
import { BackendError } from '../../backends/errors'

const BLIND = new BackendError({ class: 'auth', message: 'No access.', hint: 'Renew the keys.' })

/** A backend without offers, in whose provider these places did not answer. */
const blindIn = (places: string[]): Backend =>
  ({
    name: 'here',
    offers: async (_request, { unseen }) => {
      for (const place of places) unseen?.(place, BLIND)
      return []
    },
  }) as Partial<Backend> as Backend

it.each([[[]], [['us-east-1']], [['us-east-1', 'eu-west-1']]])(
  'an answer names the places of the provider that did not answer: %j',
  async (places) => {
    const { silentPlaces } = await answerOf(blindIn(places), { request: {} }, new AbortController().signal)
    expect(silentPlaces ?? []).toEqual(
      places.map((place) => ({ place, reason: 'No access. Renew the keys' })),
    )
  },
)
