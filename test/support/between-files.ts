/** What a process of Jest keeps from one test file to the next, and what it does not. Loaded once, outside of the files' contexts. */
import { AsyncLocalStorage } from 'node:async_hooks'
import vm from 'node:vm'

/** A module as this process compiled it. */
interface Compiled {
  head: string
  source: string
  script: vm.Script
}

type Compile = typeof vm.compileFunction

const compiled = new Map<string, Compiled>()

/*
 * Jest compiles each module anew for each test file. The script of a module runs in the context of every file, with all functions that
 * earlier files have compiled.
 */
vm.compileFunction = (source, parameters = [], { filename = '', parsingContext } = {}) => {
  const head = `(function (${parameters.join(', ')}) {`
  let known = compiled.get(filename)
  if (known?.source !== source || known.head !== head) {
    const script = new vm.Script(`${head}${source}\n})`, { filename, columnOffset: -head.length })
    known = { head, source, script }
    compiled.set(filename, known)
  }
  const { script } = known
  const run =
    parsingContext === undefined || parsingContext === globalThis
      ? script.runInThisContext()
      : script.runInContext(parsingContext)
  return run as ReturnType<Compile>
}

const storages = new Set<AsyncLocalStorage<unknown>>()
// eslint-disable-next-line @typescript-eslint/unbound-method -- it is given its `this` below
const { run } = AsyncLocalStorage.prototype

AsyncLocalStorage.prototype.run = function (
  this: AsyncLocalStorage<unknown>,
  ...args: Parameters<typeof run>
) {
  storages.add(this)
  return run.apply(this, args)
} as typeof run

/**
 * Disables what the file has stored along its promises. Jest itself has such a storage for each file, and each of them costs every
 * promise of all later files something.
 */
export function disableStorages(): void {
  for (const storage of storages) storage.disable()
  storages.clear()
}
