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

process.on('message', async ({ project, test }) => {
  const { results } = await runCLI(
    {
      ...{ _: [test], $0: '', runTestsByPath: true, selectProjects: [project] },
      ...{ runInBand: true, reporters: [], silent: true },
    },
    [process.cwd()],
  )
  const failures = failuresOf(results)
  process.send({ isPassed: results.success, failures, memoryBytes: process.memoryUsage().rss })
})
