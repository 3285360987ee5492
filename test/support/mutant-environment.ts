/**
 * Jest's environment of `npm run mutants`. Every mutant is in the code already (tools/mutants/generate.mjs), and a global object of
 * Stryker's says which one is active.
 */
import { performance } from 'node:perf_hooks'
import { clearTimeout, setTimeout } from 'node:timers'
import vm from 'node:vm'
import type { Circus } from '@jest/types'
import PatientEnvironment from './patient-environment'

/** What `tools/mutants/jest-process.js` asks of the next test file. */
interface Session {
  mode: 'survey' | 'mutants' | 'fresh'
  /** The mutant that is active from the start, with `fresh`. */
  mutant?: string
  surveyed: (survey: Survey) => void
  next: () => Promise<Asked | undefined>
  result: (result: { mutant: string; isSpoiled: boolean; by: string | undefined }) => void
}

/** Numbers of times by mutant. */
type Hits = Record<string, number>

interface Survey {
  tests: { index: number; ms: number; isPassed: boolean; isRepeatable: boolean; reached: Hits }[]
  /** Reached while the file was loaded, and by what runs before all tests. */
  loaded: Hits
  before: Hits
  preparingMs: number
}

/** One mutant with the tests to run, and how often these reached it without being active. */
interface Asked {
  mutant: string
  hits: number
  tests: { index: number; ms: number }[]
}

/** Stryker's global object. */
interface State {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number
  hitLimit?: number
  mutantCoverage: { static: Hits; perTest: Record<string, Hits> }
}

const session = (): Session =>
  (globalThis as unknown as Record<symbol, Session>)[Symbol.for('crucible.mutants')]!

/** Fake timers of a test replace `now` in Node's own module as well. */
const now = performance.now.bind(performance)

/** A test has as long as this, and twenty times what it took without a mutant. */
const LIMIT_MS = 3_000
/** A mutant is reached as often as this, and a hundred times as often as without it, before it is an endless loop. */
const HITS = 10_000

class TestFailure extends Error {
  constructor(
    readonly test: Circus.TestEntry | undefined,
    error: unknown,
    readonly isLate: boolean,
  ) {
    super('a test has failed', { cause: error })
  }

  get by(): string {
    return `${this.isLate ? 'the time of ' : ''}${this.test ? nameOf(this.test) : 'a hook'}`
  }
}

function nameOf(test: Circus.TestEntry): string {
  const names: string[] = [test.name]
  for (let block = test.parent; block.parent; block = block.parent) names.unshift(block.name)
  return names.join(' › ')
}

const hooksOf = (block: Circus.DescribeBlock, type: Circus.HookType): Circus.Hook[] =>
  block.hooks.filter((hook) => hook.type === type)

const testsOf = (block: Circus.DescribeBlock): Circus.TestEntry[] =>
  block.children.flatMap((child) => (child.type === 'test' ? [child] : testsOf(child)))

/** The state as it is in the context of workflows: Temporal freezes what it finds there, but not what is frozen already. */
const asFrozen = (state: State): State =>
  new Proxy(Object.freeze({}) as State, {
    get: (_, key) => Reflect.get(state, key) as unknown,
    set: (_, key, value) => Reflect.set(state, key, value),
  })

/** Runs what Jest calls a function of a test or a hook. */
async function call(fn: Circus.Hook['fn'], limitMs: number, context: object = {}): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(LATE), limitMs)
  })
  try {
    await Promise.race([(fn as (this: object) => unknown).call(context), late])
  } finally {
    clearTimeout(timer)
  }
}

const LATE = new Error('It takes too long.')

class MutantEnvironment extends PatientEnvironment {
  readonly #state: State = { mutantCoverage: { static: {}, perTest: {} } }
  readonly #createContext = vm.createContext
  readonly #durationsMs = new Map<Circus.TestEntry, number>()
  #preparingMs = 0
  /** Of the hook or test that runs now. */
  #startedMs = 0
  #root!: Circus.DescribeBlock

