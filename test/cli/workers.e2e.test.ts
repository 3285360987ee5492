import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from '@jest/globals'
import type { WorkerList } from '../../client/worker-list'
import { makeMarkedFolder } from '../support/marked-store'
import { freshNamespace } from '../support/namespace'
import { connectTo, testServer, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { build, CommandLine } from './process'

const PROGRAM = `import os, time
print("says", os.environ["SAYS"], "aloud", flush=True)
while not os.path.exists(os.environ["END"]):
    time.sleep(0.1)
`

let connected: TestConnection
let crucible: CommandLine
/** The program ends when this file is there. */
let end: string

beforeAll(async () => {
  build()
  connected = await connectTo()
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-workers-')))
  writeFileSync(join(folder, 'hello.py'), PROGRAM)
  end = join(folder, 'end')
  writeFileSync(join(folder, '.crucibleignore'), 'home\n')
  // An earlier worker made the store: a submission never makes one.
  makeMarkedFolder(join(folder, 'home', 'store'))
  const namespace = await freshNamespace(connected.client.connection as never)
  crucible = new CommandLine(
    {
      CRUCIBLE_HOME: join(folder, 'home'),
      CRUCIBLE_METRICS: '127.0.0.1:0',
      TEMPORAL_ADDRESS: testServer().address,
      TEMPORAL_NAMESPACE: namespace,
      SAYS: 'hello',
    },
    folder,
  )
}, 120_000)

afterAll(async () => {
  await crucible.close()
  await connected.close()
}, 60_000)

/** Returns the answer of a worker's process at a path. */
async function textAt({ document }: { document: Record<string, unknown> }, path: string): Promise<string> {
  const answer = await fetch(`http://${String(document['metrics'])}${path}`)
  expect(answer.status).toBe(200)
  return answer.text()
}

it('a job waits until workers are started, each in a process of its own, and says so meanwhile', async () => {
  const { id, isServed } = await crucible.json<{ id: string; isServed: boolean }>(
    'submit',
    'hello.py',
    '--id',
    'job-waits',
    '--secret',
    'SAYS',
    '--env',
    `END=${end}`,
  )
  expect(isServed).toBe(false)
  expect((await crucible.run('doctor')).stdout).toMatch(
    /error +workers +no worker polls crucible\n.*crucible worker orchestrator/,
  )

  const { workers, queues } = await crucible.json<WorkerList>('workers')
  expect(workers).toEqual([])
  expect(queues[0]).toMatchObject({ queue: 'crucible', type: 'workflow', workers: 0, waiting: 1 })
  expect((await crucible.run('workers')).stdout).toMatch(/^No worker runs\..*`crucible worker`/)

  // The server may forget it before a worker is there.
  const { exitCode, stdout } = await crucible.run('extend', id, '--budget', '3', '--json')
  expect(exitCode).toBe(6)
  expect(JSON.parse(stdout)).toMatchObject({
    error: { kind: 'unconfirmed', hint: expect.stringContaining(id) },
  })

  const orchestrator = await crucible.ready('worker', 'orchestrator')
  expect(orchestrator.document).toMatchObject({ roles: ['orchestrator'], address: testServer().address })
  const local = await crucible.ready('worker', 'local')
  expect((await crucible.run('extend', id, '--budget', '3')).exitCode).toBe(0)
  await until(async () => {
    const { workers } = await crucible.json<WorkerList>('workers')
    return workers.length === 2
  })
  const list = await crucible.json<WorkerList>('workers')
  expect(list.workers).toMatchObject(
    [orchestrator, local].map(({ child }, at) => ({
      role: ['orchestrator', 'local'][at],
      pid: child.pid,
      version: expect.stringMatching(/^\d/),
    })),
  )
  expect(list.queues.map(({ queue, type, workers }) => `${workers} ${type} ${queue}`)).toEqual([
    '1 workflow crucible',
    '1 activity crucible',
    '1 activity crucible.local',
    '1 activity crucible.local.watch',
  ])
  writeFileSync(end, '')
  expect((await crucible.run('logs', '-f', id)).stdout).toContain('says *** aloud')
  expect(await crucible.json('show', id)).toMatchObject({
    state: 'succeeded',
    cost: { budgetMicroUsd: 3_000_000 },
  })

  const metrics = await textAt(orchestrator, '/metrics')
  // The metrics of Temporal's SDK come first, then those of the product.
  expect(metrics).toMatch(/^temporal_worker_task_slots_available\{.*\} \d+$/m)
  expect(metrics).toMatch(
    /^crucible_activities_total\{activity="finishJob",outcome="ok",role="orchestrator"\} 1$/m,
  )
  expect(metrics).toMatch(/^crucible_jobs\{state="running"\} [01]$/m)
  expect(await textAt(local, '/metrics')).toMatch(
    /^crucible_attempts_ended_total\{backend="local",capacity="[a-z-]+",end="succeeded"\} 1$/m,
  )
  expect(metrics).not.toContain(id)
  expect(await textAt(local, '/readyz')).toBe('all workers poll\n')

  for (const { child, ended } of [orchestrator, local]) {
    child.kill('SIGTERM')
    expect((await ended).exitCode).toBe(0)
  }
})
