/** Two deployments on one host whose jobs have the same ids. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LocalConfig } from '../../../backends/local/config'
import type { MachineRecord } from '../../../backends/local/records'
import type { MachineHandle } from '../../../core/handle'
import { until } from '../../support/until'
import { patiently } from '../harness'
import { newJobId } from '../orders'
import { LocalHarness, processesMarked } from './harness'
import { STAND_IN, useRealRunner } from './runners'

const realRunner = useRealRunner()
const SYSTEM = '/usr/bin:/bin'
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/usr/bin/python3')
const UIDS = { first: 1_900_000_000, last: 1_900_065_535, isWanted: true }

/** What runs the machines, and as which user. */
const KINDS: readonly [string, () => string, Partial<LocalConfig>, typeof it.skip][] = [
  ['the user of the worker', realRunner, {}, it],
  [
    'users of their own',
    realRunner,
    { uids: UIDS, environment: { PATH: SYSTEM, HOME: '/root' } },
    isRoot ? it : it.skip,
  ],
  ['a runner of 0.1.0, which knows only the id of its attempt', () => STAND_IN, {}, it],
]

const harnesses: LocalHarness[] = []
afterEach(async () => {
  for (const h of harnesses.splice(0)) await h.dispose()
  for (const folder of folders.splice(0))
    for (const path of [folder, `${folder}.lock`]) rmSync(path, { recursive: true, force: true })
})
const folders: string[] = []

interface Side {
  h: LocalHarness
  deployment: string
  handle: MachineHandle
  machine: MachineRecord
  isRunning: () => Promise<boolean>
}

async function side(
  deployment: string,
  jobId: string,
  {
    runner,
    config,
    run,
    image = null,
  }: { runner: string; config: Partial<LocalConfig>; run?: string; image?: string | null },
): Promise<Side> {
  const h = await LocalHarness.make(runner, config)
  harnesses.push(h)
  h.backend = await h.reopen({}, { deployment })
  const order = await h.order({ jobId, deployment, run, runner: { image } })
  const outcome = await h.backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  const { handle } = outcome
  const path = join(h.root, 'machines', handle.id, 'machine.json')
  const machine = JSON.parse(readFileSync(path, 'utf8')) as MachineRecord
  if (machine.user !== undefined) folders.push(machine.user.folder)
  const isRunning = async (): Promise<boolean> =>
    (await h.backend.observe([handle], patiently()))[0]?.state === 'running'
  return { h, deployment, handle, machine, isRunning }
}

/** The processes of one side: they know one of its directories. */
function pidsOf({ h, handle, machine }: Side): number[] {
  const own = [h.directory, machine.folder ?? machine.user?.folder ?? h.directory]
  return processesMarked(handle.attemptId).filter((pid) =>
    ['environ', 'cmdline'].some((file) => own.some((folder) => readProc(pid, file).includes(folder))),
  )
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    // It has ended meanwhile.
    return ''
  }
}

describe.each(KINDS)(
  'machines of two deployments with the same id, run by %s,',
  (_, runner, config, test) => {
    test('are each ended alone, with everything that belongs to them', async () => {
      const jobId = newJobId()
      const started = { runner: runner(), config }
      const ours = await side('dep-ours', jobId, started)
      const theirs = await side('dep-theirs', jobId, started)
      expect(theirs.handle.id).toBe(ours.handle.id)
      await until(async () => (await ours.isRunning()) && (await theirs.isRunning()))
      if (config.uids !== undefined) expect(theirs.machine.user!.uid).not.toBe(ours.machine.user!.uid)
      const before = pidsOf(ours)
      expect(before.length).toBeGreaterThan(0)
      expect((await theirs.h.backend.list('dep-ours', patiently())).length).toBe(0)
      await theirs.h.backend.terminate(theirs.handle, patiently())
      expect(await theirs.isRunning()).toBe(false)
      expect(pidsOf(theirs)).toEqual([])
      expect(pidsOf(ours)).toEqual(expect.arrayContaining(before))
      expect(await ours.isRunning()).toBe(true)
      await ours.h.backend.terminate(ours.handle, patiently())
      expect(await ours.h.runningOf(ours.handle.attemptId)).toBe(0)
    })
  },
)

describe('a runner', () => {
  it("that ends its attempt leaves another deployment's machine with the same id alone", async () => {
    const jobId = newJobId()
    const ours = await side('dep-ours', jobId, { runner: realRunner(), config: {} })
    const theirs = await side('dep-theirs', jobId, { runner: realRunner(), config: {}, run: 'echo done' })
    await until(async () => !(await theirs.isRunning()))
    expect(await ours.isRunning()).toBe(true)
    expect(await ours.h.startsOf(ours.handle.attemptId)).toBe(1)
    expect(await ours.h.runningOf(ours.handle.attemptId)).toBeGreaterThan(3)
  })

  it("gives its container its deployment's name, and only that container is ended", async () => {
    const place = await LocalHarness.make(realRunner())
    harnesses.push(place)
    const [docker, log] = [join(place.directory, 'docker'), join(place.directory, 'docker.log')]
    const script = `echo "$@" >> '${log}'; case $1 in version) echo 27.0;; ps) echo c1;; run) exec sleep 600;; esac`
    await writeFile(docker, `#!/bin/sh\n${script}\n`)
    await chmod(docker, 0o755)
    const config = {
      environment: { PATH: `${place.directory}:${process.env['PATH']}`, HOME: place.directory },
    }
    const started = { runner: realRunner(), config, image: 'pytorch:2' }
    const { h, handle } = await side('dep-ours', newJobId(), started)
    const calls = (): string => readFileSync(log, 'utf8')
    const name = `${handle.attemptId}.dep-ours`
    await until(() => calls().includes(`--name crucible-${name} --label crucible.machine=${name} `))
    await h.backend.terminate(handle, patiently())
    expect(calls()).toContain(`ps -aq --filter label=crucible.machine=${name}\n`)
  })
})