  override async setup(): Promise<void> {
    await super.setup()
    const { mode, mutant } = session()
    if (mode === 'fresh') this.#activate(mutant!)
    // Replays run in the thread of their test, too.
    process.env['TEMPORAL_DEBUG'] = 'yes'
    Object.assign(this.global, { __stryker__: this.#state })
    const shared = asFrozen(this.#state)
    vm.createContext = (context = {}, options) =>
      this.#createContext({ ...(context as object), __stryker__: shared }, options)
  }

  override async teardown(): Promise<void> {
    vm.createContext = this.#createContext
    await super.teardown()
  }

  override async handleTestEvent(event: Circus.Event, state: Circus.State): Promise<void> {
    void super.handleTestEvent(event, state)
    const { mode } = session()
    if (event.name === 'run_start') {
      this.#root = state.rootDescribeBlock
      if (mode === 'mutants') this.#skipAll()
    } else if (mode === 'survey') await this.#survey(event, state)
    else if (mode === 'mutants' && event.name === 'run_finish') await this.#runMutants(state)
    // The first failure of a mutant is enough.
    else if (mode === 'fresh' && event.name === 'test_done' && event.test.errors.length > 0) this.#skipAll()
  }

  #skipAll(): void {
    for (const test of testsOf(this.#root)) test.mode = 'skip'
  }

  /** Notes which mutants each test reaches, and whether it passes a second time in the same process. */
  async #survey(event: Circus.Event, state: Circus.State): Promise<void> {
    if (event.name === 'hook_start' && event.hook.type.endsWith('All')) {
      this.#state.currentTestId = event.hook.type
      this.#startedMs = now()
    } else if (event.name === 'hook_success' && event.hook.type.endsWith('All')) {
      if (event.hook.type === 'beforeAll') this.#preparingMs += now() - this.#startedMs
      this.#state.currentTestId = undefined
    } else if (event.name === 'test_start') {
      this.#state.currentTestId = String(testsOf(this.#root).indexOf(event.test))
      this.#startedMs = now()
    } else if (event.name === 'test_done') {
      this.#durationsMs.set(event.test, now() - this.#startedMs)
      this.#state.currentTestId = undefined
    } else if (event.name === 'run_finish') session().surveyed(await this.#surveyed(state))
  }

  async #surveyed(state: Circus.State): Promise<Survey> {
    // A copy: the tests run again below.
    const { static: loaded, perTest } = structuredClone(this.#state.mutantCoverage)
    this.#state.currentTestId = 'again'
    const done = testsOf(this.#root).filter((test) => this.#durationsMs.has(test))
    const passed = done.filter((test) => test.errors.length === 0)
    const areRepeatable = (await this.#firstFailure(passed, state)) === undefined
    const tests: Survey['tests'] = []
    for (const [index, test] of testsOf(this.#root).entries()) {
      if (!done.includes(test)) continue
      const isPassed = passed.includes(test)
      const isRepeatable =
        isPassed && (areRepeatable || (await this.#firstFailure([test], state)) === undefined)
      const ms = this.#durationsMs.get(test)!
      tests.push({ index, ms, isPassed, isRepeatable, reached: perTest[index] ?? {} })
    }
    return { tests, loaded, before: perTest['beforeAll'] ?? {}, preparingMs: this.#preparingMs }
  }

  async #runMutants(state: Circus.State): Promise<void> {
    const all = testsOf(this.#root)
    for (;;) {
      const asked = await session().next()
      if (asked === undefined) return
      const { mutant, hits, tests } = asked
      for (const { index, ms } of tests) this.#durationsMs.set(all[index]!, ms)
      this.#activate(mutant, hits)
      const failure = await this.#firstFailure(
        tests.map(({ index }) => all[index]!),
        state,
      )
      this.#state.activeMutant = undefined
      // What a mutant has left behind must not fail the next one.
      const isSpoiled =
        failure?.isLate === false &&
        (failure.test === undefined || (await this.#firstFailure([failure.test], state)) !== undefined)
      session().result({ mutant, isSpoiled, by: failure?.by })
      if (isSpoiled || failure?.isLate === true) return
    }
  }

  #activate(mutant: string, hits = 0): void {
    Object.assign(this.#state, { activeMutant: mutant, hitCount: 0, hitLimit: HITS + 100 * hits })
  }

  /** Runs tests again, up to the first failure, which is returned. */
  async #firstFailure(
    tests: readonly Circus.TestEntry[],
    state: Circus.State,
  ): Promise<TestFailure | undefined> {
    try {
      await this.#runBlock(this.#root, new Set(tests), state)
      return undefined
    } catch (error) {
      return error instanceof TestFailure ? error : new TestFailure(undefined, error, error === LATE)
    }
  }

  async #runBlock(
    block: Circus.DescribeBlock,
    chosen: ReadonlySet<Circus.TestEntry>,
    state: Circus.State,
  ): Promise<void> {
    if (!testsOf(block).some((test) => chosen.has(test))) return
    const runAll = async (type: Circus.HookType): Promise<void> => {
      for (const { fn, timeout } of hooksOf(block, type)) await call(fn, timeout ?? state.testTimeout)
    }
    try {
      await runAll('beforeAll')
      for (const child of block.children)
        if (child.type === 'describeBlock') await this.#runBlock(child, chosen, state)
        else if (chosen.has(child)) await this.#runTest(child)
    } finally {
      await runAll('afterAll')
    }
  }

  async #runTest(test: Circus.TestEntry): Promise<void> {
    const blocks: Circus.DescribeBlock[] = []
    for (let block: Circus.DescribeBlock | undefined = test.parent; block; block = block.parent)
      blocks.push(block)
    const limitMs = LIMIT_MS + 20 * (this.#durationsMs.get(test) ?? 0)
    const context = {}
    const before = blocks.toReversed().flatMap((block) => hooksOf(block, 'beforeEach'))
    const after = blocks.flatMap((block) => hooksOf(block, 'afterEach'))
    try {
      try {
        for (const { fn } of [...before, test]) await call(fn, limitMs, context)
      } finally {
        for (const { fn } of after) await call(fn, limitMs, context)
      }
    } catch (error) {
      throw new TestFailure(test, error, error === LATE)
    }
  }
}

// As Jest wants it: the module itself is the class.
export = MutantEnvironment
