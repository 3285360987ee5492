import { describe, expect, it } from '@jest/globals'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { containerEngine, type Engine } from '../support/container-engine'
import { testFolder } from '../support/folders'
import { until } from '../support/until'
import { useWorlds, type Machine, type World } from './world'

const createWorld = useWorlds()

const folder = testFolder('engine')
const engine: Engine | string = containerEngine(folder)
// Said aloud, for these are the only tests with a real engine.
const whereEngine = typeof engine === 'string' ? it.skip : it
if (typeof engine === 'string') {
  process.stderr.write(`Tests of container walls are skipped: ${engine}\n`)
  // Jest calls no hook in a file whose tests are all skipped.
  rmSync(folder, { recursive: true, force: true })
}

/** Starts an attack in a real container on a machine that has something to lose. */
async function attack(world: World, run: string, wanted: object = {}): Promise<Machine> {
  const { folder, image } = engine as Engine
  world.environment['PATH'] = `${folder}:${process.env['PATH']}`
  const root = join(world.folder, 'machine-1')
  mkdirSync(root)
  writeFileSync(join(root, 'secret.key'), 'the-machines-key')
  writeFileSync(join(world.folder, 'host.txt'), 'a-file-of-the-host')
  await world.order({ image, run, env: { HOST: world.folder, MACHINE: root }, ...wanted })
  return world.start({ root })
}

describe('a job in a real container', () => {
  whereEngine('sees its own directories and nothing else of its machine', async () => {
    const world = createWorld()
    const machine = await attack(
      world,
      [
        'ls "$MACHINE"',
        'cat "$MACHINE/secret.key" "$MACHINE/runner.json" "$HOST/host.txt" && echo READ',
        'ls "$MACHINE/tmp" "$HOST/store" && echo LISTED',
        'echo x > "$MACHINE/helper/crucible_job.py" && echo CHANGED',
        'echo mine > "$CRUCIBLE_OUTPUT_DIR/result.txt"',
        'echo done',
      ].join('\n'),
    )
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    const output = await machine.output()
    expect(output.slice(0, 5)).toEqual(['checkpoints', 'control', 'helper', 'output', 'work'])
    expect(output).toEqual([...output.slice(0, 5), 'done'])
    expect(await world.artifact('result.txt')).toBe('mine\n')
  })

  whereEngine('directs no program outside the container by its variables', async () => {
    const env = { LD_PRELOAD: './evil.so', CONTAINERS_CONF: './evil.conf', DOCKER_HOST: 'unix://evil.sock' }
    const world = createWorld()
    const machine = await attack(world, 'echo "$LD_PRELOAD $CONTAINERS_CONF $DOCKER_HOST"', { env })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    // A program of the machine would complain about the missing library.
    expect(await machine.output()).toEqual(['./evil.so ./evil.conf unix://evil.sock'])
  })

  whereEngine('has no more rights than it needs, and cannot get any', async () => {
    const world = createWorld()
    const machine = await attack(
      world,
      [
        'grep -E "^(NoNewPrivs|CapBnd)" /proc/self/status',
        'mknod /tmp/disk b 8 0 && echo DEVICE',
        'mount -t tmpfs none /tmp && echo MOUNTED',
        'echo 1 > /proc/sys/kernel/panic && echo KERNEL',
        'echo done',
      ].join('\n'),
    )
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    const [bounding, isLocked, ...rest] = await machine.output()
    expect(isLocked).toMatch(/NoNewPrivs:\s+1/)
    // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID are 0, 1, 3, 5, 6 and 7.
    expect(bounding).toMatch(/CapBnd:\s+00000000000000eb/)
    expect(rest).toEqual(['done'])
  })

  whereEngine('gets no file of the host as an artifact by a link, but keeps its own files', async () => {
    const world = createWorld()
    const machine = await attack(
      world,
      [
        'cd "$CRUCIBLE_OUTPUT_DIR"',
        'echo real > "../work/own.txt" && ln -s ../work/own.txt own-link.txt',
        'ln -s "$HOST/host.txt" stolen.txt',
        'ln -s "$HOST" stolen-folder',
        'ln -s "$MACHINE/secret.key" key.txt',
        'mkdir deep && ln -s ../../secret.key deep/key.txt',
        'ln -s /proc/self/environ environ',
        'cd .. && ln -s "$HOST/host.txt" work/named.txt',
      ].join('\n'),
      { outputs: ['named.txt', 'own.txt'] },
    )
    const { outcome, artifacts } = await machine.end()
    expect(outcome).toBe('succeeded')
    expect(artifacts.map(({ path }) => path).sort()).toEqual(['own-link.txt', 'own.txt'])
    expect(await world.artifact('own-link.txt')).toBe('real\n')
    const remarks = await machine.remarks()
    for (const name of ['stolen.txt', 'stolen-folder', 'key.txt', 'deep/key.txt', 'named.txt', 'environ'])
      expect(remarks).toContain(`${name} is not kept: it points outside the job's directories`)
  })

  whereEngine('gets no file of the host into a checkpoint by a link, but keeps its own links', async () => {
    const world = createWorld()
    const machine = await attack(
      world,
      [
        'cd "$CRUCIBLE_CHECKPOINT_DIR"',
        'mkdir step-1 && echo weights > step-1/model.bin && ln -s step-1 latest',
        'echo shared > ../work/shared.bin && ln -s ../../work/shared.bin step-1/shared.bin',
        'ln -s "$HOST/host.txt" step-1/stolen.txt && ln -s "$MACHINE/secret.key" key.txt',
        'ln -s "$HOST" step-1/folder',
      ].join('\n'),
    )
    const { outcome, checkpoint } = await machine.end()
    expect(outcome).toBe('succeeded')
    const { files, links } = await world.manifest(checkpoint!)
    expect(files.map(({ path }) => path).sort()).toEqual(['step-1/model.bin', 'step-1/shared.bin'])
    expect(links).toEqual([{ path: 'latest', target: 'step-1' }])
  })

  whereEngine('leads no write of the runner to the host by a link in control/', async () => {
    const world = createWorld()
    const machine = await attack(
      world,
      [
        'cd "$CRUCIBLE_CONTROL_DIR"',
        'ln -s "$HOST/host.txt" stop.json.part',
        'ln -s "$HOST/host.txt" stop.json',
        'ln -s "$HOST/host.txt" progress.json',
        'rm -rf saved && ln -s "$HOST" saved',
        'echo ready',
        'trap "exit 0" TERM',
        'while :; do sleep 0.1; done',
      ].join('\n'),
    )
    await until(async () => (await machine.output()).includes('ready'))
    await world.drain(1, { windowMs: 5_000 })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped' })
    expect(readFileSync(join(world.folder, 'host.txt'), 'utf8')).toBe('a-file-of-the-host')
    expect(JSON.parse(machine.read('control/stop.json'))).toMatchObject({ reason: 'migrated' })
  })
})
