/** Jest's environment for all tests: the time limits of tests and hooks, which are written for an idle machine, grow by the patience factor. */
import v8 from 'node:v8'
import { TestEnvironment } from 'jest-environment-node'
import { PATIENCE_SETTING, patienceOf, processesPerCore } from './patience'

/*
 * Where workflows run in the thread of their test, the worker takes note of their promises, and compiles a function for each promise of
 * the process to tell whether it is one of theirs. Once for each context tells as much, and a context with `process` is none of theirs.
 */
const { createHook } = v8.promiseHooks
const hasWorkflow = new WeakMap<object, () => boolean>()

/** A condition on the globals of the context that a class is of. */
const within = ({ constructor }: object, condition: string): (() => boolean) =>
  Reflect.construct(constructor, [`return ${condition}`]) as () => boolean

function isOfWorkflow({ constructor }: Promise<unknown>): boolean {
  let answer = hasWorkflow.get(constructor)
  if (answer === undefined) {
    const isOther = within(constructor, "'process' in globalThis")()
    answer = isOther ? () => false : within(constructor, 'globalThis.__TEMPORAL_ACTIVATOR__ !== undefined')
    hasWorkflow.set(constructor, answer)
  }
  return answer()
}

v8.promiseHooks.createHook = ({ init, settled, ...hooks }) =>
  createHook({
    ...hooks,
    init: (promise, parent) => {
      if (isOfWorkflow(promise)) init?.(promise, parent)
    },
    settled: (promise) => {
      if (isOfWorkflow(promise)) settled?.(promise)
    },
  })

/** What has a time limit of its own, or none. */
interface Limited {
  timeout?: number | null | undefined
}

/** The part of Jest's events that is of interest here. */
interface TestEvent {
  name: string
  hook?: Limited
  test?: Limited
}

class PatientEnvironment extends TestEnvironment {
  readonly #patience = patienceOf(process.env[PATIENCE_SETTING], processesPerCore())
  /** A hook of many tests starts many times. */
  readonly #extended = new WeakSet<object>()

  override async setup(): Promise<void> {
    await super.setup()
    // What the test file and its programs read is what their limits grow by.
    this.global.process.env[PATIENCE_SETTING] = String(this.#patience)
  }

  handleTestEvent({ name, hook, test }: TestEvent, state: { testTimeout: number }): void {
    if (name === 'run_start') state.testTimeout *= this.#patience
    else if (name === 'hook_start') this.#extend(hook)
    else if (name === 'test_start') this.#extend(test)
  }

  #extend(limited: Limited | undefined): void {
    if (!limited?.timeout || this.#extended.has(limited)) return
    this.#extended.add(limited)
    limited.timeout *= this.#patience
  }
}

// As Jest wants it: the module itself is the class.
export = PatientEnvironment
