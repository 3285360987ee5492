import { expect, it } from '@jest/globals'
import { runCases } from './run'
import { IS_SELECTION } from '../support/selection'

/** `npm run torn` lives through ten thousand. */
const CASES = IS_SELECTION ? 75 : 1_000

it('every attempt begins with the newest good checkpoint, byte by byte, whatever happened to the uploads', async () => {
  const { bad, counts } = await runCases(1, CASES)
  expect(bad).toEqual([])
  // What would make the sentence above say nothing, had it not happened.
  for (const what of ['restored', 'deaths', 'deleted', 'killed in the midst of saving', 'arrived late'])
    expect([what, counts[what]! > CASES / 25]).toEqual([what, true])
  for (const what of ['lost', 'unheard', 'repeated', 'delayed', 'torn'])
    expect([what, counts[what]! > CASES / 4]).toEqual([what, true])
  for (const what of ['without a manifest passed over', 'damaged passed over'])
    expect([what, counts[what]! > CASES / 50]).toEqual([what, true])
}, 300_000)
