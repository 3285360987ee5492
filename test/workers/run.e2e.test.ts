import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { Client, type Connection } from '@temporalio/client'
import { pino } from 'pino'
import { startDevServer } from '../../cli/dev/temporal/dev-server'
import type { BackendAnswer } from '../../core/job/plan'
import { backendQueue, ORCHESTRATOR_QUEUE } from '../../core/queues'
import { openDeploymentKey } from '../../storage/deployment-key'
import { openStore } from '../../storage/open-store'
import { Authentication } from '../../workers/authentication'
import { readWorkerConfig, type WorkerConfig } from '../../service/config'
import { connect, untilAnswered } from '../../workers/connect'
import { ensureSearchAttributes, knownDeployment } from '../../service/deployment'
import { makeBackend } from '../../service/make-backend'
import type * as run from '../../workers/run'
import type { Role } from '../../workers/run'
import { MemoryStore } from '../backends/scripted/memory-store'
import { makeMarkedFolder } from '../support/marked-store'
import { freshNamespace } from '../support/namespace'
import { SPEC } from '../support/spec'
import { until } from '../support/until'
import { connectTo, quietWorkers, testServer, type TestConnection } from '../support/temporal'
import { itInAll } from '../support/selection'
import { testWorkflowBundle } from '../support/workflow-bundle'

// The build puts the bundle next to compiled code; these are sources.
jest.mock('../../workers/bundle', () => ({
  ...jest.requireActual<object>('../../workers/bundle'),
  workflowBundle: () => mockBundle,
}))
const { rolesOf, runWorkers } = jest.requireActual<typeof run>('../../workers/run')
let mockBundle: Awaited<ReturnType<typeof testWorkflowBundle>>

const logger = pino({ level: 'silent' })

let at: TestConnection
let home: string
let stop: AbortController

/** Threads of workers; one that is left keeps its process from ending. */
const threads = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'MessagePort').length
const threadsBefore = threads()

beforeAll(async () => {
  quietWorkers()
  mockBundle = await testWorkflowBundle()
  at = await connectTo()
})
afterAll(async () => {
  await at.close()
  expect(threads()).toBe(threadsBefore)
})
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'crucible-run-'))
  makeMarkedFolder(join(home, 'store'))
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  await rm(home, { recursive: true, force: true })
})

async function configIn(namespace: string): Promise<WorkerConfig> {
  return readWorkerConfig({
    PATH: process.env['PATH'],
    CRUCIBLE_HOME: home,
    TEMPORAL_ADDRESS: testServer().address,
    TEMPORAL_NAMESPACE: namespace,
  })
}

/** Workers that poll, and how they ended. */
async function started(config: WorkerConfig, roles: readonly Role[]): Promise<{ ended: Promise<void> }> {
  let onReady = (): void => undefined
  const ready = new Promise<void>((resolve) => (onReady = resolve))
  const ended = runWorkers({ config, roles, logger, signal: stop.signal, onReady })
  await Promise.race([ready, ended])
  return { ended }
}

/** A client that the workers obey. */
async function clientOf(
  { home, temporal }: WorkerConfig,
  connection: Connection,
  deployment?: string,
): Promise<Client> {
  const key = await openDeploymentKey(openStore(home.storeUrl), home.secretKeyFile)
  return new Authentication(key).client(connection, temporal.namespace, deployment)
}

describe('the workers of a process', () => {
  it('serve their roles, stop in good order on request, and can be started again', async () => {
    const connection = at.client.connection as Connection
    const namespace = await freshNamespace(connection)
    const config = await configIn(namespace)
    const client = await clientOf(config, connection)
    expect(rolesOf(config)).toEqual(['orchestrator', 'local'])
    for (const time of [1, 2]) {
      stop = new AbortController()
      const { ended } = await started(config, rolesOf(config))
      expect(await knownDeployment(client)).toMatch(/^dep-/)
      const answer = await client.activity.execute<BackendAnswer>('offers', {
        id: `offers-${time}`,
        taskQueue: backendQueue('local'),
        args: [{ request: {} }],
        startToCloseTimeout: '20 seconds',
      })
      expect(answer).toMatchObject({ backend: 'local' })
      stop.abort()
      await ended
    }
  })

  it('refuse the questions of another deployment, with its name', async () => {
    const connection = at.client.connection as Connection
    const namespace = await freshNamespace(connection)
    const config = await configIn(namespace)
    const { ended } = await started(config, rolesOf(config))
    const theirs = await clientOf(config, connection, 'dep-other')
    const questions = [
      ['offers', backendQueue('local'), { request: {} }],
      ['previewPlan', ORCHESTRATOR_QUEUE, { spec: SPEC }],
    ] as const
    for (const [type, taskQueue, input] of questions) {
      const answer = theirs.activity.execute(type, {
        id: type,
        taskQueue,
        args: [input],
        startToCloseTimeout: '40 seconds',
        retry: { maximumAttempts: 1 },
      })
      await expect(answer).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/deployment dep-\S+, but the task to dep-other/) },
      })
    }
    stop.abort()
    await ended
  })

  it('lose no activity when they are stopped', async () => {
    const connection = at.client.connection as Connection
    const namespace = await freshNamespace(connection)
    const config = await configIn(namespace)
    const client = await clientOf(config, connection)
    const { ended } = await started(config, ['local'])
    const handle = await client.activity.start<BackendAnswer>('offers', {
      id: 'offers',
      taskQueue: backendQueue('local'),
      args: [{ request: {} }],
      // A task that was on its way to a worker that just stopped is given out again after this.
      startToCloseTimeout: '5 seconds',
    })
    stop.abort()
    await ended
    // Begun or not: what was begun is finished; what was not waits for the next worker, and is not lost.
    stop = new AbortController()
    const next = await started(config, ['local'])
    expect(await handle.result()).toMatchObject({ backend: 'local' })
    stop.abort()
    await next.ended
  })

  it('end with an error when one of them cannot be made, and leave nothing running', async () => {
    const config = await configIn(await freshNamespace(at.client.connection as Connection))
    await expect(
      runWorkers({ config, roles: ['orchestrator', 'moon'], logger, signal: stop.signal }),
    ).rejects.toThrow(
      'There is no backend "moon" in CRUCIBLE_BACKENDS; Crucible knows local, ec2, lambda, modal.',
    )
  })

  it('are never begun if they were stopped before', async () => {
    stop.abort(new Error('told to stop'))
    const config = await configIn('default')
    await expect(runWorkers({ config, roles: ['local'], logger, signal: stop.signal })).rejects.toThrow(
      'told to stop',
    )
  })
})

