import { describe, expect, it } from '@jest/globals'
import { createHash } from 'node:crypto'
import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { parseOrder } from '../../intake/documents'
import { layout } from '../../storage/layout'
import { JOB, useWorlds } from './world'
import { paidFor } from '../support/money'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()

describe('the outcome', () => {
  it('is success with exit code 0, with what the command has left', async () => {
    const world = createWorld()
    const machine = await world.launch({
      bundle: await world.bundle({ 'src/train.py': 'print("step 3/3 loss 0.5")', 'figures/a.txt': 'A' }),
      run: 'python3 src/train.py && echo weights > "$CRUCIBLE_OUTPUT_DIR/weights.txt" && echo B > figures/b.txt',
      setup: 'echo being set up',
      outputs: ['figures/*.txt', '../outside', 'nothing/here'],
    })
    const result = await machine.end()
    expect(result).toMatchObject({
      attemptId: machine.id,
      outcome: 'succeeded',
      reason: 'completed',
      exitCode: 0,
      signal: null,
      progress: { step: 3, stepsTotal: 3, loss: 0.5 },
      checkpoint: null,
      restoredFrom: null,
      warning: {
        kind: 'missing-outputs',
        text: expect.stringContaining('no file matches ../outside, nothing/here') as unknown,
      },
    })
    expect(result.artifacts).toEqual(
      Object.entries({ 'figures/a.txt': 'A', 'figures/b.txt': 'B\n', 'weights.txt': 'weights\n' }).map(
        ([path, text]) => ({
          path,
          sizeBytes: text.length,
          sha256: createHash('sha256').update(text).digest('hex'),
        }),
      ),
    )
    expect(await world.artifact('weights.txt')).toBe('weights\n')
    expect(await world.artifact('figures/b.txt')).toBe('B\n')
    expect(result.phases.map(({ name }) => name)).toEqual([
      'starting',
      'fetching',
      'restoring',
      'setup',
      'running',
      'finishing',
    ])
    expect(await machine.output()).toEqual(['being set up', 'step 3/3 loss 0.5'])
    expect(result.logLines).toBe((await machine.lines()).length)
    expect(await machine.remarks()).toMatch(
      /\.\.\/outside is outside.*\nno file matches the output nothing\/here/,
    )
  })

  it('has a warning of what was left out, and of a program whose failure its shell ignored', async () => {
    const world = createWorld()
    const run = `mkdir out; echo 1 > out/a; ln -s / out/data; mkfifo pipe; ln -s / link
true && python3 -c 'raise ValueError("boom")' && echo trained
echo end`
    const launched = await world.launch({ run, outputs: ['out', 'pipe', 'link'] })
    const { outcome, warning, artifacts } = await launched.end()
    expect([outcome, artifacts.map(({ path }) => path)]).toEqual(['succeeded', ['out/a']])
    expect(warning).toMatchObject({ kind: 'hidden-failure' })
    for (const text of [
      'with exit code 0, but its errors end with a traceback: ValueError: boom.',
      'no file matches pipe, link',
      'out/data is not kept: it points outside',
      'pipe is not kept: it is neither a file nor a folder',
    ])
      expect(warning!.text).toContain(text)
  })

  it('is failure without the outputs that the order requires', async () => {
    const machine = await createWorld().launch({
      run: 'touch there',
      outputs: ['there', 'models/*.pt'],
      requiresOutputs: true,
    })
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'workload',
      exitCode: 0,
      message:
        'The command ended with exit code 0, but its outputs are missing: no file matches models/*.pt.',
      artifacts: [{ path: 'there' }],
    })
  })

  it('has outputs that lie as deeply as folders can be nested', async () => {
    const machine = await createWorld().launch({
      run: `python3 -c "
import os
for _ in range(1_020):
    os.mkdir('d')
    os.chdir('d')
open('model.pt', 'w').close()
"`,
      outputs: ['**/*.pt'],
    })
    const path = `${'d/'.repeat(1_020)}model.pt`
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', artifacts: [{ path }] })
    expect(await machine.remarks()).not.toContain('cannot')
  })

  it('is failure with another exit code, with the last words of the command', async () => {
    const world = createWorld()
    const machine = await world.launch({ run: 'echo fine; echo first >&2; echo "no such data" >&2; exit 3' })
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'workload',
      exitCode: 3,
      message: 'The command ended with exit code 3: no such data.',
    })
  })

  it('comes after beats that say how far the saving of artifacts and checkpoints is', async () => {
    const world = createWorld()
    const machine = await world.launch({
      beatMs: 20,
      leaseMs: 60_000,
      run: 'head -c 300000000 /dev/zero > "$CRUCIBLE_CHECKPOINT_DIR/step-1.pt"; head -c 400000000 /dev/zero | tr "\\0" x > "$CRUCIBLE_OUTPUT_DIR/big"; echo a > "$CRUCIBLE_OUTPUT_DIR/small"',
    })
    const { saving: ofCheckpoint } = await machine.untilBeat(({ saving }) => saving !== undefined)
    expect(ofCheckpoint).toMatchObject({ what: 'checkpoint', filesTotal: 1, bytesTotal: 300_000_000 })
    const first = await machine.untilBeat(
      ({ saving }) => saving?.what === 'artifacts' && saving.filesDone === 1,
    )
    expect(first).toMatchObject({ phase: 'finishing', saving: { filesTotal: 2, bytesTotal: 400_000_002 } })
    // It is alive, and gets on.
    const later = await machine.untilBeat(
      ({ seq, saving }) => seq > first.seq && (saving?.bytesDone ?? 0) > 2,
    )
    expect(later.saving!.bytesRead).toBe(400_000_002)
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
  })

  it('is a failure of the setup when that fails, and the command is not run', async () => {
    const world = createWorld()
    const machine = await world.launch({ setup: 'echo broken >&2; exit 7', run: 'echo running' })
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'setup',
      message: 'Setup ended with exit code 7: broken.',
    })
    expect(await machine.output()).toEqual([])
  })

  it('is a full disk when the command says so', async () => {
    const machine = await createWorld().launch({
      run: 'echo "OSError: [Errno 28] No space left on device" >&2; exit 1',
    })
    expect(await machine.end()).toMatchObject({ outcome: 'failed', reason: 'disk-full' })
  })

  it('is a failure of the bundle when that is missing, damaged or dangerous', async () => {
    const world = createWorld()
    const absent = await world.launch({ bundle: { sha256: 'a'.repeat(64), sizeBytes: 1 } })
    expect(await absent.end()).toMatchObject({ outcome: 'failed', reason: 'bundle' })

    const bundle = (await world.bundle({ 'a.txt': 'a' }))!
    await world.store.put(layout.bundle(JOB, bundle.sha256), 'something else')
    const damaged = await world.launch({ attempt: 2, bundle })
    expect(await damaged.end()).toMatchObject({
      reason: 'bundle',
      message: expect.stringContaining('damaged'),
    })

    const noArchive = await world.launch({
      attempt: 3,
      bundle: await world.putBundle(Buffer.from('no archive')),
    })
    expect(await noArchive.end()).toMatchObject({ reason: 'bundle' })
  })

  it('is a failure of the input when that cannot be had', async () => {
    const world = createWorld()
    const source = pathToFileURL(join(world.folder, 'nowhere')).href
    const machine = await world.launch({ inputs: [{ source, path: 'data/train.bin' }] })
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'no-input',
      message: expect.stringContaining(source),
    })
  })

  it('brings inputs to where the command looks for them', async () => {
    const world = createWorld()
    writeFileSync(join(world.folder, 'words.txt'), 'some words')
    const source = pathToFileURL(join(world.folder, 'words.txt')).href
    const machine = await world.launch({ inputs: [{ source, path: 'data/w.txt' }], run: 'cat data/w.txt' })
    await machine.end()
    expect(await machine.output()).toEqual(['some words'])
  })

  it('is late when the machine starts too long after its order', async () => {
    const world = createWorld()
    const machine = await world.launch({
      run: 'echo running',
      startWithinMs: 1_000,
      issuedAtMs: Date.now() - 32_000,
    })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'late' })
    expect(await machine.output()).toEqual([])
  })

  it('allows for clocks that differ by half a minute', async () => {
    const machine = await createWorld().launch({ startWithinMs: 1_000, issuedAtMs: Date.now() - 25_000 })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
  })

  it.each([2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])(
    'is not late and has its whole budget when the order is dated %d ms ago by a clock that was set',
    async (wrongMs) => {
      const world = createWorld()
      const limits = { seq: 0, deadlineAtMs: null, budget: paidFor(HOUR_MS) }
      const machine = await world.launch({ run: 'echo running', limits, issuedAtMs: Date.now() - wrongMs })
      expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    },
  )

  it('is late when the store says so, whatever the order says', async () => {
    const world = createWorld()
    await world.order({ run: 'echo running' })
    const hourAgo = (Date.now() - HOUR_MS) / 1_000
    utimesSync(join(world.storeFolder, layout.order(JOB, 1)), hourAgo, hourAgo)
    expect(await world.start().end()).toMatchObject({ outcome: 'stopped', reason: 'late' })
  })

  it('is a failure of the runner when the order is invalid', async () => {
    const world = createWorld()
    const order = await world.order({ run: 'echo running' })
    await world.store.put(layout.order(JOB, 1), JSON.stringify({ ...order, leaseMs: 'soon' }))
    const machine = world.start()
    expect(await machine.end()).toMatchObject({
      outcome: 'failed',
      reason: 'runner',
      message: expect.stringContaining('leaseMs must be a whole number'),
    })
  })

  it('is not given twice: where there is a result, nothing is run', async () => {
    const world = createWorld()
    const first = await world.launch({ run: 'echo once' })
    const result = await first.end()
    const second = world.start({ root: join(world.folder, 'another') })
    expect(await second.exited).toBe(0)
    expect(await second.result()).toEqual(result)
    expect(await second.output()).toEqual(['once'])
  })

  it('is followed by the command that switches the machine off', async () => {
    const world = createWorld()
    const mark = join(world.folder, 'off')
    const machine = await world.launch({ run: 'exit 1' }, '--power-off', `echo off > ${mark}`)
    await machine.end()
    expect(machine.read('../off')).toBe('off\n')
  })
})

