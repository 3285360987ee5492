import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { rebalanceNotice } from '#small-cloud/machines/metadata'
import { MetadataService } from '#small-cloud/machines/metadata-service'
import { COUNTER, sumOf } from './programs'
import { useWorlds, type Machine, type Wanted, type World } from './world'

const createWorld = useWorlds()
const [PATH] = Object.keys(rebalanceNotice(new Date(0)))
const SEEN_AT_MS = Date.UTC(2026, 10, 21, 10)

/** Saves when its helper says that it is a good moment, and then ends. */
const SAVES_WHEN_TOLD = `
import os, time
import crucible_job as job

step, saved = 0, 0
while not saved:
    step += 1
    job.progress(step)
    time.sleep(0.05)
    if job.should_save():
        saved = step
        with open(os.path.join(job.checkpoint_dir(), "model.pt"), "w") as file:
            file.write(str(step))
        job.checkpoint_saved("model.pt", step)
print("saved at", saved, "asked again:", job.should_save(), flush=True)
`

let world: World
let service: MetadataService
let told: string | undefined
beforeEach(async () => {
  told = undefined
  world = createWorld()
  service = new MetadataService(Object.defineProperty({}, PATH!, { enumerable: true, get: () => told }), '', {
    isOwn: () => true,
  })
  world.environment['AWS_EC2_METADATA_SERVICE_ENDPOINT'] = await service.listen()
  delete world.environment['AWS_EC2_METADATA_DISABLED']
})
afterEach(() => service.close())

const recommend = (): void => {
  told = rebalanceNotice(new Date(SEEN_AT_MS))[PATH!] as string
}

/** A training that saves often and keeps one checkpoint in an hour. */
async function launchCounter(wanted: Wanted & { steps?: number }): Promise<Machine> {
  const { steps = 10_000, ...rest } = wanted
  const bundle = await world.bundle({ 'counter.py': COUNTER })
  const machine = await world.launch({
    bundle,
    run: `python3 counter.py ${steps} 0.05 5`,
    notice: { kind: 'instance-metadata' },
    checkpoint: { directory: null, everyMs: 3_600_000, quietMs: 100, keep: 3 },
    ...rest,
  })
  await machine.untilBeat(
    ({ checkpoint, progress }) => checkpoint !== null && progress!.step! > checkpoint.step + 20,
  )
  return machine
}

describe('a recommendation to leave the machine', () => {
  it('brings one checkpoint at once, and the training continues', async () => {
    const machine = await launchCounter({ steps: 150 })
    const [before] = await world.checkpoints()
    recommend()
    const beat = await machine.untilBeat(({ checkpoint }) => checkpoint!.step > before!.step)
    expect(beat).toMatchObject({ phase: 'running', rebalanceAtMs: SEEN_AT_MS })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    // The first of all, the one that was asked for, and the last.
    expect((await world.checkpoints()).map(({ step }) => step)).toEqual([
      150,
      beat.checkpoint!.step,
      before!.step,
    ])
    expect(await world.artifact('sum.txt')).toBe(sumOf(150))
    expect(await machine.remarks()).toContain('may take this machine back soon')
  })

  it('moves the job where its owner wants that', async () => {
    const machine = await launchCounter({ onRebalance: 'move' })
    recommend()
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'migrated' })
    expect(result.checkpoint!.step).toBe(result.progress!.step)
  })

  it('is only passed on if its owner wants that', async () => {
    const machine = await launchCounter({ onRebalance: 'ignore' })
    const [before] = await world.checkpoints()
    recommend()
    const { seq } = await machine.untilBeat(({ rebalanceAtMs }) => rebalanceAtMs === SEEN_AT_MS)
    await machine.untilBeat((beat) => beat.seq > seq + 20)
    expect(await world.checkpoints()).toEqual([before])
    await world.drain(1, { reason: 'cancelled' })
    await machine.end()
  })

  it('reaches a program that asks its helper, once', async () => {
    const bundle = await world.bundle({ 'train.py': SAVES_WHEN_TOLD })
    const machine = await world.launch({
      bundle,
      run: 'python3 train.py',
      notice: { kind: 'instance-metadata' },
    })
    await machine.untilBeat(({ progress }) => (progress?.step ?? 0) > 2)
    recommend()
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', checkpoint: { attempt: 1 } })
    const [line] = (await machine.output()).filter((text) => text.startsWith('saved'))
    expect(line).toMatch(/^saved at \d+ asked again: False$/)
    expect((await world.checkpoints())[0]).toMatchObject({ step: Number(line!.split(' ')[2]) })
  })
})
