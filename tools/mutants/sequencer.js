const { relative } = require('node:path')
const { default: Sequencer } = require('@jest/test-sequencer')

/** Runs test files in the order of the command line. */
module.exports = class extends Sequencer {
  sort(tests) {
    const placeOf = ({ path, context }) => process.argv.indexOf(relative(context.config.rootDir, path))
    return [...tests].sort((one, other) => placeOf(one) - placeOf(other))
  }
}
