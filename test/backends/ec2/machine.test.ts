import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { readMachineFile, readUserData } from '../../../backends/ec2/launch/template'

interface Outcome {
  name: string
  failure: string | null
}

const python = process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3'
const runner = join(__dirname, '..', '..', 'runner', 'python', 'run.py')
const run = spawnSync(python, ['-B', runner, join(__dirname, 'python')], { encoding: 'utf8' })
const outcomes = run.stdout
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as Outcome)

describe('the programs on a machine of EC2', () => {
  it('are tested to the end', () => {
    expect({ status: run.status, stderr: run.stderr }).toMatchObject({ status: 0 })
    expect(outcomes.length).toBeGreaterThan(5)
  })

  it.each(outcomes.map(({ name, failure }) => [name, failure]))('%s', (_, failure) => {
    if (failure !== null) throw new Error(failure)
  })

  it('fit: user data has at most 16 KiB, and holds its program whole', () => {
    expect(Buffer.byteLength(readUserData())).toBeLessThan(16 * 1024)
    expect(readUserData()).toContain(readMachineFile('dead_man.py'))
    const checked = spawnSync('sh', ['-n'], { input: readUserData(), encoding: 'utf8' })
    expect(checked).toMatchObject({ status: 0, stderr: '' })
  })
})
