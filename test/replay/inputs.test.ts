/**
 * A replay compares which commands the code gives, not what is in them. These tests compare the rest: the inputs of activities,
 * children, signals and fresh histories, the lengths of timers, search attributes, answers to updates, and results.
 */
import { beforeAll, describe, expect, it } from '@jest/globals'
import { DefaultLogger, Runtime } from '@temporalio/worker'
import { commandsOf, differences, replayed, type Command, type History, type HistoryEvent } from './commands'
import { historyFiles, readHistory } from './histories'

const files = historyFiles()
const read = (file: string): History => readHistory<HistoryEvent>(file)

beforeAll(() => {
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' } } },
  })
})

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
  const inputs = new Map(given.map(({ what, input }) => [what, input]))
  return commandsOf(read(file))
    .flatMap((command) => {
      const { what, eventId } = command
      const found = inputs.has(what) ? differences(renamed(command), inputs.get(what)) : ['is missing']
      return found.map((each) => `${file}, event ${eventId}, ${what}: ${each}`)
    })
    .filter((each) => !INTENDED.includes(each))
}

describe('a job that runs while this version is installed', () => {
  it.each(files)('gives its activities, timers and children what it gave them before: %s', async (file) => {
    const { commands, error } = await replayed(read(file))
    expect(error).toBeUndefined()
    expect(changes(file, commands)).toEqual([])
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

  it('misses a command that is not given', async () => {
    const found = await changed((command) => ({ ...command, what: command.what.replace('activity 1 ', '') }))
    expect(found).toEqual([
      expect.stringMatching(/^attempt\.drained\.v1\.json, event \d+, activity 1 launch: is missing$/),
    ])
  })

  it('compares every kind of command', () => {
    const kinds = [
      ...['activity', 'timer', 'child', 'signal', 'search attributes', 'answer to an update'],
      ...['fresh history', 'result', 'failure', 'cancellation'],
    ]
    const all = files.flatMap((each) => commandsOf(read(each)).map(({ what }) => what))
    const kindOf = (what: string): string | undefined => kinds.find((kind) => what.startsWith(kind))
    expect(all.filter((what) => kindOf(what) === undefined)).toEqual([])
    expect([...new Set(all.map(kindOf))].sort()).toEqual([...kinds].sort())
  })
})
