import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from '@jest/globals'
import { makeMarkedFolder } from '../support/marked-store'
import { freshNamespace } from '../support/namespace'
import { connectTo, testServer, type TestConnection } from '../support/temporal'
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
  writeFileSync(end, '')
  expect((await crucible.run('logs', '-f', id)).stdout).toContain('says *** aloud')
  expect(await crucible.json('show', id)).toMatchObject({
    state: 'succeeded',
    cost: { budgetMicroUsd: 3_000_000 },
  })

  for (const { child, ended } of [orchestrator, local]) {
    child.kill('SIGTERM')
    expect((await ended).exitCode).toBe(0)
  }
})
