import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from '@jest/globals'
import { watchDisk } from '../../../cli/dev/disk'
import { SmallDisk } from '../../chaos/disk'
import { until } from '../../support/until'
import { World } from '../outside'

it('A full disk is named by `crucible dev` while it lasts, and by commands whose server does not answer', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'crucible-full-'))
  const disk = SmallDisk.mount(folder)
  // Only who may mount can have a disk that is really full.
  if (disk === undefined) return
  const cli = new World()
  cli.environment['CRUCIBLE_HOME'] = folder
  const told: string[] = []
  const stop = watchDisk(folder, (text) => told.push(text), 20)
  const full = new AbortController()
  try {
    expect(told).toEqual([])
    const filled = disk.fill(full.signal)
    await until(() => told.length === 1)
    expect(told[0]).toMatch(/^The disk of .+ is full: free some space\. Until then Temporal/)
    const { stderr, exitCode } = await cli.run('list')
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 7,
      stderr: expect.stringContaining(`The disk of ${folder} is full: free some space.`),
    })
    full.abort()
    await filled
    await until(() => told.length === 2)
    expect(told[1]).toBe(`The disk of ${folder} has space again.`)
  } finally {
    full.abort()
    stop()
    cli.remove()
    disk.unmount()
    await rm(folder, { recursive: true, force: true })
  }
})
