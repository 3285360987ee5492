import { setTimeout as sleep } from 'node:timers/promises'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { parseCheckpointId, type Checkpoint } from '../../core/job/checkpoint'
import type { Cloud } from '#small-cloud'
import { manifestName } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import { StoreError, type ObjectStore } from '../../storage/store'
import { MemoryStore } from '../backends/scripted/memory-store'
import type { AskByUrl } from '../support/user-data'

/** Where the deployment and its machines leave their documents, and what is seen of that from outside. */
export interface Storage {
  store: ObjectStore
  /** Every checkpoint that was ever complete, removed ones too. */
  completed: Checkpoint[]
  /** As any holder of a signed URL; throws a `StoreError` where it must ask again. */
  ask: AskByUrl
  /** Of this run, for whatever lies on a disk. */
  folder: string
  /** The store answers no request for a while. */
  outage(durationMs: number): Promise<void>
  close(): Promise<void>
}

const BUCKET = 'documents'

/** The cloud's own bucket where it has a store, over the wire like everything else; without a store, one in memory. */
export async function openStorage(cloud: Cloud, folder: string): Promise<Storage> {
  const { storeEndpoint, region } = cloud
  if (storeEndpoint === undefined) {
    const memory = new MemoryStore(Date.now)
    const outage = async (durationMs: number): Promise<void> => {
      memory.isDown = true
      await sleep(durationMs)
      memory.isDown = false
    }
    const ask: AskByUrl = (method, url) => memory.ask(method, url)
    return { ...witnessed(memory), ask, folder, outage, close: async () => undefined }
  }
  const client = new S3Client({ endpoint: storeEndpoint, region, forcePathStyle: true, maxAttempts: 10 })
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }))
  client.destroy()
  const where = `endpoint=${encodeURIComponent(storeEndpoint)}&region=${region}`
  const store = openStore(`s3://${BUCKET}/store?${where}`) as S3Store
  return {
    ...witnessed(store),
    ask: askOverTheWire,
    folder,
    outage: async (durationMs) => {
      const where = { service: 's3' } as const
      cloud.addFault({ fault: 'error', code: 'ServiceUnavailable', status: 503, until: durationMs, where })
      await sleep(durationMs)
    },
    close: () => store.close(),
  }
}

/** A signed URL that has expired, an absent object: as in `runner/bootstrap.py`. */
const FINAL = [400, 401, 403, 404, 410]

const askOverTheWire: AskByUrl = async (method, url) => {
  const answer = await fetch(url, { method }).catch((cause: unknown) => {
    throw new StoreError('the store does not answer', { isTransient: true, cause })
  })
  if (FINAL.includes(answer.status)) return undefined
  if (!answer.ok) throw new StoreError(`the store answers ${answer.status}`, { isTransient: true })
  return Buffer.from(await answer.arrayBuffer())
}

/** The store itself, and what became complete in it: an answer that is lost is noted when the manifest is put once more. */
function witnessed(store: ObjectStore): { store: ObjectStore; completed: Checkpoint[] } {
  const completed: Checkpoint[] = []
  const manifest = new RegExp(`/checkpoints/([^/]+)/${manifestName()}$`)
  const putIfAbsent: ObjectStore['putIfAbsent'] = async (key, body) => {
    const [, id] = manifest.exec(key) ?? []
    const checkpoint = id === undefined ? undefined : parseCheckpointId(id)
    const isNew = await store.putIfAbsent(key, body)
    if (checkpoint !== undefined) completed.push(checkpoint)
    return isNew
  }
  const noting = new Proxy(store, {
    get: (target, name) => {
      if (name === 'putIfAbsent') return putIfAbsent
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return { store: noting, completed }
}
