import { describe, expect, it } from '@jest/globals'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../support/until'
import { COUNTER, sumOf } from './programs'
import { machineProcesses, runs, useWorlds, type World } from './world'

const createWorld = useWorlds()

/** The store's disk goes away: in its place is something that is no folder. */
function breakStore(world: World): void {
  renameSync(world.storeFolder, `${world.storeFolder}.away`)
  writeFileSync(world.storeFolder, 'not a folder')
}

function mendStore(world: World): void {
  rmSync(world.storeFolder)
  renameSync(`${world.storeFolder}.away`, world.storeFolder)
}

describe('a store that does not answer', () => {
  it('costs a running command nothing, and nothing is lost', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const machine = await world.launch({ bundle, run: 'python3 counter.py 80 0.05 10' })
    await machine.untilBeat(({ progress }) => (progress?.step ?? 0) > 5)
    breakStore(world)
    await sleep(2_500)
    expect(machineProcesses(machine.id).some((each) => runs(each, 'counter.py'))).toBe(true)
    mendStore(world)
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'succeeded', checkpoint: { step: 80 } })
    expect(await world.artifact('sum.txt')).toBe(sumOf(80))
    const lines = await machine.lines()
    expect(lines.map(({ n }) => n)).toEqual(lines.map((_, at) => at + 1))
    expect((await machine.output()).filter((line) => line.startsWith('step'))).toHaveLength(80)
    const remarks = await machine.remarks()
    expect(remarks).toMatch(/sending beats does not work, trying again: could not write/)
    expect(remarks).toMatch(/sending beats works again after/)
  })

  it('at the end is waited for', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: 'echo step 1; until [ -e go ]; do sleep 0.05; done; echo x > "$CRUCIBLE_OUTPUT_DIR/a"',
    })
    await machine.untilBeat(({ progress }) => progress !== null)
    breakStore(world)
    writeFileSync(`${machine.root}/work/go`, '')
    await until(() => !machineProcesses(machine.id).some(({ command }) => command.includes(' leash ')))
    await sleep(500)
    mendStore(world)
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', artifacts: [{ path: 'a' }] })
  })

  it('is given up when the lease has lapsed, and the machine ends', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const machine = await world.launch({
      bundle,
      run: 'python3 counter.py 10000 0.05 10',
      leaseMs: 2_500,
      drainMs: 1_000,
      powerOffMs: 500,
    })
    await machine.untilBeat(({ progress }) => progress !== null)
    breakStore(world)
    await machine.exited
    expect(machineProcesses(machine.id)).toEqual([])
    mendStore(world)
    expect(await machine.result()).toBeUndefined()
  })

  it('at the start is waited for, as long as the start is not too late', async () => {
    const world = createWorld()
    await world.order({ run: 'echo run' })
    breakStore(world)
    const machine = world.start()
    await sleep(800)
    mendStore(world)
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
  })
})
