import { describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { layout } from '../../storage/layout'
import { formatKey, sealSecrets } from '../../storage/secrets'
import { patient } from '../support/patience'
import { until } from '../support/until'
import { COUNTER, sumOf } from './programs'
import { JOB, useWorlds, type Machine, type World } from './world'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()

/** A world whose machines have something that acts like docker on their PATH. */
function createDockerWorld(): World {
  const world = createWorld()
  const folder = join(world.folder, 'docker')
  mkdirSync(folder)
  copyFileSync(join(__dirname, 'fake-docker.py'), join(folder, 'docker'))
  chmodSync(join(folder, 'docker'), 0o755)
  world.environment['PATH'] = `${folder}:${process.env['PATH']}`
  world.environment['FAKE_DOCKER'] = folder
  return world
}

function calls(world: World): string[][] {
  return readFileSync(join(world.folder, 'docker/calls'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as string[])
}

async function launchCounter(world: World, wanted: object): Promise<Machine> {
  const bundle = await world.bundle({ 'counter.py': COUNTER })
  return world.launch({ bundle, image: 'python:3.13', run: 'python3 counter.py 40 0.05 1000', ...wanted })
}

describe('an order with an image', () => {
  it('runs setup and run in one container, with nothing secret on a command line', async () => {
    const world = createDockerWorld()
    const machine = await launchCounter(world, {
      setup: 'echo being set up > installed',
      run: 'cat installed && python3 counter.py 5 0 1000 && env',
      env: { GREETING: 'a value of its own' },
      shmGiB: 0.5,
    })
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'succeeded' })
    expect(result.phases.map(({ name }) => name)).toContain('setup')
    const output = await machine.output()
    expect(output[0]).toBe('being set up')
    expect(output).toContain('GREETING=a value of its own')
    expect(output.filter((line) => line.startsWith('HOME='))).toEqual([])
    expect(await world.artifact('sum.txt')).toBe(sumOf(5))
    const run = calls(world).find(([command]) => command === 'run')!
    expect(run).toEqual(
      expect.arrayContaining([
        '--label',
        `crucible.machine=${machine.id}`,
        '--shm-size',
        '512m',
        'python:3.13',
      ]),
    )
    expect(run.slice(0, run.indexOf('-c')).join(' ')).not.toContain('a value of its own')
  })

  it('has variables that the engine on the machine does not obey', async () => {
    const world = createDockerWorld()
    const env = { DOCKER_HOST: 'tcp://192.0.2.1:1', GCONV_PATH: '.', IFS: 'u', UID: '7', TEXT: 'a\n$b "c"' }
    const run = 'printf "%s|" "$DOCKER_HOST" "$GCONV_PATH" "$TEXT"; env | grep -c CRUCIBLE_VARIABLE || :'
    const machine = await launchCounter(world, { setup: run, run, env, shell: 'sh -u' })
    await machine.end()
    const shown = [`${env.DOCKER_HOST}|.|a`, '$b "c"|0']
    expect(await machine.output()).toEqual([...shown, ...shown])
    const names = readFileSync(join(world.folder, 'docker/variables'), 'utf8').split('\n')
    expect(names.filter((name) => Object.hasOwn(env, name))).toEqual([])
  })

  itInAll('that cannot be had is a failure of the image', async () => {
    const world = createDockerWorld()
    const machine = await launchCounter(world, { image: 'missing:1' })
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'image',
      message: expect.stringContaining('manifest unknown'),
    })
  })

  it('is pulled in a stage of its own, again where the registry stumbles', async () => {
    const world = createDockerWorld()
    const machine = await launchCounter(world, { image: 'shaky:1', run: 'true' })
    const { outcome, phases } = await machine.end()
    expect(outcome).toBe('succeeded')
    expect(phases.map(({ name }) => name)).toEqual([
      'starting',
      'fetching',
      'restoring',
      'pulling',
      'running',
      'finishing',
    ])
    const remarks = await machine.remarks()
    expect(remarks).toMatch(/pulling failed, trying again: .*503 Service Unavailable/)
    expect(remarks).toMatch(/the image shaky:1 is ready after .* \(sha256:7{64}\)/)
  })

  it('can be cancelled while the engine does not answer', async () => {
    const world = createDockerWorld()
    const machine = await launchCounter(world, { image: 'hung:1' })
    await until(() => existsSync(join(world.folder, 'docker/calls')))
    await world.drain(1, { reason: 'cancelled', windowMs: 60_000 })
    const begun = performance.now()
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'cancelled' })
    expect(performance.now() - begun).toBeLessThan(patient(20_000))
  })

  it('ends with a result although the engine stops to answer', async () => {
    const world = createDockerWorld()
    const run = 'echo $$ > pid; echo step 1; while :; do sleep 0.1; done'
    const machine = await launchCounter(world, { run })
    await machine.untilBeat(({ progress }) => progress !== null)
    writeFileSync(join(world.folder, 'docker/hung'), '')
    await world.drain(1, { reason: 'cancelled', windowMs: 3_000 })
    await until(async () => (await machine.result()) !== undefined)
    rmSync(join(world.folder, 'docker/hung'))
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'cancelled' })
    expect(spawnSync('ps', ['-p', machine.read('work/pid').trim()]).status).not.toBe(0)
  })

  describe('in a registry that wants a login', () => {
    const PRIVATE = { image: 'private.example/team/train:1', run: 'env' }
    const imageLogin = { username: 'robot', secret: 'REGISTRY_TOKEN' }
    async function launchWith(world: World, token: string): Promise<Machine> {
      const key = Buffer.alloc(32, 3)
      const keyFile = join(world.folder, 'key')
      writeFileSync(keyFile, formatKey(key))
      const sealed = sealSecrets(
        key,
        { REGISTRY_TOKEN: token, OTHER: 'for the program' },
        Buffer.alloc(16, 5),
      )
      await world.store.put(layout.attemptSecrets(JOB, 1), sealed)
      await world.order({ ...PRIVATE, imageLogin, secrets: ['OTHER'] })
      return world.start({ arguments: ['--secret-key-file', keyFile] })
    }

    it('logs in with a secret that stays hidden, and leaves nothing of it behind', async () => {
      const world = createDockerWorld()
      const machine = await launchWith(world, 'let me in')
      expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
      expect(calls(world)).toContainEqual([
        'login',
        '--username',
        'robot',
        '--password-stdin',
        'private.example',
      ])
      const everything = [
        JSON.stringify(calls(world)),
        JSON.stringify(await machine.lines()),
        machine.console,
      ]
      expect(everything.join()).not.toContain('let me in')
      const output = await machine.output()
      expect(output).toContain('OTHER=***')
      expect(output.filter((line) => line.startsWith('REGISTRY_TOKEN'))).toEqual([])
      expect(existsSync(join(machine.root, 'tmp/login'))).toBe(false)
      expect(existsSync(join(world.folder, 'docker/config.json'))).toBe(false)
    })

    it('says that it is refused, with a wrong password and without one', async () => {
      const wrong = await launchWith(createDockerWorld(), 'knock knock')
      expect(await wrong.end()).toMatchObject({
        outcome: 'failed',
        reason: 'image-login',
        message: expect.stringMatching(/refuses the image private.*incorrect username or password/),
      })
      expect(existsSync(join(wrong.root, 'tmp/login'))).toBe(false)
      const without = await launchCounter(createDockerWorld(), PRIVATE)
      expect(await without.end()).toMatchObject({ reason: 'image-login' })
    })
  })

  it.each([
    [
      'no-init',
      'engine',
      /engine cannot start the container: Error: container-init binary not found.*catatonit/,
    ],
    ['no-shell', 'image', /The image no-shell cannot run a shell .*exec: "sh": executable file not found/],
  ])('that the engine cannot start (%s) is not the fault of the program', async (image, reason, words) => {
    const machine = await launchCounter(createDockerWorld(), { image })
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason,
      exitCode: null,
      message: expect.stringMatching(words),
    })
  })

  it('has a program whose exit code 127 is its own', async () => {
    const machine = await launchCounter(createDockerWorld(), { run: 'no-such-program' })
    expect(await machine.end()).toMatchObject({ reason: 'workload', exitCode: 127 })
  })

  itInAll('is a failure of the setup when that fails in the container', async () => {
    const world = createDockerWorld()
    const machine = await launchCounter(world, { setup: 'echo broken >&2; exit 3' })
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'setup',
      message: 'Setup ended with exit code 3: broken.',
    })
  })

  it('is drained: the command saves in its container', async () => {
    const world = createDockerWorld()
    const first = await launchCounter(world, { run: 'python3 counter.py 40 0.3 1000' })
    await first.untilBeat(({ progress }) => (progress?.step ?? 0) >= 2)
    await world.drain(1, {})
    const stopped = await first.end()
    expect(stopped).toMatchObject({ outcome: 'stopped', reason: 'migrated', exitCode: 143 })
    expect(stopped.checkpoint).toMatchObject({ step: stopped.progress!.step })
    const second = await launchCounter(world, { attempt: 2, run: 'python3 counter.py 12 0 1000' })
    await second.end()
    expect(await world.artifact('sum.txt')).toBe(sumOf(12))
  })

  it('leaves no container when the runner is killed, or runner and guard together', async () => {
    for (const isGuardKilled of [false, true]) {
      const world = createDockerWorld()
      const machine = await launchCounter(world, {
        run: 'trap "" TERM; echo $$ > pid; echo step 1; while :; do sleep 0.1; done',
      })
      await machine.untilBeat(({ progress }) => progress !== null)
      const pid = Number(machine.read('work/pid'))
      const runner = machine.runner()
      if (isGuardKilled) process.kill(machine.guard.pid!, 'SIGKILL')
      process.kill(runner, 'SIGKILL')
      await until(() => spawnSync('ps', ['-p', String(pid)]).status !== 0)
    }
  })
})
