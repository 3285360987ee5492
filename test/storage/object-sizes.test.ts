/** Sizes of what jobs read in S3, over the wire to the small cloud, whose buckets are in Regions. */
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { measureSource } from '../../storage/s3/object-sizes'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { patient } from '../support/patience'

const signal = AbortSignal.timeout(patient(60_000))
let cloud: TestCloud
beforeAll(async () => {
  cloud = await startTestCloud('home', {
    throttling: 'off',
    regions: { 'us-east-1': { zones: ['us-east-1a'] }, 'eu-west-1': { zones: ['eu-west-1a'] } },
  })
  // Measured from another Region, from which S3 sends the caller on.
  const s3 = new S3Client({ forcePathStyle: true, region: 'eu-west-1' })
  const CreateBucketConfiguration = { LocationConstraint: 'eu-west-1' as const }
  await s3.send(new CreateBucketCommand({ Bucket: 'far-away', CreateBucketConfiguration }))
  for (const [Key, size] of [
    ['text/a', 700],
    ['text/deep/b c', 300],
    ['textual', 5],
  ] as const)
    await s3.send(new PutObjectCommand({ Bucket: 'far-away', Key, Body: Buffer.alloc(size) }))
  s3.destroy()
})
afterAll(() => cloud.stop())

describe('the size of a source in S3', () => {
  it.each([
    ['one object', 's3://far-away/textual', 5],
    ['a key as it is written', 's3://far-away/text/deep/b c', 300],
    ['all under a prefix, and nothing that only begins alike', 's3://far-away/text/', 1_000],
    ['a whole bucket', 's3://far-away/', 1_005],
    ['a prefix with nothing under it', 's3://far-away/none/', 0],
  ])('is that of %s, with the Region of its bucket', async (_, source, sizeBytes) => {
    expect(await measureSource(source, signal)).toEqual({ sizeBytes, region: 'eu-west-1' })
  })

  it.each([
    ['an object that is not there', 's3://far-away/none'],
    ['a bucket that is not there', 's3://nowhere-at-all/text/'],
  ])('is an error of %s', async (_, source) => {
    await expect(measureSource(source, signal)).rejects.toThrow()
  })

  it('is an error when the caller leaves', async () => {
    await expect(measureSource('s3://far-away/text/', AbortSignal.abort())).rejects.toThrow()
  })
})
