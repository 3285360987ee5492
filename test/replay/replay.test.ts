/**
 * Replays every golden history through the workflows. A replay compares which commands the code gives, not what is in them. These
 * tests compare the rest with the history: the inputs of activities, children, signals and fresh histories, the lengths of timers,
 * search attributes, answers to updates, and results. They compare the inputs of local activities, the page in the Web UI and the
 * answers to queries with what they were when `npm run record-histories` last ran.
 */
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { Worker } from '@temporalio/worker'
import { WORKFLOW_TYPES } from '../../core/queues'
import { quietWorkers } from '../support/temporal'
import { testWorkflowBundle } from '../support/workflow-bundle'
import { changesOf, commandsOf, replayed, type Command, type History, type HistoryEvent } from './commands'
import { historyFiles, isLived, readHistory, scenarioOf, shownPathOf } from './histories'
import { SCENARIOS } from './scenarios'

const files = historyFiles()
const read = (file: string): History => readHistory<HistoryEvent>(file)

beforeAll(quietWorkers)

/** Fields that had another name in versions before the first release, by activity: nothing reads them under the old one. */
const RENAMED: Readonly<Record<string, { from: string; to: string }>> = {
  settle: { from: 'wish', to: 'drainReason' },
  decide: { from: 'wish', to: 'drainReason' },
}

/** Changes before the first release that were meant. */
const INTENDED = [
  // A settlement learns of every drain, not only of what the job asked for.
  'attempt.cancelled-by-hand.v1.json, event 36, activity 5 settle: $[0].drainReason was null, is "superseded"',
  'attempt.reservation-ends-unheeded.v1.json, event 38, activity 6 settle: $[0].drainReason was null, is "expired"',
  // The planner learns whether the attempt saved: a run limit after a checkpoint is a planned hand-over.
  'job.decided-after-trouble.v1.json, event 23, activity 4 decide: $[0].hasSaved was absent, is true',
]

function renamed({ what, input }: Command): unknown {
  const rule = RENAMED[what.split(' ').at(-1)!]
  if (rule === undefined) return input
  return (input as Record<string, unknown>[]).map(({ [rule.from]: value, ...others }) => ({
    ...others,
    ...(value !== undefined && { [rule.to]: value }),
  }))
}

/** Each command of a history that the code gives with other inputs. */
function changes(file: string, given: readonly Command[]): string[] {
  return changesOf(read(file), given, renamed)
    .map((each) => `${file}, ${each}`)
    .filter((each) => !INTENDED.includes(each))
}

describe('a job that runs while this version is installed', () => {
  it.each(files)('continues as it began: %s', async (file) => {
    const { commands, shown, error } = await replayed(read(file))
    expect(error).toBeUndefined()
    expect(changes(file, commands)).toEqual([])
    expect(`${shown.join('\n')}\n`.split('\n')).toEqual(readFileSync(shownPathOf(file), 'utf8').split('\n'))
  })

  it('has a history for every scenario of every workflow', () => {
    // Of some there are several: as it was when something changed, and as it is.
    const played = files.filter((file) => !isLived(file)).map(scenarioOf)
    expect([...new Set(played)].sort()).toEqual(SCENARIOS.map(({ name }) => name).sort())
    const types = new Set(SCENARIOS.map(({ name }) => name.split('.')[0]))
    expect([...types].sort()).toEqual(Object.values(WORKFLOW_TYPES).sort())
  })
})

describe('a comparison of inputs', () => {
  const file = 'attempt.drained.v1.json'
  const changed = async (change: (command: Command) => Command): Promise<string[]> => {
    const { commands } = await replayed(read(file))
    return changes(file, commands.map(change))
  }

  it('names history, event, activity and field', async () => {
    const found = await changed((command) =>
      command.what.endsWith(' settle')
        ? { ...command, input: [{ ...(command.input as [object])[0], windowMs: 7 }] }
        : command,
    )
    expect(found).toEqual([`${file}, event 36, activity 5 settle: $[0].windowMs was 0, is 7`])
  })

  it('notices a command that is missing', async () => {
    const found = await changed((command) => ({ ...command, what: command.what.replace('activity 1 ', '') }))
    expect(found).toEqual([
      expect.stringMatching(/^attempt\.drained\.v1\.json, event \d+, activity 1 launch: is missing$/),
    ])
  })

  it('compares every kind of command', () => {
    const kinds = [
      'activity',
      'timer',
      'child',
      'signal',
      'search attributes',
      'answer to an update',
      'fresh history',
      'result',
      'failure',
      'cancellation',
    ]
    const all = files.flatMap((each) => commandsOf(read(each)).map(({ what }) => what))
    const kindOf = (what: string): string | undefined => kinds.find((kind) => what.startsWith(kind))
    expect(all.filter((what) => kindOf(what) === undefined)).toEqual([])
    expect([...new Set(all.map(kindOf))].sort()).toEqual([...kinds].sort())
  })
})

describe('a history that somebody changed', () => {
  const file = files.find((name) => name.startsWith('attempt.succeeded'))!

  it('is refused when another activity was scheduled', async () => {
    const history = read(file)
    const scheduled = history.events.find((event) => event.activityTaskScheduledEventAttributes)!
    scheduled.activityTaskScheduledEventAttributes!.activityType.name = 'terminate'
    await expect(
      Worker.runReplayHistory({ workflowBundle: await testWorkflowBundle() }, history),
    ).rejects.toMatchObject({
      name: 'DeterminismViolationError',
    })
  })

  it('is refused when a step is missing', async () => {
    const history = read(file)
    const index = history.events.findIndex(
      (event) => 'upsertWorkflowSearchAttributesEventAttributes' in event,
    )
    history.events.splice(index, 1)
    await expect(
      Worker.runReplayHistory({ workflowBundle: await testWorkflowBundle() }, history),
    ).rejects.toThrow()
  })
})
