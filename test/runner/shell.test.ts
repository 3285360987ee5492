import { describe, expect, it } from '@jest/globals'
import { existsSync } from 'node:fs'
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

  it('does not wait for helpers that ran before its work', async () => {
    expect(await ended({ run: HELPER })).toMatchObject({ outcome: 'succeeded' })
  })
})
