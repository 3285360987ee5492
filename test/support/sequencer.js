const { default: Sequencer } = require('@jest/test-sequencer')

/** A file that takes longer waits for most of its time, and lets others have the processors. */
const LONG_MS = 30_000

const isFirst = ({ path, duration = 0 }) => path.endsWith('.e2e.test.ts') || duration > LONG_MS

/**
 * First all test files that use the shared Temporal server, which then can end, and those that wait long; else Jest's order, the longest
 * first by what it has timed. Of what it has not timed it takes the largest for the longest.
 */
module.exports = class WaitingFirst extends Sequencer {
  static isFirst = isFirst

  sort(tests) {
    return super.sort(tests).sort((one, other) => isFirst(other) - isFirst(one))
  }
}
