/** Jest's environment in the context of its process, instead of one of its own for each test file. */
import fs from 'node:fs'
import type { Context } from 'node:vm'
import type { EnvironmentContext, JestEnvironment, JestEnvironmentConfig } from '@jest/environment'
import { ModernFakeTimers } from '@jest/fake-timers'
import { ModuleMocker } from 'jest-mock'

/** What Jest itself uses of a context, under names that no test replaces. */
const NATIVE = {
  'jest-native-promise': Promise,
  'jest-native-now': Date.now.bind(Date),
  'jest-native-read-file': fs.readFileSync.bind(fs),
  'jest-native-write-file': fs.writeFileSync.bind(fs),
  'jest-native-exists-file': fs.existsSync.bind(fs),
}
for (const [name, value] of Object.entries(NATIVE))
  Object.defineProperty(globalThis, Symbol.for(name), { value, configurable: true })
Object.defineProperty(globalThis, 'jest-symbol-do-not-touch', { value: Symbol, configurable: true })

/** The object's own properties, without what an EventEmitter keeps in it: its listeners outlast the file. */
const propertiesOf = (object: object): (string | symbol)[] =>
  Reflect.ownKeys(object).filter((key) => typeof key === 'symbol' || !key.startsWith('_'))

/** Takes back what is different from `before`: own properties of an object. */
function restore(object: object, before: PropertyDescriptorMap): void {
  for (const key of propertiesOf(object)) if (!Object.hasOwn(before, key)) Reflect.deleteProperty(object, key)
  for (const key of propertiesOf(before)) {
    const was = before[key as string]!
    const now = Reflect.getOwnPropertyDescriptor(object, key)
    if (now?.value !== was.value || now?.get !== was.get) Object.defineProperty(object, key, was)
  }
}

/**
 * Packages keep what they have compiled and optimised from one test file to the next (see runtime.js), and an object is an instance of
 * the same classes in whichever module it was made. After each file the globals and the environment variables are as they were before it.
 */
export class SingleContext implements JestEnvironment {
  readonly global = globalThis as unknown as JestEnvironment['global']
  readonly fakeTimers = null
  readonly fakeTimersModern: ModernFakeTimers
  readonly moduleMocker = new ModuleMocker(globalThis)
  readonly #before = [globalThis, process, process.env].map((object) => ({
    object,
    properties: Object.getOwnPropertyDescriptors(object),
  }))

  constructor({ projectConfig }: JestEnvironmentConfig, _context: EnvironmentContext) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis })
  }

  setup(): Promise<void> {
    return Promise.resolve()
  }

  teardown(): Promise<void> {
    this.fakeTimersModern.dispose()
    for (const { object, properties } of this.#before) restore(object, properties)
    return Promise.resolve()
  }

  exportConditions(): string[] {
    return ['node', 'node-addons']
  }

  getVmContext(): Context {
    return globalThis
  }
}