describe('the environment of the command', () => {
  it('has what the order says and nothing of the machine but what programs need', async () => {
    const world = createWorld()
    const order = await world.order({
      env: { GREETING: 'grüße', PYTHONPATH: '/mine' },
      checkpoint: { directory: 'runs/ckpt', everyMs: 90_000, quietMs: 300, keep: 3 },
      run: 'env -0 > "$CRUCIBLE_OUTPUT_DIR/env"; pwd; ls -d runs/ckpt; python3 -c "import crucible_job; print(crucible_job.resume_path())"',
    })
    const machine = world.start()
    await machine.end()
    const lines = (await world.artifact('env'))!.split('\0').filter(Boolean)
    const environment = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)))
    expect(environment).toMatchObject({
      GREETING: 'grüße',
      PYTHONPATH: `${join(machine.root, 'helper')}:/mine`,
      PYTHONUNBUFFERED: '1',
      CRUCIBLE_JOB_ID: JOB,
      CRUCIBLE_JOB_NAME: order.jobName,
      CRUCIBLE_ATTEMPT: '1',
      CRUCIBLE_MACHINE: machine.id,
      CRUCIBLE_CHECKPOINT_DIR: join(machine.root, 'work/runs/ckpt'),
      CRUCIBLE_OUTPUT_DIR: join(machine.root, 'output'),
      CRUCIBLE_CONTROL_DIR: join(machine.root, 'control'),
      CRUCIBLE_CHECKPOINT_EVERY_SECONDS: '90',
      HOME: world.folder,
    })
    expect(environment).not.toHaveProperty('CRUCIBLE_RESUME_FROM')
    expect(environment).not.toHaveProperty('MACHINE_CREDENTIAL')
    expect(await machine.output()).toEqual([join(machine.root, 'work'), 'runs/ckpt', 'None'])
  })

  itInAll('is that of an order as the control plane wrote it', async () => {
    const world = createWorld()
    await world.order({ env: { 'WITH SPACE': 'a\nb' } })
    const stored = (await world.store.get(layout.order(JOB, 1)))!.toString()
    expect(parseOrder(stored).env).toEqual({ 'WITH SPACE': 'a\nb' })
    const machine = world.start()
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
  })
})
