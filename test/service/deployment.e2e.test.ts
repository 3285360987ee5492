import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { Client, type Connection } from '@temporalio/client'
import type { Logger } from 'pino'
import { GARBAGE_COLLECTION_SCHEDULE_ID, SEARCH_ATTRIBUTES } from '../../core/queues'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import {
  adoptDeployment,
  deploymentOf,
  ensureGarbageCollection,
  ensureSearchAttributes,
  knownDeployment,
} from '../../service/deployment'
import { MemoryStore } from '../backends/scripted/memory-store'
import { freshNamespace } from '../support/namespace'
import { connectTo, type TestConnection } from '../support/temporal'
import type { Context } from '../../client/context'
import { checkSameDeployment as checkClient } from '../../client/deployment'
import { Authentication } from '../../workers/authentication'
import { checkSameDeployment as checkWorker } from '../../workers/same-deployment'

let at: TestConnection
let client: Client
let store: MemoryStore
let said: { level: string; message: string }[]

beforeAll(async () => {
  at = await connectTo()
})
afterAll(() => at.close())
beforeEach(async () => {
  const connection = at.client.connection as Connection
  client = new Client({ connection, namespace: await freshNamespace(connection) })
  store = new MemoryStore(Date.now)
  said = []
})

const logger = {
  error: (_facts: unknown, message: string) => void said.push({ level: 'error', message }),
  warn: (_facts: unknown, message: string) => void said.push({ level: 'warn', message }),
} as unknown as Logger

const ensure = async (): Promise<string> => {
  const deployment = await deploymentOf(store)
  await ensureGarbageCollection(client, { store, deployment, backends: ['local'], logger })
  return deployment
}

describe('a deployment', () => {
  it('has one id, whatever asks first and however many at once', async () => {
    const ids = await Promise.all([1, 2, 3, 4].map(() => deploymentOf(store)))
    expect(new Set(ids).size).toBe(1)
    expect(ids[0]).toMatch(/^dep-[0-9a-hjkmnp-tv-z]{10}$/)
  })

  it('is known to Temporal by the schedule of its garbage collection, made once', async () => {
    expect(await knownDeployment(client)).toBeUndefined()
    const ids = await Promise.all([ensure(), ensure()])
    expect(await knownDeployment(client)).toBe(ids[0])
    const { spec, policies, action } = await client.schedule
      .getHandle(GARBAGE_COLLECTION_SCHEDULE_ID)
      .describe()
    expect(spec.intervals).toMatchObject([{ every: 600_000 }])
    expect(policies).toMatchObject({ overlap: 'SKIP' })
    expect(action).toMatchObject({
      workflowType: 'garbageCollection',
      taskQueue: 'crucible',
      args: [{ deployment: ids[0], backends: ['local'], graceMs: 300_000, isDryRun: false }],
    })
    expect(said).toEqual([])
  })

  it('adds backends that are configured later, and forgets none', async () => {
    const deployment = await ensure()
    const backends = async (): Promise<unknown> => {
      const { action } = await client.schedule.getHandle(GARBAGE_COLLECTION_SCHEDULE_ID).describe()
      return action.args
    }
    await ensureGarbageCollection(client, { store, deployment, backends: ['ec2', 'local'], logger })
    expect(await backends()).toMatchObject([
      { deployment, backends: ['local', 'ec2'], graceMs: 300_000 },
      { crucibleStamp: { kind: 'schedule' } },
    ])
    await ensureGarbageCollection(client, { store, deployment, backends: ['ec2'], logger })
    expect(await backends()).toMatchObject([{ backends: ['local', 'ec2'] }, {}])
    expect(await knownDeployment(client)).toBe(deployment)
  })

  it("is known to a worker and a client with another deployment's key, which stop", async () => {
    const first = new Authentication(Buffer.alloc(32, 'a key'))
    const { namespace } = client.options
    const deployment = await deploymentOf(store)
    const own = first.client(client.connection, namespace, deployment)
    await ensureGarbageCollection(own, { store, deployment, backends: ['local'], logger })
    const other = new Authentication(Buffer.alloc(32, 'another key')).client(client.connection, namespace)
    expect(await knownDeployment(other)).toBe(deployment)
    const theirs = new MemoryStore(Date.now)
    const id = await deploymentOf(theirs)
    const place = { address: 'here:7233', store: theirs, deployment: id }
    await expect(checkWorker(other, place)).rejects.toThrow(`belongs to deployment ${deployment}`)
    const context = { store: theirs, config: { temporal: { connection: {} } } } as unknown as Context
    await expect(checkClient(context, other)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining(`belongs to another deployment (${deployment})`),
      hint: expect.stringContaining('TEMPORAL_NAMESPACE'),
    })
  })

  it("that differs from Temporal's leaves everything as it is, and says so", async () => {
    const first = await ensure()
    store = new MemoryStore(Date.now)
    expect(await ensure()).not.toBe(first)
    expect(await knownDeployment(client)).toBe(first)
    expect(said).toMatchObject([
      { level: 'error', message: expect.stringContaining('different deployments') },
    ])
  })

  it('that Temporal does not know, though there are jobs, is not swept before somebody adopts it', async () => {
    await putDocument(store, layout.record('job-a', 0), {})
    const deployment = await ensure()
    expect(await knownDeployment(client)).toBeUndefined()
    expect(said).toMatchObject([{ level: 'warn', message: expect.stringContaining('crucible gc --adopt') }])
    await adoptDeployment(client, { deployment, backends: ['local'] })
    expect(await knownDeployment(client)).toBe(deployment)
    // Also one that belonged to somebody else.
    await adoptDeployment(client, { deployment: 'dep-0000000000', backends: ['local'] })
    expect(await knownDeployment(client)).toBe('dep-0000000000')
  })
})

describe('search attributes', () => {
  it('are made where they are missing, and only those', async () => {
    const connection = at.client.connection as Connection
    const { namespace } = client.options
    const listed = async (): Promise<string[]> => {
      const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
      return Object.keys(customAttributes ?? {})
    }
    await connection.operatorService.removeSearchAttributes({
      namespace,
      searchAttributes: [SEARCH_ATTRIBUTES.owner],
    })
    expect(await listed()).not.toContain(SEARCH_ATTRIBUTES.owner)
    await ensureSearchAttributes(client, namespace)
    await ensureSearchAttributes(client, namespace)
    expect(await listed()).toEqual(expect.arrayContaining(Object.values(SEARCH_ATTRIBUTES)))
  })
})
