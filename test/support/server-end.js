const { isFirst } = require('./sequencer')

/**
 * Stops the shared Temporal server after the last test file that uses it (see sequencer.js): without work it still takes an eighth of a
 * core. A reporter of Jest, because these run in the process of the global set-up.
 */
module.exports = class ServerEnd {
  #running = 0
  #haveAllBegun = false

  onTestFileStart({ path, duration }) {
    if (path.endsWith('.e2e.test.ts')) this.#running += 1
    else if (!isFirst({ path, duration })) this.#haveAllBegun = true
  }

  onTestFileResult({ path }) {
    if (path.endsWith('.e2e.test.ts')) this.#running -= 1
    // The global tear-down waits for it and reports its errors.
    if (this.#haveAllBegun && this.#running === 0)
      globalThis.crucibleTestServer?.stop().catch(() => undefined)
  }
}
