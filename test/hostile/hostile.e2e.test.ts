import { describe } from '@jest/globals'
import { MINUTE_MS } from '../../core/time/time'
import { itHolds } from '../kit/jest'
import { HOSTILE_JOB, whyNotHostile } from './harness'

const asRoot = whyNotHostile() === undefined ? describe : describe.skip

asRoot('a job that does everything hostile at once', () => {
  itHolds('gets nothing, delays no beat, harms no neighbour and leaves nothing: %s', HOSTILE_JOB, {
    cases: [{ name: 'everything at once', again: [] }],
    limitMs: 10 * MINUTE_MS,
  })
})
