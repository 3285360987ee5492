/** Jest's environment for all tests: the time limits of tests and hooks, which are written for an idle machine, grow by the patience factor. */
import { availableParallelism } from 'node:os'
import v8 from 'node:v8'
import vm from 'node:vm'
import type { EnvironmentContext, JestEnvironmentConfig } from '@jest/environment'
import { disableStorages } from './between-files'
import { PATIENCE_SETTING, patienceOf, processesPerCore } from './patience'
import { SingleContext } from './single-context'

/*
 * Where workflows run in the thread of their test, their worker takes note of every promise of the process, for a query after the stacks
 * of workflows that no test makes. Other hooks, by which Node follows what belongs together, have a `before`.
 */
const { createHook } = v8.promiseHooks
v8.promiseHooks.createHook = (hooks) =>
  hooks.before === undefined ? () => undefined : createHook.call(v8.promiseHooks, hooks)

/** The limit of workflow code that runs in the thread of its test: as long as Node can count. */
const NEVER_MS = 2 ** 32 - 1
const scripts = vm.Script.prototype
// eslint-disable-next-line @typescript-eslint/unbound-method -- it is given its `this` below
const { runInContext } = scripts

/*
 * Several times for each step of a workflow, a thread would be started that ends the script after 49 days: that takes eighty times as long as
 * the call without it.
 */
scripts.runInContext = function (this: vm.Script, context, options) {
  const isEndless = options?.timeout === NEVER_MS
  return runInContext.call(this, context, isEndless ? { ...options, timeout: undefined } : options) as unknown
}

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

class PatientEnvironment extends SingleContext {
  readonly #patience: number
  /** A hook of many tests starts many times. */
  readonly #extended = new WeakSet<object>()

  constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
    super(config, context)
    // The first files of a run find an idle machine, and are not alone on it a moment later.
    const filesPerCore = config.globalConfig.maxWorkers / availableParallelism()
    this.#patience = patienceOf(process.env[PATIENCE_SETTING], Math.max(filesPerCore, processesPerCore()))
  }

  override async setup(): Promise<void> {
    await super.setup()
    // What the test file and its programs read is what their limits grow by.
    process.env[PATIENCE_SETTING] = String(this.#patience)
  }

  override async teardown(): Promise<void> {
    disableStorages()
    await super.teardown()
  }

  handleTestEvent({ name, hook, test }: TestEvent, state: { testTimeout: number }): void | Promise<void> {
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
