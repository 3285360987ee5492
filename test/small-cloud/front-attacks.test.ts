/** What the holder of one attempt's grant tries at the front of the object store, with requests that no SDK sends. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { putOnDisk } from '../support/on-disk'
import { RawS3, type RawAnswer, type RawKeys, type RawRequest } from '../support/raw-s3'
import { grantKeys } from './grants'

const BUCKET = 'judged'
const OWN = `/${BUCKET}/store/jobs/job-a/attempts/1`
let cloud: TestCloud
let raw: RawS3
let keys: RawKeys
const send = (request: RawRequest): Promise<RawAnswer> => raw.send(request, keys)
const onDisk = (...names: string[]): string => join(cloud.folder, 'store', 'buckets', BUCKET, ...names)

beforeAll(async () => {
  cloud = await startTestCloud(BUCKET)
  raw = new RawS3({ endpoint: cloud.storeEndpoint!, region: cloud.region })
  keys = await grantKeys(`s3://${BUCKET}/store`, cloud, { jobId: 'job-a', attempt: 1 })
  putOnDisk(onDisk('store', 'jobs', 'job-b', 'secret'), 'secret of job-b')
}, 240_000)
afterAll(async () => {
  raw.close()
  await cloud.stop()
})

async function beginUpload(target: string): Promise<string> {
  const { status, body } = await send({ method: 'POST', target: `${target}?uploads` })
  expect(status).toBe(200)
  return /<UploadId>([^<]+)</.exec(body)![1]!
}

describe('the front of the object store, asked with the grant of another job,', () => {
  it('removes no folder for an id of an upload that is a path', async () => {
    await beginUpload(`${OWN}/beat-object`)
    const victim = join(cloud.folder, 'victim')
    mkdirSync(victim)
    writeFileSync(join(victim, 'file'), 'of the host')
    // From the folder of an object's uploads, this deep in a bucket, to the folder of the test.
    const uploadId = '../../../../../../victim'
    const { status } = await send({ method: 'DELETE', target: `${OWN}/beat-object?uploadId=${uploadId}` })
    expect([status, existsSync(join(victim, 'file'))]).toEqual([404, true])
  })

  it('writes no part into the folder of another job', async () => {
    await beginUpload(`${OWN}/beat-object`)
    const target = `${OWN}/beat-object?partNumber=1&uploadId=../../../store/jobs/job-b`
    const { status } = await send({ method: 'PUT', target, body: 'forged' })
    expect([status, existsSync(onDisk('store', 'jobs', 'job-b', '1'))]).toEqual([404, false])
  })

  it.each([
    `${BUCKET}/store/jobs/job-a/own?/../../job-b/secret`,
    `${BUCKET}/store/jobs/job-a/own%3F/../../job-b/secret`,
    `${BUCKET}/store/jobs/job-a/own?versionId=../../job-b/secret`,
    `${BUCKET}/store/jobs/job-a/%2e%2e/job-b/secret`,
    `${BUCKET}/store/jobs/job-a/..%2fjob-b%2fsecret`,
    `${BUCKET}/store/jobs/job-a/%252e%252e/job-b/secret`,
    `${BUCKET}/store/jobs/job-a//../job-b/secret`,
    `${BUCKET}/store/jobs/job-b/secret`,
  ])('copies nothing from %s', async (source) => {
    mkdirSync(onDisk('store', 'jobs', 'job-a', 'own?'), { recursive: true })
    const copied = onDisk('store', 'jobs', 'job-a', 'attempts', '1', 'copied')
    rmSync(copied, { force: true })
    const { status } = await send({
      method: 'PUT',
      target: `${OWN}/copied`,
      headers: { 'x-amz-copy-source': source },
    })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(existsSync(copied) ? readFileSync(copied, 'utf8') : '').not.toContain('secret')
  })
})
