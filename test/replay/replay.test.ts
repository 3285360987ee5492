import { beforeAll, describe, expect, it } from '@jest/globals'
import { DefaultLogger, Runtime, Worker, type WorkflowBundleOption } from '@temporalio/worker'
import { WORKFLOW_TYPES } from '../../core/queues'
import { testWorkflowBundle } from '../support/workflow-bundle'
import { historyFiles, readHistory, scenarioOf } from './histories'
import { SCENARIOS } from './scenarios'

const files = historyFiles()

interface Event {
  activityTaskScheduledEventAttributes?: { activityType: { name: string } }
}
const read = (file: string): { events: Event[] } => readHistory<Event>(file)

let workflowBundle: WorkflowBundleOption
/** Why a history cannot be continued; `undefined` for one that can. */
const errors = new Map<string, Error | undefined>()

beforeAll(async () => {
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' } } },
  })
  workflowBundle = await testWorkflowBundle()
  // One worker for all: its start takes longer than a replay. It replays one after the other.
  const histories = files.map((file) => ({ workflowId: 'replayed', history: read(file) }))
  const remaining = [...files]
  for await (const { error } of Worker.runReplayHistories({ workflowBundle }, histories))
    errors.set(remaining.shift()!, error)
})

describe('a job that runs while this version is installed', () => {
  it.each(files)('continues as it began: %s', (file) => {
    expect([...errors.keys()]).toContain(file)
    expect(errors.get(file)).toBeUndefined()
  })

  it('has a history for every branch of every workflow', () => {
    // Of some there are several: as it was when something changed, and as it is.
    const recorded = new Set(files.map(scenarioOf))
    expect([...recorded].sort()).toEqual(SCENARIOS.map(({ name }) => name).sort())
    const types = new Set(SCENARIOS.map(({ name }) => name.split('.')[0]))
    expect([...types].sort()).toEqual(Object.values(WORKFLOW_TYPES).sort())
  })
})

describe('a history that somebody changed', () => {
  const file = files.find((name) => name.startsWith('attempt.succeeded'))!

  it('is refused when another activity was scheduled', async () => {
    const history = read(file)
    const scheduled = history.events.find((event) => event.activityTaskScheduledEventAttributes)!
    scheduled.activityTaskScheduledEventAttributes!.activityType.name = 'terminate'
    await expect(Worker.runReplayHistory({ workflowBundle }, history)).rejects.toMatchObject({
      name: 'DeterminismViolationError',
    })
  })

  it('is refused when a step is missing', async () => {
    const history = read(file)
    const index = history.events.findIndex(
      (event) => 'upsertWorkflowSearchAttributesEventAttributes' in event,
    )
    history.events.splice(index, 1)
    await expect(Worker.runReplayHistory({ workflowBundle }, history)).rejects.toThrow()
  })
})
