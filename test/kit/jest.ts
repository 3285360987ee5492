import { afterAll, beforeAll, expect, it } from '@jest/globals'
import type { OptionValues, ProgramOptions } from '../support/options'
import type { Case, Drawn, Harness, Report } from './harness'
import { inLanes } from './lanes'
import { pythonFor, type NeedsLibraries } from './libraries'

interface Held<O extends ProgramOptions, C, R> {
  cases: readonly C[]
  limitMs: number
  /** All at once where it is missing: most of a case is waiting. */
  jobs?: number
  /** Options that are not the usual ones. */
  values?: Partial<OptionValues<O>>
  /** What a report without breaches must show in addition. */
  also?: (report: R) => void
}

/** Registers a test for each case: it breaks nothing. All cases run from the start of the file on. */
export function itHolds<O extends ProgramOptions, P, C extends Case, R extends Report>(
  title: string,
  harness: Harness<O, P, C, R>,
  { cases, limitMs, jobs = cases.length, values: given, also }: Held<O, C, R>,
): void {
  const usual = Object.entries(harness.options).map(([name, option]) => [name, option.default])
  const { signal } = new AbortController()
  const common = { seeds: [], jobs, story: false, signal }
  const values = { ...Object.fromEntries(usual), ...given, ...common } as unknown as Drawn<O>
  const lived = new Map(cases.map(({ name }) => [name, deferred<R>()]))
  let whole: Promise<unknown>
  beforeAll(() => {
    whole = harness.around(values, (place) =>
      inLanes(cases, { jobs }, (one) => {
        const { resolve, reject } = lived.get(one.name)!
        return harness.live(one, place, values).then(resolve, reject)
      }),
    )
    whole.catch((error: unknown) => lived.forEach(({ reject }) => reject(error)))
  })
  afterAll(() => whole)
  it.each(cases.map(({ name }) => name))(
    title,
    async (name) => {
      const report = await lived.get(name)!.promise
      expect(report.breaches.length === 0 ? undefined : report).toBeUndefined()
      also?.(report)
    },
    limitMs,
  )
}

/** Registers a test of a program under its libraries, which is skipped with the reason where they are missing. */
export function itWithLibraries(
  title: string,
  one: NeedsLibraries,
  test: (python: string) => Promise<unknown>,
): void {
  const found = pythonFor(one)
  if ('obstacle' in found) it.skip(`${title} (skipped: ${found.obstacle})`, () => undefined)
  else
    it(title, async () => {
      await test(found.python)
    })
}

function deferred<R>(): {
  promise: Promise<R>
  resolve: (value: R) => void
  reject: (error: unknown) => void
} {
  let resolve!: (value: R) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<R>((yes, no) => {
    resolve = yes
    reject = no
  })
  // It is heard of in its test.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
