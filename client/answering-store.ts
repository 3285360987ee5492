import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { formatDuration, SECOND_MS } from '../core/time/time'
import { layout } from '../storage/layout'
import { StoreError, type ObjectStore, type StoredObject } from '../storage/store'

/** A person reads why nothing is answered within this time. */
const ANSWER_LIMIT_MS = 20 * SECOND_MS

/** Operations that a store answers soon, unless it is away. */
const QUICK: ReadonlySet<PropertyKey> = new Set([
  'get',
  'head',
  'put',
  'putIfAbsent',
  'listFolders',
  'delete',
])
/** Operations that may take long, because they move files of any size. */
const LONG: ReadonlySet<PropertyKey> = new Set(['putFile', 'getFile', 'copy', 'readUrl', 'signUrls'])

/**
 * Limits how long a person waits for a store. A folder on a file server that is away answers nothing: its operations throw a transient
 * `StoreError` then, and others fail at once until the late ones have their answers.
 */
export function answeringStore(store: ObjectStore, asking: Partial<Asking> = {}): ObjectStore {
  const patience = new Patience(store.url, { limitMs: ANSWER_LIMIT_MS, ask: readOutside, ...asking })
  /** Methods that were replaced are called without a limit. */
  const replaced = new Map<PropertyKey, unknown>()
  return new Proxy(store, {
    set: (_, name, value: unknown) => {
      replaced.set(name, value)
      return true
    },
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (replaced.has(name)) return replaced.get(name)
      if (typeof value !== 'function') return value
      const call = (...args: unknown[]): unknown => Reflect.apply(value, target, args)
      if (name === 'list')
        return (prefix: string) => patience.each(() => call(prefix) as ReturnType<ObjectStore['list']>)
      if (LONG.has(name)) return (...args: unknown[]) => patience.first().then(() => call(...args))
      return QUICK.has(name) ? (...args: unknown[]) => patience.within(() => call(...args)) : call
    },
  })
}

/** How a store is asked for an answer, and how long it may take. */
interface Asking {
  limitMs: number
  ask: (url: string) => Promise<unknown>
}

class Patience {
  /** Operations that are late. */
  private readonly late = new Set<Promise<unknown>>()
  private asked: Promise<unknown> | undefined
  private hasAnswered = false

  constructor(
    private readonly url: string,
    private readonly asking: Asking,
  ) {}

  /**
   * Resolves once the store has answered another process. This one must not ask first: it could not end while a thread of its own waits
   * for a file server.
   */
  async first(): Promise<void> {
    if (this.hasAnswered) return
    this.asked ??= this.asking.ask(this.url)
    await this.limited(this.asked)
    this.hasAnswered = true
  }

  async within<T>(operation: () => T | Promise<T>): Promise<T> {
    await this.first()
    if (this.late.size > 0) throw this.silence()
    return this.limited(Promise.resolve(operation()))
  }

  async *each(list: () => AsyncIterable<StoredObject>): AsyncGenerator<StoredObject> {
    const all = list()[Symbol.asyncIterator]()
    for (;;) {
      const next = await this.within(() => all.next())
      if (next.done === true) return
      yield next.value
    }
  }

  private limited<T>(answer: Promise<T>): Promise<T> {
    if (this.late.has(answer)) return Promise.reject(this.silence())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.late.add(answer)
        reject(this.silence())
      }, this.asking.limitMs)
      const end = (): void => {
        clearTimeout(timer)
        this.late.delete(answer)
      }
      answer.finally(end).then(resolve, reject)
    })
  }

  private silence(): StoreError {
    const message = `The store at ${this.url} has not answered within ${formatDuration(this.asking.limitMs)}.`
    return new StoreError(message, { isTransient: true })
  }
}

/** Resolves when another process could read the store's mark, or could not: both are answers. */
function readOutside(url: string): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn('cat', [join(fileURLToPath(url), layout.deployment())], { stdio: 'ignore' })
    const kill = (): void => void child.kill('SIGKILL')
    const end = (): void => {
      process.off('exit', kill)
      resolve()
    }
    child.once('error', end).once('exit', end)
    child.unref()
    process.once('exit', kill)
  })
}
