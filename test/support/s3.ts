import { execFileSync } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port'
import type { LeashedProcess } from '../../cli/dev/temporal/leash'
import { launchVersitygw } from '../../cli/dev/versitygw/launch'
import { resolveVersitygw } from '../../cli/dev/versitygw/resolve'
import { progressOn } from '../../cli/dev/temporal/progress'

const S3_KEYS = { keyId: 'root-of-tests', secret: 'secret-of-tests' }
export const S3_REGION = 'eu-west-1'

/** The variables by which every SDK and the runner are let in, and kept away from any real account. */
export const S3_ENVIRONMENT = {
  AWS_ACCESS_KEY_ID: S3_KEYS.keyId,
  AWS_SECRET_ACCESS_KEY: S3_KEYS.secret,
  AWS_REGION: S3_REGION,
  AWS_DEFAULT_REGION: S3_REGION,
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  NO_PROXY: '127.0.0.1',
  no_proxy: '127.0.0.1',
}

/** Number of the S3 server whose data is below a folder; `undefined` while none runs. */
export function versitygwOver(folder: string): number | undefined {
  const listing = execFileSync('ps', ['-A', '-o', 'pid=,args='], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  // Not the shell that keeps it on its leash.
  const line = listing
    .split('\n')
    .find(
      (line) =>
        /^ *\d+ \S*versitygw /.test(line) &&
        (line.includes(folder) || rootOf(Number.parseInt(line)).startsWith(folder)),
    )
  return line === undefined ? undefined : Number.parseInt(line)
}

/** The root directory of a process, which is a server's own folder if root started it. */
function rootOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/root`)
  } catch {
    return ''
  }
}

/** A real S3 server of a test's own, with buckets. */
export interface TestS3 {
  /** `http://127.0.0.1:PORT` */
  url: string
  process: LeashedProcess
  directory: string
  makeBucket(name: string): Promise<void>
  close(): Promise<void>
}

let versitygw: Promise<string> | undefined

/** Looked for once in a file of tests: each time compares the digest of the whole executable with the record. */
export function testVersitygw(): Promise<string> {
  versitygw ??= resolveVersitygw({
    home: process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible'),
    env: process.env,
    progress: progressOn(process.stderr, Date.now),
  })
  return versitygw
}

export async function startTestS3(...buckets: string[]): Promise<TestS3> {
  const executable = await testVersitygw()
  const directory = await mkdtemp(join(tmpdir(), 'crucible-s3-'))
  const address = `127.0.0.1:${await freePort()}`
  const process = await launchVersitygw({ executable, directory, address, ...S3_KEYS, region: S3_REGION })
  // The server takes every folder for a bucket.
  const makeBucket = async (name: string): Promise<void> => {
    await mkdir(join(directory, 'buckets', name))
  }
  for (const bucket of buckets) await makeBucket(bucket)
  return {
    url: `http://${address}`,
    process,
    directory,
    makeBucket,
    async close() {
      await process.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
