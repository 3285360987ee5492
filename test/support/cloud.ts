import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { storeFrontOver } from '../../cli/dev/versitygw/front'
import { startCloud, type Cloud, type CloudOptions, type WorldText } from '#small-cloud'
import { S3_ENVIRONMENT, testVersitygw } from './s3'
import { adoptKeys } from './cloud-keys'

/** A small cloud with an object store; this process asks it, and no other, in the name of its user `test`. */
export interface TestCloud extends Cloud {
  /** For files of the test; removed at the end. */
  folder: string
}

/** Whether one runs: the environment of this process names one cloud and its keys. */
let isTaken = false

export async function startTestCloud(
  bucket: string,
  world: WorldText = {},
  options: Pick<CloudOptions, 'createMachine'> = {},
): Promise<TestCloud> {
  if (isTaken) throw new Error('This process has a small cloud already: stop it before you start another.')
  isTaken = true
  const before = { ...process.env }
  const folder = await mkdtemp(join(tmpdir(), 'crucible-cloud-'))
  const executable = await testVersitygw()
  const cloud = await startCloud({
    ...options,
    world,
    startFront: storeFrontOver({ executable, directory: join(folder, 'store') }),
  })
  Object.assign(process.env, S3_ENVIRONMENT, {
    AWS_REGION: cloud.region,
    AWS_DEFAULT_REGION: cloud.region,
    AWS_ENDPOINT_URL: cloud.endpoint,
    AWS_ENDPOINT_URL_S3: cloud.storeEndpoint,
  })
  adoptKeys(cloud)
  const client = new S3Client({ forcePathStyle: true })
  await client.send(new CreateBucketCommand({ Bucket: bucket }))
  client.destroy()
  return {
    ...cloud,
    folder,
    async stop() {
      await cloud.stop()
      await rm(folder, { recursive: true, force: true })
      process.env = before
      isTaken = false
    },
  }
}
