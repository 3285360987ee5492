// A process that runs test files, replaced when a run crashes it, takes too long, or has filled its memory.
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'

/** Time limit of one test file: a mutant can make a loop endless. */
const RUN_MAX_MS = 15 * 60_000
/** A process with more than this is replaced. Jest keeps some of what a test file has loaded. */
const MEMORY_MAX_BYTES = 1_500_000_000

export class TestProcess {
  constructor(root) {
    this.root = root
    this.child = undefined
  }

  /** Runs test files of a Jest project up to the first failure; returns `passed`, `failed` or `late`, and the failed tests. */
  async run(project, tests) {
    for (const test of tests) {
      const result = await this.runFile(project, test)
      if (result.verdict !== 'passed') return result
    }
    return { verdict: 'passed', failures: [] }
  }

  /** What an earlier run left behind can crash a process, so a crash counts only in a fresh one. */
  async runFile(project, test) {
    const isFresh = this.child === undefined
    const result = await this.runOnce(project, test)
    if (result.verdict !== 'crashed') return result
    const failures = [{ name: `${test} ends its process`, message: result.output }]
    return isFresh ? { verdict: 'failed', failures } : this.runFile(project, test)
  }

  runOnce(project, test) {
    const child = (this.child ??= this.start())
    return new Promise((resolve) => {
      const settle = (result, isUsable) => {
        clearTimeout(timer)
        child.removeAllListeners('message').removeAllListeners('exit')
        if (!isUsable) this.stop()
        resolve(result)
      }
      const timer = setTimeout(() => settle({ verdict: 'late', failures: [] }, false), RUN_MAX_MS)
      child.once('exit', () => settle({ verdict: 'crashed', output: child.output }, false))
      child.once('message', ({ isPassed, failures, memoryBytes }) =>
        settle({ verdict: isPassed ? 'passed' : 'failed', failures }, memoryBytes < MEMORY_MAX_BYTES),
      )
      child.send({ project, test })
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
    // One that a signal has ended has no exit code either.
    if (this.child?.exitCode === null && this.child.signalCode === null)
      process.kill(-this.child.pid, 'SIGKILL')
    this.child = undefined
  }
}
