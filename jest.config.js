const transform = {
  '^.+\\.ts$': [
    '@swc/jest',
    {
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
      sourceMaps: 'inline',
    },
  ],
}
const base = { testEnvironment: 'node', transform, modulePathIgnorePatterns: ['<rootDir>/dist'] }

// The SDK warns in every process that Node 20 will be too old for it one day; so does no worker of ours.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true'

/** `unit` needs nothing but Node and Python; `temporal` starts a real Temporal server once for all its files. */
module.exports = {
  // Many wait for processes and servers most of the time, and those need the cores.
  maxWorkers: 3,
  testTimeout: 60_000,
  projects: [
    {
      ...base,
      displayName: 'unit',
      testMatch: ['<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', '\\.e2e\\.test\\.ts$'],
    },
    {
      ...base,
      displayName: 'temporal',
      testMatch: ['<rootDir>/test/**/*.e2e.test.ts'],
      globalSetup: '<rootDir>/test/support/global-setup.ts',
      globalTeardown: '<rootDir>/test/support/global-teardown.ts',
    },
  ],
}
