import { afterEach, beforeEach, expect, it, jest } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { Context } from '../../client/context'
import { EXIT_CODES } from '../../client/errors'
import type { GarbageVerdict } from '../../core/messages'
import { NOW } from '../client/world'
import { STORE_OWNER } from '../support/marked-store'
import { World } from './outside'

let cli: World
beforeEach(() => {
  cli = new World()
})
afterEach(() => {
  jest.restoreAllMocks()
  cli.remove()
})

const verdictOf = (action: GarbageVerdict['action']): GarbageVerdict => ({
  action,
  backend: 'ec2',
  kind: 'machine',
  id: 'i-1',
  owner: 'job-a-1',
  reason: 'its job is over',
  description: '',
})

/** A server whose collections find one machine. A dry run would end it; another one, and the last of the schedule, do this. */
function collects(action: GarbageVerdict['action']): void {
  const done = { verdicts: [verdictOf(action)] }
  const client = {
    schedule: {
      getHandle: () => ({
        describe: async () => ({
          action: { args: [{ deployment: STORE_OWNER, graceMs: 1_000 }] },
          info: { recentActions: [{ takenAt: new Date(NOW), action: { workflow: { workflowId: 'last' } } }] },
        }),
      }),
    },
    workflow: {
      start: async (_: string, { args: [{ isDryRun }] }: { args: [{ isDryRun: boolean }] }) => ({
        result: async () => (isDryRun ? { verdicts: [verdictOf('would-end')] } : done),
      }),
      getHandle: () => ({
        describe: async () => ({ status: { name: 'COMPLETED' } }),
        result: async () => done,
      }),
    },
  }
  jest.spyOn(Context.prototype, 'temporal').mockResolvedValue(client as unknown as Client)
}

it.each([
  { flags: [], action: 'failed', exitCode: EXIT_CODES.failed },
  { flags: ['--last'], action: 'failed', exitCode: EXIT_CODES.failed },
  { flags: [], action: 'ended', exitCode: 0 },
  { flags: ['--dry-run'], action: 'failed', exitCode: 0 },
] as const)(
  'gc $flags exits with $exitCode when a machine is: $action',
  async ({ flags, action, exitCode }) => {
    collects(action)
    expect(await cli.run('gc', ...flags)).toMatchObject({ exitCode, stdout: expect.stringContaining('i-1') })
  },
)
