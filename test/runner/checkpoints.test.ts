import { describe, expect, it } from '@jest/globals'
import { appendFileSync, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkpointId, type Restores } from '../../core/job/checkpoint'
import { parseManifest } from '../../intake/documents'
import { verifyCheckpoint } from '../../storage/checkpoints'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { COUNTER, sumOf } from './programs'
import { JOB, useWorlds, type Machine, type World } from './world'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()

/** Attempt 1 of a counter, run to its end, with a checkpoint of steps 5 and 10. */
async function countToTen(world: World): Promise<Machine> {
  const bundle = await world.bundle({ 'counter.py': COUNTER })
  const machine = await world.launch({
    bundle,
    run: 'python3 counter.py 5 0 5 && sleep 1.5 && python3 counter.py 10 0 5',
  })
  await machine.end()
  expect((await world.checkpoints()).map(({ step }) => step)).toEqual([10, 5])
  return machine
}

/** Where the store has a file of a checkpoint. */
function fileOf(world: World, step: number, path: string): string {
  return join(world.storeFolder, layout.checkpoint(JOB, step, 1), 'files', path)
}

describe('a checkpoint in the store', () => {
  it('is what the workload wrote, file by file', async () => {
    const world = createWorld()
    const script = `
mkdir -p checkpoint-7/deep
printf weights > checkpoint-7/deep/model.bin
: > checkpoint-7/empty
printf 'echo hi' > checkpoint-7/run.sh
chmod 750 checkpoint-7/run.sh
head -c 20000000 /dev/zero > checkpoint-7/big.bin
ln -s checkpoint-7 latest
printf half > half.tmp
printf hidden > .hidden
`
    const machine = await world.launch({ run: `cd "$CRUCIBLE_CHECKPOINT_DIR" && ${script}` })
    const result = await machine.end()
    expect(result.checkpoint).toEqual({ id: checkpointId(7, 1), step: 7, attempt: 1 })
    const manifest = await world.manifest(result.checkpoint!)
    expect(manifest).toMatchObject({ jobId: JOB, isStepKnown: true, resumePath: 'checkpoint-7' })
    expect(manifest.files.map(({ path, sizeBytes, mode }) => [path, sizeBytes, mode & 0o700])).toEqual([
      ['checkpoint-7/big.bin', 20_000_000, 0o600],
      ['checkpoint-7/deep/model.bin', 7, 0o600],
      ['checkpoint-7/empty', 0, 0o600],
      ['checkpoint-7/run.sh', 7, 0o700],
    ])
    expect(manifest.files[0]!.parts).toHaveLength(2)
    expect(manifest.links).toEqual([{ path: 'latest', target: 'checkpoint-7' }])
    const at = { jobId: JOB, checkpoint: result.checkpoint!, manifest }
    expect(await verifyCheckpoint(world.store, at, world.folder)).toEqual([])

    const next = await world.launch({
      attempt: 2,
      run: `echo "$CRUCIBLE_RESUME_FROM"; cd "$CRUCIBLE_CHECKPOINT_DIR"; find . | sort; cat latest/deep/model.bin; echo; ./latest/run.sh`,
    })
    expect(await next.end()).toMatchObject({ outcome: 'succeeded', checkpoint: result.checkpoint })
    const inside = ['big.bin', 'deep', 'deep/model.bin', 'empty', 'run.sh'].map(
      (name) => `./checkpoint-7/${name}`,
    )
    expect(await next.output()).toEqual([
      join(next.root, 'checkpoints/checkpoint-7'),
      '.',
      './checkpoint-7',
      ...inside,
      './latest',
      'weights',
      'hi',
    ])
    expect(lstatSync(join(next.root, 'checkpoints/latest')).isSymbolicLink()).toBe(true)
  })

  it('is there while the command still runs, and is in the beat', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: 'echo w > "$CRUCIBLE_CHECKPOINT_DIR/step-3.pt"; until [ -e go ]; do sleep 0.05; done',
    })
    await machine.untilBeat(({ checkpoint }) => checkpoint?.step === 3)
    expect(await world.checkpoints()).toHaveLength(1)
    appendFileSync(join(machine.root, 'work/go'), '')
    await machine.end()
  })

  it('does not come from a command that was killed while writing', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: 'echo w > "$CRUCIBLE_CHECKPOINT_DIR/step-3.pt"; kill -9 $$',
      checkpoint: { directory: null, everyMs: 0, quietMs: 60_000, keep: 3 },
    })
    expect(await machine.end()).toMatchObject({ outcome: 'failed', signal: 'SIGKILL', checkpoint: null })
    expect(await world.checkpoints()).toEqual([])
  })

  it('of a file that is written in place is never a mixture', async () => {
    const world = createWorld()
    const program = `
import os, time
path = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "model.bin")
open(path, "wb").close()
for step in range(1, 9):
    with open(path, "r+b") as file:
        for _ in range(4):
            file.write(bytes([step]) * 1000000)
            time.sleep(0.05)
    print("step %d" % step, flush=True)
    time.sleep(0.9)
`
    const bundle = await world.bundle({ 'train.py': program })
    const machine = await world.launch({ bundle, run: 'python3 train.py' })
    const result = await machine.end()
    const checkpoints = await world.checkpoints()
    expect(checkpoints.length).toBeGreaterThan(1)
    expect(result.checkpoint).toEqual(checkpoints[0])
    for (const checkpoint of checkpoints) {
      const manifest = await world.manifest(checkpoint)
      expect(await verifyCheckpoint(world.store, { jobId: JOB, checkpoint, manifest }, world.folder)).toEqual(
        [],
      )
      const body = readFileSync(fileOf(world, checkpoint.step, 'model.bin'))
      expect(body.length).toBe(4_000_000)
      expect(body.equals(Buffer.alloc(body.length, body[0]))).toBe(true)
    }
  })

  it('goes by its declaration when the workload uses the helper', async () => {
    const world = createWorld()
    const program = `
import os, time
import crucible_job as job
def save(name, text):
    with open(os.path.join(job.checkpoint_dir(), name), "w") as file:
        file.write(text)
save("a.pt", "one")
job.progress(10, 20, 1.5)
job.checkpoint_saved("a.pt", 10)
while not os.path.exists("go"):
    time.sleep(0.05)
save("b-999.pt", "never declared")
while not job.should_stop():
    time.sleep(0.05)
save("a.pt", "two")
job.checkpoint_saved(os.path.join(job.checkpoint_dir(), "a.pt"), 12)
job.progress(20, 20, 0.5)
`
    const bundle = await world.bundle({ 'train.py': program })
    const machine = await world.launch({ bundle, run: 'trap : TERM; python3 train.py & wait; wait' })
    await machine.untilBeat(({ checkpoint }) => checkpoint?.step === 10)
    expect(await machine.beat()).toMatchObject({ progress: { step: 10, stepsTotal: 20, loss: 1.5 } })
    appendFileSync(join(machine.root, 'work/go'), '')
    await until(() => existsSync(join(machine.root, 'checkpoints/b-999.pt')))
    await world.drain(1, {})
    const result = await machine.end()
    expect(result.checkpoint).toMatchObject({ step: 12 })
    const manifest = await world.manifest(result.checkpoint!)
    expect(manifest.files.map(({ path }) => path)).toEqual(['a.pt'])
    expect(manifest.resumePath).toBe('a.pt')
    expect(readFileSync(fileOf(world, 12, 'a.pt'), 'utf8')).toBe('two')
  })
})

