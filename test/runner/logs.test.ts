import { describe, expect, it } from '@jest/globals'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LogLine } from '../../core/documents'
import { attemptKey, formatKey, sealSecrets } from '../../storage/secrets'
import { layout } from '../../storage/layout'
import { JOB, useWorlds, type Machine, type World } from './world'
import { patient } from '../support/patience'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()

async function chunksOf(world: World): Promise<string[]> {
  const names: string[] = []
  for await (const { key } of world.store.list(layout.logs(JOB, 1)))
    names.push(key.slice(key.lastIndexOf('/') + 1))
  return names
}

const numbersOf = (lines: LogLine[]): number[] => lines.map(({ n }) => n)

describe('log lines', () => {
  it('arrive each once, in order, with none lost, in files that are merged', async () => {
    const world = createWorld()
    const COUNT = 150_000
    const machine = await world.launch({
      run: `python3 -c "
for i in range(${COUNT}): print('line', i, 'x' * 90)"`,
    })
    await machine.end()
    const lines = await machine.lines()
    expect(numbersOf(lines)).toEqual(lines.map((_, at) => at + 1))
    const output = lines.filter(({ s }) => s === 'out').map(({ m }) => m.split(' ')[1])
    expect(output).toEqual(Array.from({ length: COUNT }, (_, at) => String(at)))
    const bytes = COUNT * 140
    expect((await chunksOf(world)).length).toBeLessThan(bytes / (256 * 1024) / 2)
  })

  it('have what the program that started the runner has to say, once', async () => {
    const world = createWorld()
    await world.order({ run: 'true' })
    const root = join(world.folder, 'machine-1')
    mkdirSync(root)
    writeFileSync(join(root, 'remarks'), 'the local disks are in use\n')
    const machine = world.start({ root })
    await machine.end()
    const said = (await machine.lines()).filter(({ m }) => m.includes('the local disks are in use'))
    expect(said.map(({ s: stream }) => stream)).toEqual(['runner'])
    expect(existsSync(join(root, 'remarks'))).toBe(false)
  })

  it('keep what was written last of a line that was rewritten, and what has no end', async () => {
    const machine = await createWorld().launch({
      run: `printf ' 10%%\\r 50%%\\r100%%\\nplain\\r\\n12/40 [bar\\r13/40 [bar\\r'; printf unfinished >&2`,
    })
    const result = await machine.end()
    expect(await machine.output()).toEqual(['100%', 'plain', '13/40 [bar'])
    expect((await machine.lines()).filter(({ s }) => s === 'err').map(({ m }) => m)).toEqual(['unfinished'])
    expect(result.progress).toMatchObject({ step: null, batch: 13, batchesTotal: 40 })
  })

  itInAll('of whatever bytes become valid text', async () => {
    const machine = await createWorld().launch({ run: `printf 'a\\377b\\000c "\\\\ \\033[1m\\n'` })
    await machine.end()
    expect(await machine.output()).toEqual(['a\uFFFDb\0c "\\ \u001b[1m'])
  })

  it('that are older than five seconds survive the death of the runner', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: `python3 -u -c "
import time
while True:
    print(repr(time.time()))
    time.sleep(0.02)"`,
    })
    await machine.untilBeat(({ logLines, uptimeMs }) => logLines > 100 && uptimeMs > patient(5_000) + 2_000)
    const killedAt = Date.now() / 1000
    process.kill(machine.runner(), 'SIGKILL')
    await machine.exited
    const printed = (await machine.output()).map(Number)
    expect(printed.length).toBeGreaterThan(20)
    expect(killedAt - Math.max(...printed)).toBeLessThan(patient(5_000) / 1_000)
    const lines = await machine.lines()
    expect(numbersOf(lines)).toEqual(lines.map((_, at) => at + 1))
  })
})

describe('secrets', () => {
  const deploymentKey = Buffer.alloc(32, 7)
  const VALUES = {
    API_KEY: 'sk-very+secret/value',
    CERTIFICATE: 'line-one-of-it\nline-two-of-it',
    SHORT: 'abc',
  }

  async function seal(world: World, key: Buffer): Promise<string> {
    const attemptId = `${JOB}-1`
    const sealed = sealSecrets(attemptKey(key, attemptId), VALUES, Buffer.alloc(16, 1))
    await world.store.put(layout.attemptSecrets(JOB, 1), sealed)
    const path = join(world.folder, 'secret.key')
    writeFileSync(path, formatKey(attemptKey(deploymentKey, attemptId)), { mode: 0o600 })
    return path
  }

  async function launch(world: World, run: string, ...args: string[]): Promise<Machine> {
    return world.launch({ run, secrets: Object.keys(VALUES) }, ...args)
  }

  it('reach the command, are deleted, and are never seen again', async () => {
    const world = createWorld()
    const path = await seal(world, deploymentKey)
    const machine = await launch(
      world,
      `printf '%s' "$API_KEY" | wc -c; echo "my key is $API_KEY!"; echo "$CERTIFICATE" >&2; echo "$SHORT"
       python3 -c "import json, os, urllib.parse as u; print(json.dumps(dict(os.environ)), u.quote(os.environ['API_KEY'], ''))"
       python3 -c "import os; print('z' * 16380 + os.environ['API_KEY'] * 3)"
       echo "failed with $API_KEY" >&2; exit 1`,
      '--secret-key-file',
      path,
    )
    const result = await machine.end()
    expect(result).toMatchObject({ reason: 'workload', message: expect.stringContaining('failed with ***') })
    const output = await machine.output()
    expect(output.slice(0, 2)).toEqual(['20', 'my key is ***!'])
    expect(output[2]).toBe('abc')
    expect(output.slice(4).join('')).toBe(`${'z'.repeat(16_380)}*********`)
    expect(await world.store.get(layout.attemptSecrets(JOB, 1))).toBeUndefined()
    for (const secret of ['very+secret', 'very%2Bsecret', 'line-one-of-it', 'line-two-of-it']) {
      expect(JSON.stringify([await machine.lines(), result])).not.toContain(secret)
      expect(machine.read('runner.log')).not.toContain(secret)
    }
  })

  itInAll('sealed with another key end the attempt before the command', async () => {
    const world = createWorld()
    const path = await seal(world, Buffer.alloc(32, 8))
    const machine = await launch(world, 'echo run', '--secret-key-file', path)
    expect(await machine.end()).toMatchObject({ outcome: 'failed', reason: 'secrets' })
    expect(await machine.output()).toEqual([])
  })

  it('that cannot be had end the attempt before the command', async () => {
    const withoutKey = await launch(createWorld(), 'echo run')
    expect(await withoutKey.end()).toMatchObject({
      reason: 'secrets',
      message: expect.stringContaining('no key'),
    })
    const world = createWorld()
    const path = await seal(world, deploymentKey)
    await world.store.delete(layout.attemptSecrets(JOB, 1))
    const readBefore = await launch(world, 'echo run', '--secret-key-file', path)
    expect(await readBefore.end()).toMatchObject({ reason: 'secrets' })
  })
})
