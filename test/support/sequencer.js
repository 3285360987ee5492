const { default: Sequencer } = require('@jest/test-sequencer')

/**
 * Jest's order, the longest first by what it has timed. Of what it has not timed it takes the largest for the longest; but those that
 * wait for servers and machines are, and must not be alone at the end of a run.
 */
module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const rankOf = ({ path, duration }) => (duration === undefined && path.endsWith('.e2e.test.ts') ? 0 : 1)
    return super.sort(tests).sort((one, other) => rankOf(one) - rankOf(other))
  }
}
