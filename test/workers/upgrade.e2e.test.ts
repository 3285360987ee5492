/**
 * A newer package takes over from an older one in real processes, while jobs run. The older one is this checkout's package, or the
 * tarball in `CRUCIBLE_TEST_OLD_PACKAGE`, such as that of the last release. The newer one is this checkout's, with another version,
 * workflow bundle and runner.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { MachineRecord } from '../../backends/local/records'
import type { CommandLine } from '../cli/process'
import { hasSaved, isOver, Stage } from '../cli/stage'
import { install, pack } from '../support/package'

const NEWER_VERSION = '999.0.0'

let stage: Stage
let older: CommandLine
let newer: CommandLine
let runners: { older: string; newer: string }

const digestOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')
const RUNNER = 'dist/runner/crucible-runner.pyz'

/** Gives an installed package another version, and changes each program in it that takes part in a job. */
function renew(installed: string): void {
  const description = join(installed, 'package.json')
  const { version, ...rest } = JSON.parse(readFileSync(description, 'utf8')) as Record<string, unknown>
  expect(version).not.toBe(NEWER_VERSION)
  writeFileSync(description, JSON.stringify({ ...rest, version: NEWER_VERSION }))
  // At its start, because it ends with a source map in base64, which text behind it would make unreadable.
  const bundle = join(installed, 'dist/workers/workflow-bundle.js')
  writeFileSync(bundle, `/* newer */${readFileSync(bundle, 'utf8')}`)
  const comment = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'a') as it: it.comment = b'newer'"
  execFileSync('python3', ['-c', comment, join(installed, RUNNER)])
}

beforeAll(async () => {
  stage = await Stage.set(async (folder) => {
    const [olderFolder, newerFolder] = ['older', 'newer'].map((name) => join(folder, 'home', name))
    for (const path of [olderFolder!, newerFolder!]) mkdirSync(path, { recursive: true })
    const { tarball } = await pack()
    const from = await install(process.env['CRUCIBLE_TEST_OLD_PACKAGE'] ?? tarball, olderFolder!)
    const to = await install(tarball, newerFolder!)
    renew(to)
    runners = { older: digestOf(join(from, RUNNER)), newer: digestOf(join(to, RUNNER)) }
    expect(runners.older).not.toBe(runners.newer)
    return join(from, 'dist/cli/main.js')
  })
  older = stage.crucible
  newer = older.from(join(stage.folder, 'home/newer/node_modules/crucible-ml/dist/cli/main.js'))
}, 240_000)

afterAll(() => stage?.close(), 60_000)

/** Digests of the runners that the machines were ordered with. */
function runnersNow(): string[] {
  const machines = join(stage.folder, 'home/local/machines')
  return readdirSync(machines)
    .map((name) => JSON.parse(readFileSync(join(machines, name, 'machine.json'), 'utf8')) as MachineRecord)
    .map(({ runnerSha256 }) => runnerSha256)
}

/** Workflow tasks that failed: a history that the newer package cannot continue makes them. */
async function failedTasks(): Promise<string[]> {
  return stage.temporal(async (client) => {
    const failed: string[] = []
    for await (const { workflowId, runId } of client.workflow.list()) {
      const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory()
      for (const { workflowTaskFailedEventAttributes: failure } of events ?? [])
        if (failure) failed.push(`${workflowId}: ${failure.failure?.message ?? ''}`)
    }
    return failed
  })
}

describe('an upgrade of the package while jobs run', () => {
  it('leaves each on its machine; the next attempt and new jobs work too', async () => {
    expect(await older.run('--version')).toMatchObject({ stdout: expect.not.stringContaining(NEWER_VERSION) })
    expect(await newer.run('--version')).toMatchObject({ stdout: expect.stringContaining(NEWER_VERSION) })
    const [staysAt, movesAt, startsAt] = [stage.gate(), stage.gate(), stage.gate()]
    const stays = await stage.submit('--env', `GATE=${staysAt}`)
    const moves = await stage.submit('--env', `GATE=${movesAt}`)
    for (const id of [stays, moves]) await stage.untilShown(id, hasSaved(1))

    stage.dev.child.kill('SIGTERM')
    expect(await stage.dev.ended).toMatchObject({ exitCode: 0 })
    stage.dev = await newer.ready('dev')
    const open = (gate: string, attempt: number): void => writeFileSync(join(gate, String(attempt)), '')

    // Interrupted under the newer package: it continues from what the older one's runner saved, with the runner that it began with.
    expect((await newer.run('interrupt', moves, '--notice', '3s')).exitCode).toBe(0)
    await stage.untilShown(moves, hasSaved(2))
    expect(runnersNow()).toEqual([runners.older, runners.older])
    open(movesAt, 2)
    const moved = await stage.untilShown(moves, isOver)
    expect(moved).toMatchObject({
      state: 'succeeded',
      attempts: [
        { state: 'interrupted', stepsLost: 0 },
        { state: 'succeeded', restoredFrom: { step: 10 } },
      ],
    })

    // The other one did not notice.
    expect(await stage.show(stays)).toMatchObject({ state: 'running', isLive: true })
    open(staysAt, 1)
    const stayed = await stage.untilShown(stays, isOver)
    expect(stayed).toMatchObject({ state: 'succeeded', attempts: [{ number: 1, state: 'succeeded' }] })
    for (const id of [stays, moves]) {
      const { lines } = await newer.json<{ lines: { m: string; s: string }[] }>('logs', id)
      expect(lines.flatMap(({ m }) => /^step (\d+)\//.exec(m)?.[1] ?? []).map(Number)).toEqual(
        Array.from({ length: 60 }, (_, index) => index + 1),
      )
      expect(lines.filter(({ s }) => s === 'gap')).toEqual([])
    }

    // The older command line, still in use elsewhere, starts a job of the newer workers and reads it.
    const { id } = await older.json<{ id: string }>('submit', 'train.py', '--env', `GATE=${startsAt}`)
    await stage.untilShown(id, hasSaved(1))
    expect(runnersNow()).toEqual([runners.newer])
    expect(await older.json('show', id)).toMatchObject({ state: 'running', isLive: true })
    open(startsAt, 1)
    expect(await stage.untilShown(id, isOver)).toMatchObject({ state: 'succeeded' })
    expect(await failedTasks()).toEqual([])
  }, 240_000)
})
