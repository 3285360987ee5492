/**
 * Unused files, exports and dependencies. `knip` counts what tests use; `knip --production` does not, and reads only patterns with a
 * final `!`. `npm run lint` runs both. Other packages use what `client/index.ts` exports; `@internal` says why tests use what no other file of
 * the product uses.
 */
module.exports = {
  workspaces: {
    '.': {
      entry: [
        'cli/commands/*/*.ts!',
        'cli/dev/sim.ts!',
        'client/analysis/worker.ts!',
        'backends/*/index.ts!',
        'tools/*.{mjs,js}!',
        'tools/mutants/{main,test-process,jest-process}.{mjs,js}!',
        'docs/.vitepress/config.mjs',
        'test/{bench,docs/choosing,proof}/main.ts',
        'test/replay/{record,capture-commands}.ts',
        'test/{bench/fleet-worker,chaos/backend-worker,planner/many-offers,quarters/waking,support/mutant-environment,fuzz/reader}.ts',
      ],
      project: ['**/*.{ts,mjs,js}!', '!{test,docs}/**!'],
      // Of the packages that come with this one; a name in a setting of pino; a version for all of Temporal's packages.
      ignoreDependencies: ['fastify', 'smol-toml', 'pino-pretty', 'protobufjs!'],
    },
    'packages/analyzer': { entry: [], project: ['src/**/*.{ts,mjs}!'] },
    'packages/small-cloud': {
      entry: ['test/support/typescript.mjs'],
      project: ['**/*.{ts,mjs}!', '!{test/**,build.mjs}!'],
    },
  },
  // A type is no code: tests may name one that the product uses in its own file only.
  exclude: process.argv.includes('--production') ? ['binaries', 'types'] : ['binaries'],
  treatConfigHintsAsErrors: true,
  compilers: {
    // `const { a } = require('./b') as typeof b` uses only `a` of `./b`.
    ts: (text) => text.replaceAll(/(\} =\s+require\('[^']*'\)) as typeof \w+/g, '$1'),
    // The sources stand for a build, which may not exist.
    mjs: (text) => text.replaceAll("'../dist/", "'../"),
  },
}