describe('a backend that is not in the configuration', () => {
  it('is refused with the names of the existing ones', async () => {
    const config = await configIn('default')
    const store = new MemoryStore(Date.now)
    await expect(makeBackend(config, 'sun', { store, deployment: 'dep-0123456789' })).rejects.toThrow(
      'There is no backend "sun"',
    )
  })
})

describe('the first connection', () => {
  it('is tried until there is a server, however often that fails', async () => {
    const { executable } = testServer()
    const first = await startDevServer({ executable })
    const [, port] = /:(\d+)$/.exec(first.address)!
    await first.stop()
    const warned: unknown[] = []
    const patient = pino({ level: 'warn' }, { write: (line: string) => void warned.push(JSON.parse(line)) })
    const connecting = connect(
      { connection: { address: first.address }, namespace: 'default' },
      { logger: patient, signal: stop.signal },
    )
    await until(() => warned.length > 0)
    const second = await startDevServer({ executable, ports: { grpc: Number(port) } })
    try {
      const connection = await connecting
      await connection.close()
    } finally {
      await second.stop()
    }
    // Said once, not at every try.
    expect(warned).toMatchObject([
      { msg: 'the Temporal server does not answer yet; retrying', address: first.address },
    ])
  })

  it('may be lost before the workers poll: what was asked meanwhile is asked again', async () => {
    const { executable } = testServer()
    const first = await startDevServer({ executable })
    const connection = await connect(
      { connection: { address: first.address }, namespace: 'default' },
      { logger, signal: stop.signal },
    )
    const client = new Client({ connection, namespace: 'default' })
    await first.stop()
    const warned: unknown[] = []
    const patient = pino({ level: 'warn' }, { write: (line: string) => void warned.push(JSON.parse(line)) })
    const asked = untilAnswered(() => ensureSearchAttributes(client, 'default'), {
      logger: patient,
      signal: stop.signal,
    })
    // The SDK retries on its own for about ten seconds before it gives up.
    await until(() => warned.length > 0, 40_000)
    const [, port] = /:(\d+)$/.exec(first.address)!
    const second = await startDevServer({ executable, ports: { grpc: Number(port) } })
    try {
      await asked
    } finally {
      await connection.close()
      await second.stop()
    }
  })

  itInAll(
    'may be lost while the workers are made, which are then made anew',
    async () => {
      const { executable } = testServer()
      const server = await startDevServer({ executable })
      const ready = await configIn('default')
      let times = 0
      const config = {
        ...ready,
        temporal: { ...ready.temporal, connection: { address: server.address } },
        // What is read last before the workers are made.
        get timing() {
          if (times++ === 0) process.kill(server.pid, 'SIGSTOP')
          return ready.timing
        },
      }
      const warned: unknown[] = []
      const patient = pino({ level: 'warn' }, { write: (line: string) => void warned.push(JSON.parse(line)) })
      let onReady = (): void => undefined
      const polling = new Promise<void>((resolve) => (onReady = resolve))
      const ended = runWorkers({ config, roles: ['local'], logger: patient, signal: stop.signal, onReady })
      try {
        await Promise.race([until(() => warned.length > 0, 60_000), ended])
        process.kill(server.pid, 'SIGCONT')
        await Promise.race([polling, ended])
        stop.abort()
        await ended
        expect(times).toBeGreaterThan(1)
      } finally {
        await server.stop()
      }
    },
    120_000,
  )

  it('is given up at once when the process is stopped', async () => {
    const connecting = connect(
      { connection: { address: '127.0.0.1:1' }, namespace: 'default' },
      { logger, signal: stop.signal },
    )
    setImmediate(() => stop.abort())
    await expect(connecting).rejects.toThrow()
  })
})
