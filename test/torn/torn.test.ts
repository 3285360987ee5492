import { describe, expect } from '@jest/globals'
import { chunked } from '../kit/harness'
import { itHolds } from '../kit/jest'
import { IS_SELECTION } from '../support/selection'
import { TORN } from './harness'

/** `npm run proof -- torn` lives through ten thousand. */
const CASES = IS_SELECTION ? 75 : 1_000

describe('every attempt', () => {
  const seeds = Array.from({ length: CASES }, (_, index) => index + 1)
  itHolds(
    'begins with the newest good checkpoint, byte by byte, whatever happened to the uploads: %s',
    TORN,
    {
      cases: chunked(seeds, CASES),
      limitMs: 300_000,
      also: (report) => {
        const counts = new Map(Object.entries(report.counts))
        // What would make the sentence above say nothing, had it not happened.
        for (const what of ['restored', 'deaths', 'deleted', 'killed in the midst of saving', 'arrived late'])
          expect([what, counts.get(what)! > CASES / 25]).toEqual([what, true])
        for (const what of ['lost', 'unheard', 'repeated', 'delayed', 'torn'])
          expect([what, counts.get(what)! > CASES / 4]).toEqual([what, true])
        for (const what of ['without a manifest passed over', 'damaged passed over'])
          expect([what, counts.get(what)! > CASES / 50]).toEqual([what, true])
      },
    },
  )
})
