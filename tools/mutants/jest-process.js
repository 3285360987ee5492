// Runs test files in one process, for `test-process.mjs`: to start Node and Jest takes longer than most tests.
const { relative } = require('node:path')
const { runCLI } = require('jest')

/** The failed tests, or the file if it does not load, with their errors. */
function failuresOf({ testResults }) {
  return testResults.flatMap(({ testFilePath, testExecError, testResults: tests }) =>
    testExecError
      ? [{ name: `${relative(process.cwd(), testFilePath)} does not load`, message: testExecError.stack }]
      : tests
          .filter(({ status }) => status === 'failed')
          .map(({ ancestorTitles, title, failureMessages }) => ({
            name: [...ancestorTitles, title].join(' › '),
            message: failureMessages.join('\n'),
          })),
  )
}

/** The mutant that the parent sends next; undefined at the end. */
const nextMutant = () =>
  new Promise((resolve) => {
    process.once('message', resolve)
    process.send({ kind: 'next' })
  }).then(({ asked }) => asked)

async function run({ mode, project, test, mutant }) {
  let survey
  globalThis[Symbol.for('crucible.mutants')] = {
    mode,
    mutant,
    surveyed: (result) => (survey = result),
    next: nextMutant,
    result: (result) => process.send({ kind: 'result', ...result }),
  }
  const { results } = await runCLI(
    {
      ...{ _: [test], $0: '', runTestsByPath: true, selectProjects: [project] },
      ...{ runInBand: true, reporters: [], silent: true },
      testEnvironment: '<rootDir>/test/support/mutant-environment.ts',
    },
    [process.cwd()],
  )
  process.send({
    ...{ kind: 'ended', survey, failures: failuresOf(results) },
    memoryBytes: process.memoryUsage().rss,
  })
  process.once('message', run)
}

process.once('message', run)
