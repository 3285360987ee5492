/** `crucible gc --alone` on a host whose control plane was killed, with real machines that no longer stop on their own. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { EXIT_CODES } from '../../client/errors'
import type { GarbageVerdict } from '../../core/messages'
import { CLOCK_SLACK_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { patient } from '../support/patience'
import { itInAll } from '../support/selection'
import { testServer } from '../support/temporal'
import { until } from '../support/until'
import { build, CommandLine, processesBelow } from './process'

jest.setTimeout(patient(3 * MINUTE_MS))

const LEASE_MS = 10 * SECOND_MS
/** After this long without a renewal the lease has certainly expired. */
const OVER_MS = LEASE_MS + 2 * SECOND_MS + CLOCK_SLACK_MS

let folder: string
let crucible: CommandLine

beforeEach(() => {
  build()
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-alone-')))
  writeFileSync(join(folder, 'train.py'), 'import time\nprint("step 1/2", flush=True)\ntime.sleep(600)\n')
  writeFileSync(join(folder, '.crucibleignore'), 'home\n')
  crucible = commandLine({})
})
afterEach(() => crucible.close())

const commandLine = (more: Record<string, string>): CommandLine =>
  new CommandLine(
    {
      CRUCIBLE_HOME: join(folder, 'home'),
      CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
      CRUCIBLE_LEASE: `${LEASE_MS / SECOND_MS}s`,
      CRUCIBLE_DRAIN: '1s',
      CRUCIBLE_POWER_OFF: '1s',
      CRUCIBLE_START_WITHIN: '5m',
      ...more,
    },
    folder,
  )

const machineProcesses = (): number[] => processesBelow(join(folder, 'home', 'local'))

async function alone(...flags: string[]): Promise<GarbageVerdict[]> {
  return (await crucible.json<{ verdicts: GarbageVerdict[] }>('gc', '--alone', ...flags)).verdicts
}

/** A job that runs on a machine, and no control plane. */
async function abandoned(): Promise<void> {
  const dev = await crucible.ready('dev')
  const { id } = await crucible.json<{ id: string }>('submit', 'train.py')
  // Until its first lease, a machine also has the time to start.
  const lease = join(folder, 'home', 'store', layout.lease(id, 1))
  await until(() => existsSync(lease), 60_000)
  dev.child.kill('SIGKILL')
  await dev.ended
  await until(() => processesBelow(join(folder, 'home', 'dev')).length === 0, 30_000)
}

describe('crucible gc --alone', () => {
  // test/activities/expired.test.ts keeps its promise in npm test.
  itInAll(
    'keeps a machine whose lease is valid, and ends it once when the lease has expired, without any server',
    async () => {
      await abandoned()
      expect(await alone()).toMatchObject([{ kind: 'machine', action: 'kept' }])
      // Its runner would stop it in time; a machine that hangs does not, and keeps costing money.
      const hung = machineProcesses()
      expect(hung.length).toBeGreaterThan(0)
      for (const pid of hung) process.kill(pid, 'SIGSTOP')
      const hungAtMs = Date.now()
      let verdicts = await alone('--dry-run')
      // Each look is a process.
      while (verdicts[0]?.action === 'kept') {
        await sleep(SECOND_MS)
        verdicts = await alone('--dry-run')
      }
      expect(Date.now() - hungAtMs).toBeGreaterThan(OVER_MS - 2 * LEASE_MS)
      expect(verdicts).toMatchObject([{ kind: 'machine', action: 'would-end' }])
      expect(machineProcesses()).toEqual(hung)
      expect(await alone()).toMatchObject([{ id: verdicts[0]!.id, action: 'ended' }])
      await until(() => machineProcesses().length === 0)
      expect((await alone()).filter(({ kind }) => kind === 'machine')).toEqual([])
    },
  )

  itInAll('ends nothing for a store of another deployment, or of none, or that it cannot reach', async () => {
    await abandoned()
    for (const pid of machineProcesses()) process.kill(pid, 'SIGSTOP')
    const hung = machineProcesses()
    await new Promise((resolve) => setTimeout(resolve, OVER_MS + 5 * SECOND_MS))
    const other = join(folder, 'home', 'other-store')
    mkdirSync(other)
    const fromOther = commandLine({ CRUCIBLE_STORE: pathToFileURL(other).href })
    expect(await fromOther.run('gc', '--alone')).toMatchObject({
      exitCode: EXIT_CODES.usage,
      stderr: expect.stringContaining('belongs to no deployment'),
    })
    writeFileSync(join(other, 'deployment.json'), '{"id":"dep-otherother"}')
    expect(await fromOther.json('gc', '--alone')).toMatchObject({ verdicts: [] })
    const unreachable = { CRUCIBLE_STORE: 's3://bucket?endpoint=http://127.0.0.1:1&region=here' }
    const keys = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }
    const answer = await commandLine({ ...unreachable, ...keys }).run('gc', '--alone')
    expect(answer.exitCode).not.toBe(0)
    expect(machineProcesses()).toEqual(hung)
    expect(await alone('--dry-run')).toMatchObject([{ action: 'would-end' }])
  })

  it('refuses the flags that need a server', async () => {
    for (const flags of [['--last'], ['--adopt'], ['--grace', '1m']])
      expect((await crucible.run('gc', '--alone', ...flags)).exitCode).toBe(EXIT_CODES.usage)
  })
})
