import { describe, expect, it } from '@jest/globals'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { COUNTER, sumOf } from './programs'
import { JOB, useWorlds, type Machine, type Wanted, type World } from './world'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()
const SOMEBODY = '0123456789abcdef0123456789abcdef'

async function putClaim(world: World, machine: string): Promise<void> {
  await world.store.put(layout.claim(JOB, 1), JSON.stringify({ machine }))
}

async function claimOf(world: World): Promise<string> {
  const body = await world.store.get(layout.claim(JOB, 1))
  return (JSON.parse(body!.toString()) as { machine: string }).machine
}

/** Every object of the store, with what changes when it is written. */
function objects(world: World): string[] {
  return readdirSync(world.storeFolder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.startsWith('.tmp'))
    .map((path) => `${path} ${statSync(join(world.storeFolder, path)).mtimeMs}`)
    .sort()
}

async function beginnings(machine: Machine): Promise<number> {
  return (await machine.output()).filter((line) => line.startsWith('beginning')).length
}

describe('a machine whose order is another machine’s', () => {
  const cases: [string, Wanted, (world: World) => Promise<void>][] = [
    ['that could start', {}, async () => undefined],
    ['that comes too late', { startWithinMs: 1, issuedAtMs: Date.now() - 60_000 }, async () => undefined],
    ['that is to be drained', {}, (world) => world.drain(1, { reason: 'cancelled' })],
    ['that it cannot understand', {}, (world) => world.store.put(layout.order(JOB, 1), '{}')],
    ['with secrets', { secrets: ['TOKEN'] }, (world) => world.store.put(layout.attemptSecrets(JOB, 1), '{}')],
  ]
  it.each(cases)('does nothing with one %s, writes nothing, and is switched off', async (_, wanted, more) => {
    const world = createWorld()
    await world.order({ run: 'echo running > "$CRUCIBLE_OUTPUT_DIR/ran"', ...wanted })
    await more(world)
    await putClaim(world, SOMEBODY)
    const before = objects(world)
    const machine = world.start({ arguments: ['--power-off', `touch ${join(world.folder, 'off')}`] })
    expect(await machine.exited).toBe(0)
    await machine.says(`belongs to machine ${SOMEBODY}`)
    expect(objects(world)).toEqual(before)
    expect(existsSync(join(world.folder, 'off'))).toBe(true)
    // Nor does it when it is started once more.
    expect(await world.start().exited).toBe(0)
    expect(objects(world)).toEqual(before)
  })

  it('holds back from a claim that it cannot understand', async () => {
    const world = createWorld()
    await world.order({})
    await world.store.put(layout.claim(JOB, 1), 'me')
    const before = objects(world)
    const machine = world.start()
    expect(await machine.exited).toBe(0)
    await machine.says('invalid claim at')
    expect(objects(world)).toEqual(before)
  })

  itInAll('leaves the other one alone, on the same computer too', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    const first = await world.launch({ bundle, run: 'python3 counter.py 40 0.05 10' })
    await first.untilBeat(({ progress }) => progress !== null)
    const second = world.start({ root: join(world.folder, 'duplicate') })
    expect(await second.exited).toBe(0)
    expect(await first.result()).toBeUndefined()
    expect(await first.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await world.artifact('sum.txt')).toBe(sumOf(40))
    expect(await beginnings(first)).toBe(1)
    expect(await claimOf(world)).toBe(first.read('machine-id'))
  })
})

describe('a machine that knows the id its provider gave it', () => {
  it('claims its order by that name, and knows it again when it is started anew', async () => {
    const world = createWorld()
    await world.order({ run: 'sleep 600' })
    const root = join(world.folder, 'machine-1')
    mkdirSync(root)
    writeFileSync(join(root, 'machine-id'), 'i-0f1e2d3c4b5a69788\n')
    const first = world.start({ root })
    await first.untilBeat(({ phase }) => phase === 'running')
    expect(await claimOf(world)).toBe('i-0f1e2d3c4b5a69788')
    process.kill(first.runner(), 'SIGKILL')
    await first.exited
    await world.drain(1, { reason: 'cancelled' })
    expect(await world.start({ root }).end()).toMatchObject({ outcome: 'stopped', reason: 'cancelled' })
  })

  it('works where the control plane has claimed the order for it, and only it does', async () => {
    const world = createWorld()
    await world.order({ run: 'echo running' })
    await putClaim(world, 'i-the-oldest')
    const start = (id: string): ReturnType<typeof world.start> => {
      const root = join(world.folder, id)
      mkdirSync(root)
      writeFileSync(join(root, 'machine-id'), id)
      return world.start({ root })
    }
    const another = start('i-another')
    expect(await another.exited).toBe(0)
    await another.says('belongs to machine i-the-oldest, but this is i-another')
    const oldest = start('i-the-oldest')
    expect(await oldest.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await oldest.output()).toEqual(['running'])
  })
})

describe('of two machines that start at once', () => {
  it('one works, and the other does not', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'counter.py': COUNTER })
    // The work is not over before the one that does not work has gone.
    const gate = join(world.folder, 'gate')
    const wait = `while [ ! -e '${gate}' ]; do sleep 0.05; done`
    await world.order({ bundle, run: `${wait}; python3 counter.py 10 0.05 5` })
    const machines = ['one', 'two'].map((name) => world.start({ root: join(world.folder, name) }))
    await Promise.race(machines.map(({ exited }) => exited))
    writeFileSync(gate, '')
    await Promise.all(machines.map(({ exited }) => exited))
    expect(await machines[0]!.result()).toMatchObject({ outcome: 'succeeded' })
    expect(await beginnings(machines[0]!)).toBe(1)
    const idle = () => machines.filter(({ console }) => console.includes('belongs to machine'))
    await until(() => idle().length === 1)
  })
})

describe('a machine that has claimed its order', () => {
  it('continues when its runner was killed right after the claim, or right before it', async () => {
    for (const isClaimed of [true, false]) {
      const world = createWorld()
      await world.order({ run: 'echo running' })
      const root = join(world.folder, 'machine-1')
      mkdirSync(root)
      writeFileSync(join(root, 'machine-id'), SOMEBODY)
      if (isClaimed) await putClaim(world, SOMEBODY)
      const machine = world.start({ root })
      expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
      expect(await machine.output()).toEqual(['running'])
      expect(await claimOf(world)).toBe(SOMEBODY)
    }
  })

  it('claims with the name of its send, and only one machine of that send works', async () => {
    const world = createWorld()
    await world.order({ run: 'echo running' })
    const start = (name: string): Machine => {
      const root = join(world.folder, name)
      mkdirSync(root)
      writeFileSync(join(root, 'send-name'), 'train-1-s2\n')
      return world.start({ root })
    }
    const first = start('one')
    expect(await first.end()).toMatchObject({ outcome: 'succeeded' })
    const body = await world.store.get(layout.claim(JOB, 1))
    const machine = first.read('machine-id')
    expect(JSON.parse(body!.toString())).toEqual({ machine, send: 'train-1-s2' })
    await world.store.delete(layout.result(JOB, 1))
    const second = start('two')
    expect(await second.exited).toBe(0)
    await second.says(`belongs to machine ${machine}`)
    expect(await beginnings(second)).toBe(0)
  })
})
