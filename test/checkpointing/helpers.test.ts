import { beforeAll, describe, expect, it, jest } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { testFolder } from '../support/folders'
import { packRunner } from '../support/runner-program'
import { describeInAll } from '../support/selection'
import { CASES, obstacleOf, prove } from './cases'

jest.setTimeout(300_000)

const ROOT = join(__dirname, '../..')
const run = spawnSync(
  process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3',
  [
    ...['-B', join(ROOT, 'test/runner/python/run.py')],
    join(ROOT, 'bindings/python/crucible/tests/checkpoint'),
  ],
  { encoding: 'utf8' },
)
const outcomes = run.stdout
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as { name: string; failure: string | null })

describe('the helpers for training programs', () => {
  it('are tested to the end', () => {
    expect({ status: run.status, stderr: run.stderr }).toMatchObject({ status: 0 })
    expect(outcomes.length).toBeGreaterThan(20)
  })

  it.each(outcomes.map(({ name, failure }) => [name, failure]))('%s', (_, failure) => {
    if (failure !== null) throw new Error(failure)
  })
})

// `npm run checkpointing` proves all of them.
describeInAll('a program with a helper', () => {
  const one = CASES.find(({ name }) => name === 'pytorch')!
  const pythons = [process.env['CRUCIBLE_TUTORIALS_PYTHON'], 'python3', '/usr/bin/python3'].filter(
    (python) => python !== undefined,
  )
  const python = pythons.find((each) => obstacleOf(one, each) === undefined)
  const runner = join(testFolder('checkpointing'), 'runner.pyz')
  beforeAll(() => packRunner(runner))

  const title = 'ends with the same weights after a kill, and after a notice: PyTorch'
  const itIfInstalled = python === undefined ? it.skip : it
  itIfInstalled(
    python === undefined ? `${title} (skipped: ${obstacleOf(one, pythons[0]!)})` : title,
    async () => {
      expect(await prove(one, { python: python!, runner })).toEqual([])
    },
  )
})
