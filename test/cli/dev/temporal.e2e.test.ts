import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { msToTs, optionalTsToMs } from '@temporalio/common/lib/time'
import { startDevServer, type DevServer, type DevServerOptions } from '../../../cli/dev/temporal/dev-server'
import { startLeashed } from '../../../cli/dev/temporal/leash'
import { identify, isAlive, type ProcessIdentity } from '../../../service/process-identity'
import { waitUntilReady } from '../../../cli/dev/temporal/ready'
import { SEARCH_ATTRIBUTES } from '../../../core/queues'
import { DAY_MS } from '../../../core/time/time'
import { connectTo, testServer } from '../../support/temporal'
import { until } from '../../support/until'
import { patient } from '../../support/patience'
import { chosen, itInAll } from '../../support/selection'

let folder: string
const servers: DevServer[] = []
const children: ChildProcess[] = []

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible dev server '))
})

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

let files = 0
function newDataFile(): string {
  return join(folder, `data ${(files += 1)}`, 'temporal.db')
}

async function start(options: Omit<DevServerOptions, 'executable'> = {}): Promise<DevServer> {
  const server = await startDevServer({ executable: testServer().executable, ...options })
  servers.push(server)
  return server
}

function refusal(options: Omit<DevServerOptions, 'executable'>): Promise<unknown> {
  return start(options).then(
    () => 'it started',
    (error: unknown) => error,
  )
}

function portsOf(server: DevServer): { grpc: number; ui: number } {
  return { grpc: Number(server.address.split(':')[1]), ui: Number(new URL(server.uiUrl).port) }
}

/** Starts a workflow that no worker will touch. */
async function leaveWorkflow(server: DevServer, workflowId: string): Promise<void> {
  const { client, close } = await connectTo(server.address)
  await client.workflow.start('nobody', { workflowId, taskQueue: 'nobody' })
  await close()
}

async function hasWorkflow(server: DevServer, workflowId: string): Promise<boolean> {
  const { client, close } = await connectTo(server.address)
  const found = await client.workflow
    .getHandle(workflowId)
    .describe()
    .then(() => true)
    .catch(() => false)
  await close()
  return found
}

/** How long the server keeps histories; sets that first where `days` is given. */
async function retentionDays(server: DevServer, days?: number): Promise<number> {
  const { client, close } = await connectTo(server.address)
  const { namespace } = client.options
  if (days !== undefined)
    await client.workflowService.updateNamespace({
      namespace,
      config: { workflowExecutionRetentionTtl: msToTs(days * DAY_MS) },
    })
  const { config } = await client.workflowService.describeNamespace({ namespace })
  await close()
  return optionalTsToMs(config?.workflowExecutionRetentionTtl)! / DAY_MS
}

async function listenOnFreePort(): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as { port: number }).port }
}

