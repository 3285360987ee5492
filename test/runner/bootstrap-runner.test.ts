import { beforeEach, describe, expect, it } from '@jest/globals'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunnerResult } from '../../core/documents'
import { parseClaim, parseResult } from '../../intake/documents'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { Bootstraps } from './bootstrapping'
import { machineProcesses, useWorlds, type World } from './world'
import { jobRootBeside } from '../support/job-root'

const createWorld = useWorlds()
let world: World
let b: Bootstraps

beforeEach(async () => {
  world = createWorld()
  b = await Bootstraps.make(world)
})

const read = async (key: string): Promise<string | undefined> => (await world.store.get(key))?.toString()
const result = async (): Promise<RunnerResult | undefined> => {
  const text = await read(layout.result(world.jobId, 1))
  return text === undefined ? undefined : parseResult(text)
}
const claimant = async (): Promise<ReturnType<typeof parseClaim>> =>
  parseClaim((await read(layout.claim(world.jobId, 1)))!)

describe('a runner that a bootstrap has started', () => {
  it('runs the attempt in a container without a home, and hides its keys', async () => {
    await world.order({ run: 'until [ -e go ]; do sleep 0.05; done' })
    const { handOver, send, attemptId } = await b.next()
    const machine = b.container(handOver, { attemptId, send, root: b.root('m') })
    await until(async () => (await read(layout.beat(world.jobId, 1)))?.includes('"running"') === true)
    const pids = machineProcesses(attemptId).map(({ pid }) => pid)
    // The process of the container's command is one of them.
    expect(pids).toContain(machine.child.pid)
    for (const pid of pids) {
      const shown = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8')).join()
      for (const secret of [handOver.key, b.secrets.keyOf(attemptId), '.sealed', 'CRUCIBLE_BOOTSTRAP'])
        expect(shown).not.toContain(secret)
    }
    expect(await b.isLeft(send)).toBe(false)
    const { machine: claimed, send: name } = await claimant()
    expect([claimed, name]).toEqual([expect.stringMatching(/^unnamed-[0-9a-f]{32}$/), send])
    writeFileSync(join(jobRootBeside(b.root('m'), world.jobId), 'work/go'), '')
    expect(await machine.ended).toMatchObject({ code: 0 })
    expect(await result()).toMatchObject({ outcome: 'succeeded' })
  })

  it('claims the attempt with the id that its machine has learnt', async () => {
    await world.order({ run: 'true' })
    const { handOver, attemptId } = await b.next()
    const options = { attemptId, root: b.root('m'), machineId: { variable: 'TASK_ID' } }
    await b.container(handOver, options, { TASK_ID: 'ta-123' }).ended
    expect(await claimant()).toEqual({ machine: 'ta-123' })
  })

  it('is the only one that works where a provider made two machines of one send', async () => {
    // Both are on this host, where the end of a command ends all processes of its attempt: it waits for the other machine.
    const other = join(world.folder, 'other-has-ended')
    await world.order({ run: `while [ ! -e ${other} ]; do sleep 0.05; done` })
    const { handOver, send, attemptId } = await b.next()
    const machines = ['a', 'b'].map((name) => b.container(handOver, { attemptId, send, root: b.root(name) }))
    await Promise.race(machines.map(({ ended }) => ended))
    writeFileSync(other, '')
    await Promise.all(machines.map(({ ended }) => ended))
    expect(await result()).toMatchObject({ outcome: 'succeeded' })
    const said = machines.map(({ said }) => said)
    // On one host, the second one may also wait in vain for the directory of the job.
    const idle = said.filter((text) =>
      /there is nothing to do|no runner was started|still runs on this machine/.test(text),
    )
    expect([idle.length, said]).toEqual([1, said])
    expect(await b.isLeft(send)).toBe(false)
  })

  it('drains at a signal to the container', async () => {
    await world.order({ run: 'trap "exit 0" TERM; while :; do sleep 0.05; done' })
    const { handOver, send, attemptId } = await b.next()
    const machine = b.container(handOver, { attemptId, send, root: b.root('m') })
    await until(async () => (await read(layout.beat(world.jobId, 1)))?.includes('"running"') === true)
    machine.child.kill('SIGTERM')
    await machine.ended
    expect(await result()).toMatchObject({ outcome: 'stopped' })
  })
})
