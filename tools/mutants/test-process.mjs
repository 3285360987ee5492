// A process that runs test files, replaced when a mutant crashes it or makes it endless, or when it has filled its memory.
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'

/** Time limit for a file without a mutant. */
const FILE_MAX_MS = 10 * 60_000
/** Time limit for the tests of one mutant, in addition to their time without it. It ends loops that no timer of a test can end. */
const MUTANT_MAX_MS = 15_000
/** Time limit for a file that is loaded with the mutant. */
const FRESH_MAX_MS = 60_000
/** Memory above which a process is replaced. Jest keeps some of the modules that a test file has loaded. */
const MEMORY_MAX_BYTES = 1_500_000_000

export class TestProcess {
  constructor(root) {
    this.root = root
    this.child = undefined
  }

  /** Runs a test file without a mutant; returns its tests with the mutants that each reaches, and the failed ones. */
  async survey(project, test) {
    const ended = await this.converse({ mode: 'survey', project, test }, {})
    return ended.kind === 'ended'
      ? { ...ended.survey, failures: ended.failures }
      : { failures: [{ name: `${test} ends its process`, message: ended.output ?? 'It takes too long.' }] }
  }

  /**
   * Loads a test file once and runs some of its tests with one mutant after the other. `next` returns the next mutant with its tests, or
   * undefined; `settle` gets `{ mutant, by, isSpoiled }`: what failed, and whether it failed without the mutant as well from then on.
   */
  async runMutants({ project, test }, next, settle) {
    let asked
    let hasAsked = true
    while (hasAsked) {
      hasAsked = false
      const ended = await this.converse(
        { mode: 'mutants', project, test },
        {
          next: () => ((hasAsked = true), (asked = next())),
          result: (result) => ((asked = undefined), settle(result)),
        },
      )
      if (asked !== undefined) {
        // The process has ended before its answer: the leftovers of an earlier mutant can crash it.
        settle({
          mutant: asked.mutant,
          by: ended.kind === 'late' ? `the time of ${test}` : `the end of ${test}`,
          isSpoiled: ended.kind !== 'late',
        })
        asked = undefined
      } else if (next.isEmpty()) return
      else if (ended.kind !== 'ended')
        throw new Error(`${test} ends its process without a mutant:\n${ended.output}`)
    }
  }

  /** Runs a test file that is loaded with a mutant; returns the failed tests. */
  async runFresh(project, test, mutant) {
    const ended = await this.converse({ mode: 'fresh', project, test, mutant }, {})
    if (ended.kind === 'ended') return ended.failures
    return [{ name: ended.kind === 'late' ? `the time of ${test}` : `the end of ${test}` }]
  }

  converse(question, { next, result }) {
    const child = (this.child ??= this.start())
    return new Promise((resolve) => {
      let timer
      const wait = (limitMs) => {
        clearTimeout(timer)
        timer = setTimeout(() => settle({ kind: 'late' }, false), limitMs)
      }
      const settle = (ended, isUsable) => {
        clearTimeout(timer)
        child.removeAllListeners('message').removeAllListeners('exit')
        if (!isUsable) this.stop()
        resolve(ended)
      }
      child.once('exit', () => settle({ kind: 'crashed', output: child.output }, false))
      child.on('message', (message) => {
        if (message.kind === 'next') {
          const asked = next()
          const testsMs = asked?.tests.reduce((sum, { ms }) => sum + ms, 0) ?? 0
          wait(MUTANT_MAX_MS + 20 * testsMs)
          child.send({ asked })
        } else if (message.kind === 'result') result(message)
        else settle(message, message.memoryBytes < MEMORY_MAX_BYTES)
      })
      wait(question.mode === 'fresh' ? FRESH_MAX_MS : FILE_MAX_MS)
      child.send(question)
    })
  }

  start() {
    const child = fork(join(this.root, 'tools', 'mutants', 'jest-process.js'), [], {
      ...{ cwd: this.root, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], detached: true },
      env: { ...process.env, FORCE_COLOR: '0', NODE_ENV: 'test' },
    })
    child.output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (child.output = (child.output + text).slice(-10_000)))
    return child
  }

  stop() {
    // A process that a signal has ended has no exit code either.
    if (this.child?.exitCode === null && this.child.signalCode === null)
      process.kill(-this.child.pid, 'SIGKILL')
    this.child = undefined
  }
}
