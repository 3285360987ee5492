import { afterAll, beforeAll } from '@jest/globals'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { testStoreContract } from './contract'

const BUCKET = 'contract-tests'
const stores: S3Store[] = []
let cloud: TestCloud

beforeAll(async () => {
  cloud = await startTestCloud(BUCKET)
}, 240_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  await cloud.stop()
})

testStoreContract('s3://', () => {
  const store = openStore(`s3://${BUCKET}/contract`) as S3Store
  stores.push(store)
  return store
})
