import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { pythonClients } from '../../support/python-clients'

interface Outcome {
  name: string
  failure: string | null
}

const clients = pythonClients('modal-clients')

function run(python: string): { status: number | null; stderr: string; outcomes: Outcome[] } {
  const runner = join(__dirname, '../../runner/python/run.py')
  const { status, stdout, stderr } = spawnSync(
    python,
    ['-B', '-W', 'ignore', runner, join(__dirname, 'python')],
    {
      encoding: 'utf8',
    },
  )
  const lines = stdout.split('\n').filter(Boolean)
  return { status, stderr, outcomes: lines.map((line) => JSON.parse(line) as Outcome) }
}

if (clients === undefined) describe.skip('the logic of the gateway', () => it('is tested', () => undefined))
else {
  const { status, stderr, outcomes } = run(join(clients, 'python3'))
  describe('the logic of the gateway', () => {
    it('is tested to the end', () => {
      expect({ status, stderr }).toMatchObject({ status: 0 })
      expect(outcomes.length).toBeGreaterThan(20)
    })

    it.each(outcomes.map(({ name, failure }) => [name, failure]))('%s', (_, failure) => {
      if (failure !== null) throw new Error(failure)
    })
  })
}
