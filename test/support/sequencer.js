const { default: Sequencer } = require('@jest/test-sequencer')

/**
 * First all test files that use the shared Temporal server, which then can end; else Jest's order, the longest first by what it has
 * timed. Of what it has not timed it takes the largest for the longest.
 */
module.exports = class ServerFirst extends Sequencer {
  sort(tests) {
    const rankOf = ({ path }) => (path.endsWith('.e2e.test.ts') ? 0 : 1)
    return super.sort(tests).sort((one, other) => rankOf(one) - rankOf(other))
  }
}
