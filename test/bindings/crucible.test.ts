/** The Python package `crucible` without a server. Its cases are in `crucible/`; one process runs them all. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'

interface Outcome {
  name: string
  failure: string | null
  /** Why it did not run. */
  skipped: string | null
}

const ROOT = join(__dirname, '../..')
const SOURCES = ['truffle', 'crucible'].map((name) => join(ROOT, 'bindings/python', name, 'src'))

const run = spawnSync(
  process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3',
  ['-B', join(ROOT, 'test/runner/python/run.py'), join(__dirname, 'crucible')],
  {
    encoding: 'utf8',
    env: { ...process.env, PYTHONPATH: SOURCES.join(':') },
    maxBuffer: 64 * 1024 * 1024,
  },
)
const outcomes = run.stdout
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as Outcome)

describe('the Python package crucible', () => {
  it('is tested to the end', () => {
    expect({ status: run.status, stderr: run.stderr }).toEqual({ status: 0, stderr: '' })
    expect(outcomes.length).toBeGreaterThan(30)
  })

  const ran = outcomes.filter(({ skipped }) => skipped === null)
  it.each(ran.map(({ name, failure }) => [name, failure]))('%s', (_, failure) => {
    if (failure !== null) throw new Error(failure)
  })

  for (const { name, skipped } of outcomes)
    if (skipped !== null) it.skip(`${name} (skipped: ${skipped})`, () => undefined)
})
