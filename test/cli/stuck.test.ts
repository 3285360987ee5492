/** Workflows that need a person, as `doctor` and `list` show them. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { Context } from '../../client/context'
import { ClientWorld, JOB, NOW } from '../client/world'
import { STORE_OWNER } from '../support/marked-store'
import { World } from './outside'

let world: ClientWorld
let cli: World

beforeEach(async () => {
  world = await ClientWorld.make()
  cli = new World()
  cli.environment['CRUCIBLE_STORE'] = world.context.config.home.storeUrl
  await world.submitted({ deployment: STORE_OWNER })
})
afterEach(async () => {
  jest.restoreAllMocks()
  cli.remove()
  await world.remove()
})

/** A server whose open workflows have this data. */
function serverOf(open: Readonly<Record<string, object>>): Client {
  const described = (workflowId: string): object => ({
    workflowId,
    startTime: new Date(NOW),
    status: { name: 'RUNNING' },
    raw: open[workflowId],
    typedSearchAttributes: { get: () => undefined },
  })
  return {
    withDeadline: (_untilMs: number, call: () => unknown) => call(),
    workflow: {
      async *list({ query }: { query: string }) {
        const isOfJobs = query.startsWith("WorkflowType = 'job'")
        for (const id of Object.keys(open)) if (!isOfJobs || id === `job/${JOB}`) yield described(id)
      },
      getHandle: (workflowId: string) => ({ describe: async () => described(workflowId) }),
    },
  } as unknown as Client
}

const FINE = { workflowExecutionInfo: { historyLength: 60 } }
const FAILING = { pendingWorkflowTask: { attempt: 4 } }
const FLOODED = { workflowExecutionInfo: { historyLength: '10001' } }

describe('a workflow that needs a person', () => {
  it.each([
    ['whose tasks fail', `job/${JOB}`, FAILING, /No worker can continue the workflow/],
    ['that has had 10,000 signals', `job/${JOB}`, FLOODED, /has 10001 events/],
  ])('is named in list and doctor with the command that ends it: one %s', async (_what, id, raw, words) => {
    jest.spyOn(Context.prototype, 'temporal').mockResolvedValue(serverOf({ [id]: raw }))
    const command = `temporal workflow terminate --workflow-id ${id}`
    for (const args of [['list'], ['doctor'], ['doctor', '--json']]) {
      const { stdout, stderr } = await cli.run(...args)
      expect(stdout + stderr).toMatch(words)
      expect(stdout + stderr).toContain(command)
    }
  })

  it('is named in doctor also if it is not a job', async () => {
    const open = { 'retrain/a': FAILING, [`job/${JOB}`]: FINE, 'treasury/2026-11': FLOODED }
    jest.spyOn(Context.prototype, 'temporal').mockResolvedValue(serverOf(open))
    const { stdout } = await cli.run('doctor', '--json')
    const { findings } = JSON.parse(stdout) as { findings: { check: string; remedy?: string }[] }
    const found = findings.filter(({ check }) => check === 'workflows')
    expect(found.map(({ remedy }) => remedy)).toEqual([
      'If no worker continues it: temporal workflow terminate --workflow-id retrain/a',
      'If no worker continues it: temporal workflow terminate --workflow-id treasury/2026-11',
    ])
  })
})
