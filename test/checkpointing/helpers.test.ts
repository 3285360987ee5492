import { beforeAll, describe, expect, it, jest } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { itWithLibraries } from '../kit/jest'
import { testFolder } from '../support/folders'
import { packRunner } from '../support/runner-program'
import { describeInAll } from '../support/selection'
import { CASES, prove } from './cases'

jest.setTimeout(300_000)

const ROOT = join(__dirname, '../..')
const run = spawnSync(
  process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3',
  ['-B', join(ROOT, 'test/runner/python/run.py'), join(ROOT, 'bindings/python/crucible/tests/checkpoint')],
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

// `npm run proof -- checkpointing` proves all of them.
describeInAll('a program with a helper', () => {
  const one = CASES.find(({ name }) => name === 'pytorch')!
  const runner = join(testFolder('checkpointing'), 'runner.pyz')
  beforeAll(() => packRunner(runner))

  const title = 'ends with the same weights after a kill, and after a notice: PyTorch'
  itWithLibraries(title, one, async (python) => expect(await prove(one, { python, runner })).toEqual([]))
})
