import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SmallDisk } from '../../chaos/disk'
import { patiently } from '../harness'
import { LocalHarness } from './harness'
import { STAND_IN } from './runners'

let h: LocalHarness
let disk: SmallDisk | undefined

beforeEach(async () => {
  h = await LocalHarness.make(STAND_IN)
  mkdirSync(join(h.root, 'ended'), { recursive: true })
  disk = SmallDisk.mount(join(h.root, 'ended'))
})
afterEach(async () => {
  disk?.unmount()
  await h.dispose()
})

describe('a disk without room for what is kept of an ended machine', () => {
  it('delays its end, which continues once there is some', async () => {
    // Only who may mount can have a disk that is really full.
    if (disk === undefined) return
    const outcome = await h.backend.launch(await h.order(), patiently())
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    const { handle } = outcome
    const freeing = new AbortController()
    const full = disk.fill(freeing.signal)
    await expect(h.backend.terminate(handle, patiently())).rejects.toMatchObject({ class: 'transient' })
    expect(await h.runningOf(handle.attemptId)).toBe(0)
    freeing.abort()
    await full
    await h.backend.terminate(handle, patiently())
    expect(await h.backend.list('dep-0123456789', patiently())).toEqual([])
  })
})
