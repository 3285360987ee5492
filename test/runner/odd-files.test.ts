import { describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseOutputs } from '../../intake/documents'
import { layout } from '../../storage/layout'
import { JOB, useWorlds } from './world'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()

describe('what a command does to its folders', () => {
  it('may have names that no document can hold: they are left out, and the others are kept', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: `python3 -c "
import os
os.chdir(os.environ['CRUCIBLE_OUTPUT_DIR'])
for name in (b'bad\\xff.txt', b'good.txt', 'ü ß\\n#?.txt'.encode()):
    open(name, 'w').write('kept')
os.symlink('/etc', b'far\\xff')
open(os.path.join(os.environ['CRUCIBLE_CHECKPOINT_DIR'].encode(), b'bad\\xff.pt'), 'w').close()
"`,
    })
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'succeeded', checkpoint: null })
    expect(result.artifacts.map(({ path }) => path)).toEqual(['good.txt', 'ü ß\n#?.txt'])
    expect(await world.artifact('ü ß\n#?.txt')).toBe('kept')
    const remarks = await machine.remarks()
    expect(remarks).toMatch(/the artifact bad\\xff\.txt is not kept: its name is not UTF-8/)
    expect(remarks).toMatch(/far\\xff is not kept: it points outside the job's directories/)
    expect(remarks).toMatch(/Left out of the checkpoints: bad\\xff\.pt \(its name is not UTF-8: rename it\)/)
    expect(result.warning?.kind).toBe('left-out')
  })

  itInAll('may remove them all: what the order names elsewhere is kept', async () => {
    const world = createWorld()
    const machine = await world.launch({
      outputs: ['weights.txt'],
      run: 'echo w > weights.txt; rm -r "$CRUCIBLE_OUTPUT_DIR" "$CRUCIBLE_CHECKPOINT_DIR" "$CRUCIBLE_CONTROL_DIR"; sleep 1',
    })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', artifacts: [{ path: 'weights.txt' }] })
  })

  it('may leave links that lead nowhere, round in a circle or elsewhere, and pipes', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: `cd "$CRUCIBLE_CHECKPOINT_DIR"; ln -s self self; ln -s nowhere gone; ln -s /nowhere far; mkfifo pipe
        ln -s ../work/loop round; ln -s loop ../work/loop; ln -s /etc folder; echo host > ../work/host; ln -s ../work/host host
        mkdir step-1; echo 1 > step-1/a; ln -s step-1 latest`,
    })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', checkpoint: { step: 1 } })
    const [checkpoint] = await world.checkpoints()
    const manifest = await world.manifest(checkpoint!)
    expect(manifest.files.map(({ path }) => path)).toEqual(['host', 'step-1/a'])
    const next = await world.launch({ attempt: 2, run: 'cd "$CRUCIBLE_CHECKPOINT_DIR"; cat latest/a host' })
    await next.end()
    expect(await next.output()).toEqual(['1', 'host'])
  })

  it('may leave empty folders, links to them, permissions and times in its outputs: they are noted for a download', async () => {
    const world = createWorld()
    const machine = await world.launch({
      outputs: ['figures'],
      run: `mkdir -p figures/empty; ln -s empty figures/latest; ln -s /etc figures/far; cd "$CRUCIBLE_OUTPUT_DIR"; mkdir logs
        echo x > run.sh; chmod 750 run.sh; touch -d '2020-01-02 03:04:05.678901 UTC' run.sh`,
    })
    await machine.end()
    const outputs = parseOutputs((await world.store.get(layout.outputs(JOB, 1)))!.toString())
    expect(outputs.folders.map(({ path }) => path)).toEqual(['figures', 'figures/empty', 'logs'])
    expect(outputs.links).toEqual([{ path: 'figures/latest', target: 'empty' }])
    const modifiedAtMs = Date.parse('2020-01-02T03:04:05.678Z')
    expect(outputs.files).toEqual([{ path: 'run.sh', mode: 0o750, modifiedAtMs, modifiedNs: 901_000 }])
  })

  it('may leave links to other folders in its outputs: they are not followed, and what is kept is counted first', async () => {
    const world = createWorld()
    const datasets = join(world.folder, 'datasets')
    mkdirSync(datasets)
    writeFileSync(join(datasets, 'rows.csv'), 'not an output')
    const machine = await world.launch({
      outputs: ['out', 'plots/*', 'rows.csv'],
      run: `mkdir out plots; echo w > out/model.bin; cd plots; ln -s ${datasets} ../out/data; ln -s ${datasets} data
        echo p > loss.png; ln -s ${datasets}/rows.csv ../rows.csv; cp loss.png "$CRUCIBLE_OUTPUT_DIR"; ln -s ${datasets} "$CRUCIBLE_OUTPUT_DIR"`,
    })
    const { artifacts } = await machine.end()
    expect(artifacts.map(({ path }) => path)).toEqual(['loss.png', 'out/model.bin', 'plots/loss.png'])
    const remarks = await machine.remarks()
    for (const name of ['out/data', 'plots/data', 'rows.csv', 'datasets'])
      expect(remarks).toContain(`${name} is not kept: it points outside the job's directories`)
    expect(remarks).toContain(
      'keeping 3 artifacts: 6 bytes in all, 2 bytes in the largest; one artifact may have 1024 GiB',
    )
    expect(existsSync(join(machine.root, 'program-ended'))).toBe(true)
  })

  it('may make a folder of what was a file in an attempt before: both are kept, and the newer one is shown', async () => {
    const world = createWorld()
    await world.store.put(`${layout.artifactsOf(JOB, 1)}model`, 'of an attempt before')
    const machine = await world.launch({
      attempt: 2,
      run: 'cd "$CRUCIBLE_OUTPUT_DIR"; mkdir model; echo w > model/weights; echo s > sums',
    })
    expect(await machine.end()).toMatchObject({
      outcome: 'succeeded',
      artifacts: [{ path: 'model/weights' }, { path: 'sums' }],
    })
    expect(await world.artifact('model/weights')).toBe('w\n')
    expect(await world.artifact('sums')).toBe('s\n')
    expect(await world.artifact('model')).toBeUndefined()
    expect((await world.store.get(`${layout.artifactsOf(JOB, 1)}model`))?.toString()).toBe(
      'of an attempt before',
    )
  })

  itInAll('may leave pipes where the helper puts its files', async () => {
    const machine = await createWorld().launch({
      run: 'cd "$CRUCIBLE_CONTROL_DIR"; mkfifo progress.json saved/5.json; echo step 3; sleep 1',
    })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', progress: { step: 3 } })
  })

  it('may put links and files in their places: a runner that is started again begins with new ones', async () => {
    const world = createWorld()
    const elsewhere = join(world.folder, 'elsewhere')
    mkdirSync(elsewhere)
    const machine = await world.launch({
      run: `cd ..; if [ -e again ]; then echo "$(ls -A checkpoints output work)"; exit; fi; touch again
        rm -r checkpoints output work; ln -s ${elsewhere} checkpoints; echo x > output; ln -s nowhere work
        echo kept > checkpoints/mine; echo step 1; sleep 600`,
    })
    await machine.untilBeat(({ progress }) => progress !== null)
    process.kill(machine.runner(), 'SIGKILL')
    await machine.exited
    const again = world.start({ root: machine.root })
    expect(await again.end()).toMatchObject({ outcome: 'succeeded' })
    expect((await again.output()).slice(-5)).toEqual(['checkpoints:', '', 'output:', '', 'work:'])
    expect(readFileSync(join(elsewhere, 'mine'), 'utf8')).toBe('kept\n')
  })

  itInAll('may end with last words in colours: what people read is plain', async () => {
    const machine = await createWorld().launch({
      run: String.raw`printf '\033[31;1mValueError:\033[0m no such\ttoken\007\n' >&2; exit 1`,
    })
    expect(await machine.end()).toMatchObject({
      message: 'The command ended with exit code 1: ValueError: no such token.',
    })
  })
})

describe('a store that hangs', () => {
  it('keeps no machine beyond its time', async () => {
    const world = createWorld()
    const bundle = { sha256: 'a'.repeat(64), sizeBytes: 1 }
    // Opening a pipe without a writer never returns.
    const path = join(world.storeFolder, layout.bundle(JOB, bundle.sha256))
    mkdirSync(join(path, '..'), { recursive: true })
    execFileSync('mkfifo', [path])
    const mark = join(world.folder, 'off')
    const wanted = { bundle, leaseMs: 500, drainMs: 500, powerOffMs: 500 }
    const machine = await world.launch(wanted, '--power-off', `echo off > ${mark}`)
    expect(await machine.exited).toBe(1)
    await machine.says('overdue')
    expect(machine.read('../off')).toBe('off\n')
    expect((await machine.beat())!.uptimeMs).toBeGreaterThan(1_400)
  })
})
