import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { tellRun, type RunWord } from '../../../client/retraining/schedule-runs'
import type { RetrainState } from '../../../core/retraining/run'
import { putRevision, type ScheduleRevision } from '../../../storage/schedules'
import { ClientWorld, NOW } from '../world'

let world: ClientWorld
/** What the server plays: the runs of its list, and the updates that it got. */
let runs: Record<string, { id: string; state: RetrainState }>
let told: [workflowId: string, update: string][]

beforeEach(async () => {
  world = await ClientWorld.make()
  runs = {}
  told = []
  world.client = serverOf()
  const input = { schedule: 'ranker' } as ScheduleRevision['input']
  await putRevision(world.context.store, { revision: 1, atMs: NOW, by: 'ada', kind: 'created', input })
})
afterEach(() => world.remove())

function serverOf(): object {
  return {
    withDeadline: (_: number, ask: () => unknown) => ask(),
    schedule: {
      // It follows no run that may overlap others.
      getHandle: () => ({
        describe: async () => ({ state: {}, raw: {}, info: { nextActionTimes: [], runningActions: [] } }),
      }),
    },
    workflow: {
      list: async function* ({ query }: { query: string }) {
        if (!query.includes("'retrain/ranker'")) return
        for (const workflowId of Object.keys(runs)) {
          yield { workflowId: `${workflowId}-over`, status: { name: 'COMPLETED' } }
          yield { workflowId, status: { name: 'PAUSED' } }
        }
      },
      getHandle: (workflowId: string) => ({
        query: async () => ({ state: runs[workflowId]!.state, run: { id: runs[workflowId]!.id } }),
        executeUpdate: async (update: string) => {
          told.push([workflowId, update])
          return { message: 'Done.' }
        },
      }),
    },
  }
}

const say = (word: RunWord, run?: string) => tellRun(world.context, 'ranker', { word, run })

describe('a word to the runs of a schedule', () => {
  it('reaches a run that was started by hand', async () => {
    runs = { one: { id: '2026-11-27', state: 'awaiting-approval' } }
    expect(await say('approve')).toEqual({ message: 'Done.' })
    expect(told).toEqual([['one', 'approveModel']])
  })

  it('needs the id of one of several, which it names', async () => {
    runs = {
      one: { id: '2026-11-27', state: 'awaiting-approval' },
      two: { id: '2026-11-27b', state: 'awaiting-approval' },
      three: { id: '2026-10-05', state: 'training' },
    }
    await expect(say('reject')).rejects.toMatchObject({
      message: 'Several runs of ranker wait for approval: 2026-11-27, 2026-11-27b.',
      hint: 'Choose one: --run 2026-11-27.',
    })
    await say('approve', '2026-11-27b')
    expect(told).toEqual([['two', 'approveModel']])
  })

  it.each<[RunWord, string]>([
    ['approve', 'No run of ranker waits for approval: 2026-10-05 is training.'],
    ['skip', 'No run of ranker can be skipped: 2026-10-05 is training.'],
    ['start-now', 'No run of ranker waits for its window: 2026-10-05 is training.'],
  ])('is refused without a run that it fits: %s', async (word, message) => {
    runs = { three: { id: '2026-10-05', state: 'training' } }
    await expect(say(word)).rejects.toMatchObject({
      message,
      hint: 'See its runs with `crucible schedule show ranker`.',
    })
    await expect(say('approve', '2026-10-05')).rejects.toThrow(
      'No run 2026-10-05 of ranker waits for approval: 2026-10-05 is training.',
    )
  })
})