describe('a dev server', () => {
  it('answers on its address and its Web UI, knows the search attributes, and is gone after stop', async () => {
    const server = await start()
    const process = identify(server.pid)!
    expect((await fetch(server.uiUrl)).status).toBe(200)
    const { client, close } = await connectTo(server.address)
    const { count } = await client.workflow.count(`${SEARCH_ATTRIBUTES.state} = 'running'`)
    expect(count).toBe(0)
    await close()
    await Promise.all([server.stop(), server.stop()])
    await server.stop()
    expect(await server.ended).toBeUndefined()
    expect(isAlive(process)).toBe(false)
  })

  it('keeps its state in its data file from one start to the next, on the given ports', async () => {
    const dataFile = newDataFile()
    const first = await start({ dataFile })
    await leaveWorkflow(first, 'kept')
    await first.stop()
    const second = await start({ dataFile, ports: portsOf(first) })
    expect(second.address).toBe(first.address)
    expect(second.uiUrl).toBe(first.uiUrl)
    expect(await hasWorkflow(second, 'kept')).toBe(true)
    expect(await hasWorkflow(second, 'never started')).toBe(false)
  })

  itInAll('keeps histories for 30 days, also where an earlier version has made the namespace', async () => {
    const dataFile = newDataFile()
    const first = await start({ dataFile })
    expect(await retentionDays(first)).toBe(30)
    await retentionDays(first, 1)
    await first.stop()
    expect(await retentionDays(await start({ dataFile }))).toBe(30)
  })

  it('refuses a second one on the same data file, naming the first, also when the same ports are wanted', async () => {
    const dataFile = newDataFile()
    const first = await start({ dataFile })
    for (const ports of [{}, portsOf(first)]) {
      expect(await refusal({ dataFile, ports })).toMatchObject({
        code: 'in-use',
        message: expect.stringMatching(
          new RegExp(`process ${process.pid}.*${first.address}.*${first.uiUrl}`),
        ),
      })
    }
  })

  it.each(chosen(['grpc', 'ui'] as const, ['grpc']))(
    'names the %s port that another program has',
    async (which) => {
      const taken = await listenOnFreePort()
      try {
        expect(await refusal({ ports: { [which]: taken.port } })).toMatchObject({
          code: 'port-taken',
          message: expect.stringContaining(`Port ${taken.port}`),
        })
      } finally {
        taken.server.close()
      }
    },
  )

  it('comes back on its ports with its state when it is killed', async () => {
    const reasons: string[] = []
    const server = await start({ dataFile: newDataFile(), onRestart: (reason) => reasons.push(reason) })
    await leaveWorkflow(server, 'survives')
    const killed = server.pid
    process.kill(killed, 'SIGKILL')
    await until(() => server.pid !== killed)
    expect(await hasWorkflow(server, 'survives')).toBe(true)
    expect(reasons).toEqual([expect.stringContaining('SIGKILL')])
  })

  itInAll('stays down, saying why, when it ends more often than it may', async () => {
    const restarts = { limit: 1, windowMs: 60_000, delayMs: 1 }
    const server = await start({ restarts })
    const first = server.pid
    process.kill(first, 'SIGKILL')
    await until(() => server.pid !== first && identify(server.pid) !== undefined)
    process.kill(server.pid, 'SIGKILL')
    expect(await server.ended).toMatch(/SIGKILL[^]*will not be restarted/)
  })

  itInAll('stops while it is being started again', async () => {
    const restarting = new Promise<void>((resolve) => {
      void start({ dataFile: newDataFile(), onRestart: () => resolve() }).then((server) =>
        process.kill(server.pid, 'SIGKILL'),
      )
    })
    await restarting
    const server = servers[0]!
    await server.stop()
    expect(await server.ended).toBeUndefined()
    expect(identify(server.pid)).toBeUndefined()
  })

  itInAll('adds the search attributes that the data file of an earlier version lacks', async () => {
    const dataFile = newDataFile()
    mkdirSync(dirname(dataFile))
    const { server: holder, port } = await listenOnFreePort()
    await new Promise((resolve) => holder.close(resolve))
    const args = ['server', 'start-dev', '--headless', '--port', String(port), '--db-filename', dataFile]
    const earlier = startLeashed(testServer().executable.path, args)
    const signal = AbortSignal.timeout(patient(30_000))
    await waitUntilReady({ port, namespace: 'default', searchAttributes: [], signal })
    await earlier.stop()
    const { client, close } = await connectTo((await start({ dataFile })).address)
    const query = Object.values(SEARCH_ATTRIBUTES).map((name) => `${name} = 'none'`)
    expect(await client.workflow.count(query.join(' AND '))).toMatchObject({ count: 0 })
    await close()
  })

  it('leaves nothing behind when its start is given up', async () => {
    const dataFile = newDataFile()
    const giveUp = new AbortController()
    const starting = refusal({ dataFile, signal: giveUp.signal })
    giveUp.abort(new Error('no longer wanted'))
    expect(await starting).toMatchObject({ message: 'no longer wanted' })
    expect((await start({ dataFile })).pid).toBeGreaterThan(0)
  })

  it('refuses the data file of another server version, and a file that is not a data file', async () => {
    const dataFile = newDataFile()
    await (await start({ dataFile })).stop()
    writeFileSync(`${dataFile}.version.json`, JSON.stringify({ version: '1.8.2', serverVersion: '1.31.2' }))
    expect(await refusal({ dataFile })).toMatchObject({
      code: 'data-file',
      message: expect.stringMatching(/1\.31\.2 \(CLI 1\.8\.2\).*move/),
    })
    const garbage = newDataFile()
    await (await start({ dataFile: garbage })).stop()
    writeFileSync(garbage, 'no database at all'.repeat(1_000))
    for (const suffix of ['-wal', '-shm']) rmSync(garbage + suffix, { force: true })
    expect(await refusal({ dataFile: garbage })).toMatchObject({
      code: 'data-file',
      message: expect.stringContaining(garbage),
    })
  })
})

/** Another Node process with a dev server of its own, which tells its number and its ports. */
async function startInAnotherProcess(
  dataFile: string,
): Promise<{ owner: ChildProcess; server: ProcessIdentity; ports: { grpc: number; ui: number } }> {
  const source = `
    const { startDevServer } = require(${JSON.stringify(require.resolve('../../../cli/dev/temporal/dev-server.ts'))})
    process.on('SIGINT', () => console.log('interrupted'))
    startDevServer(${JSON.stringify({ executable: testServer().executable, dataFile })}).then(
      ({ pid, address, uiUrl }) => console.log(JSON.stringify({ pid, address, uiUrl })))`
  const hook = require.resolve('../../support/typescript.mjs')
  const owner = spawn(process.execPath, ['--import', hook, '-e', source], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(owner)
  const [line] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string]
  const told = JSON.parse(line) as DevServer
  return { owner, server: identify(told.pid)!, ports: portsOf(told) }
}

describe('a dev server whose owner is killed', () => {
  it('ends too, and its data file and ports can be used again at once', async () => {
    const dataFile = newDataFile()
    const { owner, server, ports } = await startInAnotherProcess(dataFile)
    expect(await refusal({ dataFile })).toMatchObject({
      code: 'in-use',
      message: expect.stringContaining(`process ${owner.pid}`),
    })
    owner.kill('SIGKILL')
    const next = await start({ dataFile, ports })
    expect(isAlive(server)).toBe(false)
    expect(portsOf(next)).toEqual(ports)
  })

  itInAll('is out of reach of a Ctrl-C at the terminal of its owner', async () => {
    const { owner, server } = await startInAnotherProcess(newDataFile())
    const interrupted = once(owner.stdout!, 'data')
    process.kill(-owner.pid!, 'SIGINT')
    await interrupted
    expect(isAlive(server)).toBe(true)
    // It would end only a second after such a signal; that it leads a group of its own is sure at once.
    expect(() => process.kill(-server.pid, 0)).not.toThrow()
    owner.kill('SIGKILL')
    await until(() => !isAlive(server))
  })
})
