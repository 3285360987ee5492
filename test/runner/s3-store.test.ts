import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { FaultProxy } from '../support/fault-proxy'
import { S3_ENVIRONMENT, startTestS3, type TestS3 } from '../support/s3'

const BUCKET = 'runner-tests'
const LIMIT_MS = 240_000
let server: TestS3
let proxy: FaultProxy

beforeAll(async () => {
  server = await startTestS3(BUCKET)
  proxy = await FaultProxy.open(server.url)
}, LIMIT_MS)
afterAll(async () => {
  await proxy.close()
  await server.close()
})

/** Runs the tests of one file of `python-s3` against a real server; those that failed, with their reasons. */
async function failuresOf(name: string): Promise<{ failures: string[]; count: number }> {
  const { stdout } = await promisify(execFile)(
    process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3',
    ['-B', join(__dirname, 'python', 'run.py'), join(__dirname, 'python-s3'), name],
    {
      env: {
        PATH: process.env['PATH'],
        ...S3_ENVIRONMENT,
        CRUCIBLE_TEST_S3: proxy.url,
        CRUCIBLE_TEST_S3_BUCKET: BUCKET,
      },
      maxBuffer: 64 * 1024 * 1024,
    },
  )
  const outcomes = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { name: string; failure: string | null })
  return {
    count: outcomes.length,
    failures: outcomes.flatMap(({ name: test, failure }) => (failure === null ? [] : `${test}: ${failure}`)),
  }
}

describe('the runner’s store in S3', () => {
  it.each([
    ['test_s3_store', 15],
    ['test_s3_transfer', 15],
  ])(
    'keeps its promises on a real server, whatever happens on the way: %s',
    async (name, atLeast) => {
      const { failures, count } = await failuresOf(name)
      expect(failures).toEqual([])
      expect(count).toBeGreaterThan(atLeast)
    },
    LIMIT_MS,
  )
})
