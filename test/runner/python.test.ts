import { describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

interface Outcome {
  name: string
  failure: string | null
  /** Why it did not run. */
  skipped: string | null
}

// They are many and each takes milliseconds: one process runs them all, and each is reported here by its name.
const run = spawnSync(
  process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3',
  ['-B', join(__dirname, 'python', 'run.py')],
  {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  },
)
const outcomes = run.stdout
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as Outcome)

describe('the parts of the runner', () => {
  it('are tested to the end', () => {
    expect({ status: run.status, stderr: run.stderr }).toMatchObject({ status: 0 })
    expect(outcomes.length).toBeGreaterThan(100)
  })

  const ran = outcomes.filter(({ skipped }) => skipped === null)
  it.each(ran.map(({ name, failure }) => [name, failure]))('%s', (_, failure) => {
    if (failure !== null) throw new Error(failure)
  })

  for (const { name, skipped } of outcomes)
    if (skipped !== null) it.skip(`${name} (skipped: ${skipped})`, () => undefined)
})
