import { describe, it } from '@jest/globals'

/** Set by `npm test`. Jest alone and `npm run test:all` run every test. */
export const IS_SELECTION = process.env['CRUCIBLE_TEST_SELECTION'] === '1'

/** The examples to run: all of them, or in `npm test` the few that still prove the promise. */
export function chosen<T>(all: readonly T[], few: readonly NoInfer<T>[]): readonly T[] {
  return IS_SELECTION ? few : all
}

/** Registers nothing, whatever is called on it: these tests are left out, which is not the same as skipped. */
const nothing: unknown = new Proxy(() => nothing, { get: () => nothing })

/** Tests for which `npm test` runs cheaper ones that keep the same promise. */
export const itInAll: typeof it = IS_SELECTION ? (nothing as typeof it) : it
export const describeInAll: typeof describe = IS_SELECTION ? (nothing as typeof describe) : describe
