import { describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/until'
import { TALKATIVE } from './programs'
import { useWorlds, type Wanted } from './world'

const createWorld = useWorlds()

async function ended(
  wanted: Wanted,
): Promise<{ outcome: string; exitCode: number | null; output: string[] }> {
  const world = createWorld()
  const machine = await world.launch(wanted)
  const { outcome, exitCode } = await machine.end()
  return { outcome, exitCode, output: (await machine.lines()).map(({ m }) => m) }
}

const failed = (exitCode: number) => ({ outcome: 'failed', exitCode })
const HELPER = 'sleep 600 & helper=$!; sleep 1.5; echo $helper > "$CRUCIBLE_OUTPUT_DIR/helper"'

/** Whether the system's own Python refuses `pip install` (PEP 668). */
function isManaged(): boolean {
  const code =
    'import os, sysconfig; print(os.path.exists(sysconfig.get_path("stdlib") + "/EXTERNALLY-MANAGED"))'
  return spawnSync('/usr/bin/python3', ['-c', code], { encoding: 'utf8' }).stdout.trim() === 'True'
}

describe('the shell', () => {
  it.each<[string, Wanted, object]>([
    ['with the first line that fails', { run: 'true\n(exit 3)\necho done' }, failed(3)],
    ['with the first part of a pipe that fails', { run: '(echo loss; exit 4) | cat' }, failed(4)],
    ['with an unknown command', { run: 'trian.py\necho done' }, failed(127)],
    ['with a setup that fails', { setup: 'false\ntrue', run: 'true' }, { outcome: 'failed' }],
    ['with the program that its last line starts', { run: '(sleep 0.2; exit 5) &' }, failed(5)],
    [
      'with the programs of a loop, whichever fails',
      { run: 'for rank in 0 1 2; do (sleep 0.$rank; [ $rank != 1 ]) & done' },
      failed(1),
    ],
    [
      'with its last line only where `shell` says so',
      { run: 'false\n(exit 3) | cat', shell: 'sh' },
      { outcome: 'succeeded', exitCode: 0 },
    ],
  ])('ends %s', async (_, wanted, end) => {
    expect(await ended(wanted)).toMatchObject(end)
  })

  it('waits for programs in the background, and says so', async () => {
    const { outcome, output } = await ended({ run: 'for i in 1 2; do (sleep 1; echo step $i) & done' })
    expect(outcome).toBe('succeeded')
    expect(output.filter((line) => line.startsWith('step')).sort()).toEqual(['step 1', 'step 2'])
    expect(output.join('\n')).toMatch(
      /crucible: the command has ended, but left \w+ \(process \d+\).* running: waiting/,
    )
  })

  it('asks programs in the background to save, in whatever session they are', async () => {
    const world = createWorld()
    const machine = await world.launch({
      bundle: await world.bundle({ 'train.py': TALKATIVE }),
      run: 'for rank in 0; do setsid python3 train.py & done',
    })
    await until(() => existsSync(join(machine.root, 'work/ready')))
    await world.drain(1, { windowMs: 10_000 })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', exitCode: 143, checkpoint: { step: 7 } })
  })

  it.each([
    ['', []],
    [" as the job's own user", process.getuid?.() === 0 ? ['--user', '54321'] : []],
  ])(
    'finds a Python environment of the job where the system manages its own Python%s',
    async (_, options) => {
      const world = createWorld()
      world.environment['PATH'] = '/usr/bin:/bin'
      chmodSync(world.folder, 0o711)
      const setup = 'touch "${VIRTUAL_ENV:-.}/mine"; echo "in ${VIRTUAL_ENV-}"; command -v python3'
      const jobRoot = join(world.folder, 'job')
      const wanted = { setup, run: 'command -v python3' }
      const machine = await world.launch(wanted, '--job-root', jobRoot, ...options)
      expect((await machine.end()).outcome).toBe('succeeded')
      const folder = join(jobRoot, 'python')
      const python = isManaged() ? `${folder}/bin/python3` : '/usr/bin/python3'
      expect(await machine.output()).toEqual([isManaged() ? `in ${folder}` : 'in ', python, python])
    },
  )

  it('does not wait for helpers that ran before its work', async () => {
    expect(await ended({ run: HELPER })).toMatchObject({ outcome: 'succeeded' })
  })
})
