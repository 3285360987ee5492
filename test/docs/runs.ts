/**
 * Which test runs the `sh` blocks of a page, as they are printed. A block that no test can run (it needs an account, a cluster or a
 * file of the reader) has no language; its commands and options are checked by test/docs.test.ts.
 */
export const RUN_BY: Readonly<Record<string, string>> = {
  'README.md': 'test/readme.e2e.test.ts',
  'docs/start/install.md': 'test/readme.e2e.test.ts',
  'docs/reference/garbage-collection.md': 'test/readme.e2e.test.ts',
  'docs/start/first-job.md': 'test/docs/first-job.e2e.test.ts',
  'docs/guides/checkpoints.md': 'test/docs/checkpoints.test.ts',
  'docs/guides/moving-jobs.md': 'test/docs/first-job.e2e.test.ts',
  'docs/start/first-cloud-job.md': 'test/cli/dev/setup.e2e.test.ts',
}
