const { createRequire, isBuiltin } = require('node:module')
const { default: Runtime } = require('jest-runtime')

/** Our own modules, by path or as package.json's `imports` names them, and Jest's. */
const PER_FILE = /^(?:[./#]|@jest\/|jest|expect$)/

/**
 * Jest's module loader, but packages are loaded by Node itself, once for all test files of a process. Loading them took a third of a
 * file's processor time. A mock of a package is that of its test file, as ever.
 */
module.exports = class extends Runtime {
  requireModule(from, name, ...rest) {
    const isShared =
      name !== undefined && !rest[0]?.isInternalModule && !isBuiltin(name) && !PER_FILE.test(name)
    return isShared ? createRequire(from)(name) : super.requireModule(from, name, ...rest)
  }
}
