// Finds out which mutants the tests catch.
import { availableParallelism } from 'node:os'
import { Checkout } from './checkout.mjs'
import { TestProcess } from './test-process.mjs'
import { readImports, testsOf } from './tests.mjs'

/** Number of tests with a server that run for one mutant: those that reach the fewest others. */
const WITH_SERVER_MAX = 8

/** Number of test files that are loaded with one mutant: the nearest. */
const FRESH_MAX = 5

/** Time that the tests which run for one mutant take without it; the fastest come first. */
const TESTS_MAX_MS = 20_000

/**
 * Runs the tests. Each test file runs once without a mutant, and notes what each test reaches. Then it is loaded once more, and its tests
 * that reach a mutant run with it, one mutant after the other. For mutants that are reached while a file loads, and those of tests that
 * pass only once after it was loaded, the file is loaded again at the end.
 */
export class Hunt {
  constructor({ mutants, instrumented, hasServer, settled }) {
    this.open = new Map(mutants.map((mutant) => [mutant.id, mutant]))
    this.spentMs = new Map()
    this.settled = settled
    this.checkout = new Checkout(instrumented)
    this.processes = Array.from({ length: availableParallelism() }, () => new TestProcess(this.checkout.root))
    const imports = readImports()
    /** Test files of each file, nearest first. */
    this.near = new Map(
      [...new Set(mutants.map(({ file }) => file))].map((file) => [file, testsOf(file, imports)]),
    )
    const filesOf = (project, key) =>
      [...new Set([...this.near.values()].flatMap((tests) => tests[key]))].map((test) => ({ project, test }))
    this.unit = filesOf('unit', 'unit')
    this.temporal = hasServer ? filesOf('temporal', 'temporal') : []
    /** Mutants for which a file is loaded anew, by test file. */
    this.fresh = new Map()
  }

  async run() {
    await this.runFiles(await this.survey(this.unit), Infinity)
    await this.runFiles(await this.survey(this.temporal), WITH_SERVER_MAX)
    for (const mutant of this.open.values()) this.settled({ mutant, verdict: 'survived' })
  }

  remove() {
    this.processes.forEach((each) => each.stop())
    this.checkout.remove()
  }

  /** Works on items with all processes, in order. */
  async share(items, work) {
    const queue = [...items]
    await Promise.all(
      this.processes.map(async (process) => {
        for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item, process)
      }),
    )
  }

  async survey(files) {
    const surveyed = []
    await this.share(files, async ({ project, test }, process) => {
      const { failures, tests, ...survey } = await process.survey(project, test)
      // Some tests measure time, and all mutants at once make the code slow.
      for (const { name, message } of failures)
        console.log(`left out, as it fails without a mutant: ${name}\n${message}`)
      if (tests !== undefined)
        surveyed.push({ project, test, tests: tests.filter(({ isPassed }) => isPassed), ...survey })
    })
    return surveyed
  }

  async runFiles(files, testsMax) {
    const byPrice = ({ tests, preparingMs }) =>
      preparingMs + tests.reduce((sum, { ms }) => sum + ms, 0) / tests.length
    const order = [...files].sort((one, other) => byPrice(one) - byPrice(other))
    const chosen = testsMax === Infinity ? undefined : this.mostSpecific(files, testsMax)
    const shares = order.map((file) => ({ file, waiting: [...this.open.keys()] }))
    // A process that has nothing to begin helps with what others have begun.
    await this.share([...shares, ...shares], (share, process) => this.runFile(share, process, chosen))
    const distance = (mutant, { test }) => {
      const { unit, temporal } = this.near.get(mutant.file)
      return [...unit, ...temporal].indexOf(test)
    }
    const fresh = [...this.open.values()].flatMap((mutant) =>
      files
        .filter((file) => distance(mutant, file) >= 0 && this.isFresh(file, mutant.id))
        .sort((one, other) => distance(mutant, one) - distance(mutant, other))
        .slice(0, FRESH_MAX)
        .map((file) => ({ file, id: mutant.id })),
    )
    await this.share(fresh, async ({ file, id }, process) => {
      if (!this.open.has(id)) return
      const [failure] = await process.runFresh(file.project, file.test, id)
      if (failure !== undefined) this.catch(id, failure.name)
    })
  }

  /** Returns for each mutant the tests that reach the fewest others. */
  mostSpecific(files, max) {
    const tests = files
      .flatMap((file) => file.tests)
      .map((test) => ({ test, size: Object.keys(test.reached).length }))
      .sort((one, other) => one.size - other.size)
      .map(({ test }) => test)
    return new Map(
      [...this.open.keys()].map((id) => [
        id,
        new Set(tests.filter(({ reached }) => reached[id] !== undefined).slice(0, max)),
      ]),
    )
  }

  async runFile({ file, waiting }, process, chosen) {
    if (waiting.length === 0) return
    const next = () => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        if (!this.open.has(id)) continue
        let ms = (this.spentMs.get(id) ?? 0) + file.preparingMs
        const tests = file.tests
          .filter(
            (test) =>
              test.isRepeatable &&
              (test.reached[id] !== undefined || file.before[id] !== undefined) &&
              (chosen === undefined || chosen.get(id)?.has(test)),
          )
          .sort((one, other) => one.ms - other.ms)
          .filter((test) => (ms += test.ms) <= TESTS_MAX_MS || chosen !== undefined)
        if (tests.length === 0) continue
        this.spentMs.set(id, ms)
        const hits = tests.reduce((sum, { reached }) => sum + (reached[id] ?? 0), file.before[id] ?? 0)
        return { mutant: id, hits, tests: tests.map(({ index, ms }) => ({ index, ms })) }
      }
      return undefined
    }
    next.isEmpty = () => waiting.length === 0
    await process.runMutants(file, next, ({ mutant, by, isSpoiled }) => {
      if (isSpoiled) this.fresh.set(file.test, (this.fresh.get(file.test) ?? new Set()).add(mutant))
      else if (by !== undefined) this.catch(mutant, by)
    })
  }

  isFresh(file, id) {
    return (
      file.loaded[id] !== undefined ||
      (this.fresh.get(file.test)?.has(id) ?? false) ||
      file.tests.some(({ isRepeatable, reached }) => !isRepeatable && reached[id] !== undefined)
    )
  }

  catch(id, by) {
    const mutant = this.open.get(id)
    // Another process may have been faster.
    if (mutant === undefined) return
    this.open.delete(id)
    this.settled({ mutant, verdict: 'caught', by })
  }
}