describe('restoring', () => {
  it('takes the checkpoint before when a digest is wrong, and says so', async () => {
    const world = createWorld()
    await countToTen(world)
    appendFileSync(fileOf(world, 10, 'step-10.json'), ' ')
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const next = await world.launch({ attempt: 2, bundle, run: 'python3 counter.py 20 0 100' })
    expect(await next.end()).toMatchObject({ outcome: 'succeeded', restoredFrom: { step: 5, attempt: 1 } })
    expect((await next.output())[0]).toBe('beginning after step 5')
    expect(await next.remarks()).toMatch(
      /checkpoint 000000000010-1 is damaged, using the previous one: .*wrong/,
    )
    expect(await world.artifact('sum.txt')).toBe(sumOf(20))
  })

  it('goes one checkpoint back each time that the command fails right after it, until none is left', async () => {
    const world = createWorld()
    await countToTen(world)
    const run = 'basename "$CRUCIBLE_RESUME_FROM"; exit 3'
    const next = await world.launch({ attempt: 2, run })
    expect(await next.end()).toMatchObject({ outcome: 'failed', reason: 'workload', exitCode: 3 })
    expect(await next.output()).toEqual(['step-10.json', 'step-5.json'])
    const restores = JSON.parse((await world.store.get(layout.restores(JOB, 2)))!.toString()) as Restores
    expect(restores.restores.map(({ checkpoint, outcome }) => [checkpoint.step, outcome])).toEqual([
      [10, 'failed'],
      [5, 'failed'],
    ])
    expect(await next.remarks()).toContain('no checkpoint is left to resume from')
  })

  it('never takes what has no manifest', async () => {
    const world = createWorld()
    await countToTen(world)
    await world.store.delete(`${layout.checkpoint(JOB, 10, 1)}manifest.json`)
    await world.store.delete(`${layout.checkpoint(JOB, 5, 1)}manifest.json`)
    const next = await world.launch({ attempt: 2, run: 'echo "${CRUCIBLE_RESUME_FROM-unset}"' })
    expect(await next.end()).toMatchObject({ outcome: 'succeeded', restoredFrom: null })
    expect(await next.output()).toEqual(['unset'])
  })

  itInAll('does not upload again what was restored', async () => {
    const world = createWorld()
    await countToTen(world)
    const next = await world.launch({ attempt: 2, run: 'sleep 1.5' })
    expect(await next.end()).toMatchObject({
      restoredFrom: { step: 10 },
      checkpoint: { step: 10, attempt: 1 },
    })
    expect(await world.checkpoints()).toHaveLength(2)
  })

  it('counts on where the names tell no step, so that what is newer is restored', async () => {
    const world = createWorld()
    for (const attempt of [1, 2, 3]) {
      const machine = await world.launch({
        attempt,
        run: `cat "$CRUCIBLE_CHECKPOINT_DIR"/*.pt 2>/dev/null || true; echo ${attempt} > "$CRUCIBLE_CHECKPOINT_DIR/model.pt"; echo o > "$CRUCIBLE_CHECKPOINT_DIR/optimizer.pt"`,
      })
      const { checkpoint } = await machine.end()
      const id = checkpointId(attempt, attempt)
      expect(checkpoint).toEqual({ id, step: attempt, attempt, isStepKnown: false })
      expect(await world.manifest(checkpoint!)).toMatchObject({ isStepKnown: false, resumePath: '.' })
      const expected = attempt === 1 ? [] : [String(attempt - 1), 'o']
      expect(await machine.output()).toEqual(expected)
    }
  })
})

describe('an upload', () => {
  it('that a dead machine has begun leaves no manifest', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: 'head -c 400000000 /dev/zero > "$CRUCIBLE_CHECKPOINT_DIR/step-1.pt"; sleep 60',
    })
    const temporary = join(world.storeFolder, '.tmp')
    await until(() =>
      readdirSync(temporary).some((name) => name.startsWith('runner-') && size(join(temporary, name)) > 1e6),
    )
    process.kill(machine.runner(), 'SIGKILL')
    await machine.exited
    const key = `${layout.checkpoint(JOB, 1, 1)}manifest.json`
    const manifest = await world.store.get(key)
    // On a fast disk the upload may have been over: then it must be whole.
    if (manifest !== undefined) {
      const at = { jobId: JOB, checkpoint: { id: checkpointId(1, 1), step: 1, attempt: 1 } }
      expect(
        await verifyCheckpoint(
          world.store,
          { ...at, manifest: parseManifest(manifest.toString()) },
          world.folder,
        ),
      ).toEqual([])
    }
    expect(await world.checkpoints()).toEqual(manifest === undefined ? [] : [expect.anything()])
  })
})

function size(path: string): number {
  try {
    return lstatSync(path).size
  } catch {
    return 0
  }
}
