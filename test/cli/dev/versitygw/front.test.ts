import { chmodSync, mkdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { storeFrontOver } from '../../../../cli/dev/versitygw/front'
import { startCloud, type Cloud } from '#small-cloud'
import { testFolder } from '../../../support/folders'
import { testVersitygw, versitygwOver } from '../../../support/s3'
import { until } from '../../../support/until'

let folder: string
let cloud: Cloud
let reasons: string[]

/** What the server cannot be started without. */
const permission = (): string => join(folder, 'permission')

beforeEach(async () => {
  folder = testFolder('store-front')
  reasons = []
  const executable = join(folder, 'guarded')
  writeFileSync(permission(), '')
  writeFileSync(
    executable,
    `#!/bin/sh\n[ -e '${permission()}' ] || { echo 'the disk is gone' >&2; exit 7; }\nexec '${await testVersitygw()}' "$@"\n`,
  )
  chmodSync(executable, 0o755)
  const directory = join(folder, 'store')
  const onRestart = (reason: string): void => void reasons.push(reason)
  cloud = await startCloud({
    startFront: storeFrontOver({ executable, directory, buckets: ['kept'], onRestart }),
  })
}, 60_000)

afterEach(async () => {
  await cloud.stop()
  expect(versitygwOver(folder)).toBeUndefined()
})

describe("the small cloud's S3 server", () => {
  it('restarts after it is killed, with its objects, at the same address', async () => {
    const killed = versitygwOver(folder)!
    const { region, storeEndpoint: endpoint, credentials } = cloud
    const client = new S3Client({
      region,
      endpoint: endpoint!,
      credentials,
      forcePathStyle: true,
      maxAttempts: 1,
    })
    const kept = { Bucket: 'kept', Key: 'it' }
    await client.send(new PutObjectCommand({ ...kept, Body: 'it' }))
    process.kill(killed, 'SIGKILL')
    await until(() => reasons.length === 1)
    // The front has no server now; the request waits for the next one.
    const { Body: body } = await client.send(new GetObjectCommand(kept))
    expect(reasons).toEqual([expect.stringContaining("The small cloud's S3 server was ended by SIGKILL")])
    expect(versitygwOver(folder)).not.toBe(killed)
    expect(await body?.transformToString()).toBe('it')
    client.destroy()
  })

  it('stays down and reports why when it cannot restart', async () => {
    rmSync(permission())
    process.kill(versitygwOver(folder)!, 'SIGKILL')
    expect(await cloud.ended).toMatch(/did not start[^]*the disk is gone[^]*will not be restarted/)
  }, 30_000)

  it('stops while it is being started again', async () => {
    process.kill(versitygwOver(folder)!, 'SIGKILL')
    await until(() => reasons.length === 1)
    await cloud.stop()
    expect(await cloud.ended).toBeUndefined()
  })
})

const asRoot = process.platform === 'linux' && process.getuid?.() === 0 ? describe : describe.skip

asRoot("the S3 server of root's small cloud", () => {
  it('has a user of its own, and only its folder', async () => {
    await cloud.stop()
    const directory = join(folder, 'store')
    mkdirSync(join(directory, 'buckets', 'kept', 'of-an-earlier-version'), { recursive: true })
    const executable = await testVersitygw()
    cloud = await startCloud({ startFront: storeFrontOver({ executable, directory, buckets: ['kept'] }) })
    const pid = versitygwOver(folder)!
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const [uid] = /^Uid:\s+(\d+)/m.exec(status)!.slice(1).map(Number)
    expect(uid).toBeGreaterThan(1_900_065_535)
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(/^Groups:(.*)$/m.exec(status)![1]!.trim()).toBe('')
    expect(readlinkSync(`/proc/${pid}/root`)).toBe(directory)
    const client = new S3Client({
      region: cloud.region,
      endpoint: cloud.storeEndpoint!,
      credentials: cloud.credentials,
      forcePathStyle: true,
    })
    const object = { Bucket: 'kept', Key: 'of-an-earlier-version/it' }
    await client.send(new PutObjectCommand({ ...object, Body: 'it' }))
    expect(statSync(join(directory, 'buckets', 'kept', object.Key)).uid).toBe(uid)
    client.destroy()
  })
})
