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

/** `unit` needs nothing but Node and Python; `temporal` starts a real Temporal server once for all its files. */
module.exports = {
  // Two files at a time: the tests start processes of their own.
  maxWorkers: 2,
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
