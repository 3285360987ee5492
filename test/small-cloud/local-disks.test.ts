/** The program that puts a job's data on the local disks of a machine, on machines that have some. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { readMachineFile } from '../../backends/ec2/launch/template'
import { HAS_NAMESPACES, sh, useMachines } from '../../packages/small-cloud/test/machines/machines'
import { Ec2Harness } from '../backends/ec2/harness'
import { patiently, settled } from '../backends/harness'
import { until } from '../support/until'
import type { Machine } from '#small-cloud/machines/machine'

const createWorld = useMachines()
const test = HAS_NAMESPACES ? it : it.skip
/** Larger than the disk of any host of these tests. */
const sizeGb = 1_000_000

const USE = `state, home = "/var/lib/crucible", "/root"; print(use_local_disks(state, home, False))`
const run = (machine: Machine, program: string) =>
  sh(machine, `python3 - <<'END'\n${readMachineFile('local_disks.py')}\n${program}\nEND`)

describe('the local disks of a machine', () => {
  test.each([
    ['striped', 3],
    ['alone', 1],
  ])('hold jobs and caches, %s, until the machine stops', async (_, count) => {
    const world = createWorld()
    const spec = { id: 'i-00000000000000001', localDisks: { count, sizeGb } }
    const machine = world.create(spec)
    await machine.boot()
    expect(await run(machine, USE)).toMatchObject({ stdout: 'None\n', exitCode: 0 })
    // A repeated start changes nothing.
    expect(await run(machine, USE)).toMatchObject({ stdout: 'None\n', exitCode: 0 })
    const places = ['/var/lib/crucible/jobs', '/root/.cache']
    const write = places.map((place) => `mountpoint ${place} && echo kept >${place}/file`).join(' && ')
    expect(await sh(machine, write)).toMatchObject({ exitCode: 0 })
    expect((await sh(machine, 'ls /run/local-disks/file-systems/*')).stdout).toMatch(/cache\njobs/)
    await machine.kill()
    const again = world.create(spec)
    await again.boot()
    expect((await sh(again, `ls -A ${places.join(' ')}`)).stdout).not.toContain('file')
    expect(await run(again, USE)).toMatchObject({ stdout: 'None\n', exitCode: 0 })
  })

  test('are given to a job by the start of its runner', async () => {
    const accelerator = { name: 'A10G', count: 1, memoryMiB: 22_888 }
    const type = { vcpus: 4, memoryGiB: 16, usdPerHour: 1.006, accelerator }
    const types = { 'g5.xlarge': { ...type, localDisks: { count: 2, sizeGb } } }
    const h = await Ec2Harness.make({ localDisks: true, types })
    try {
      const order = await h.order({ capacityType: 'on-demand' })
      const handle = await h.launched(order)
      await until(async () => (await settled(h.backend.start!(handle, order, patiently()))) === 'answer')
      const folder = join(h.directory, handle.id, 'run/local-disks/file-systems/crucible')
      expect(readdirSync(folder)).toEqual(['cache', 'jobs'])
    } finally {
      await h.dispose()
    }
  })
})
