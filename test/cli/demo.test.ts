import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { setStage as SetStage } from '../../cli/demo/stage'
import type { playStory as PlayStory } from '../../cli/demo/story'
import { statusOf } from '../client/world'
import { World } from './outside'

const setStage = jest.fn<typeof SetStage>()
const playStory = jest.fn<typeof PlayStory>()
jest.mock('../../cli/demo/stage', () => ({ setStage }))
jest.mock('../../cli/demo/story', () => ({ playStory, TWO_ZONES_PLOT: { bills: ['one', 'other'] } }))

let cli: World
beforeEach(() => {
  cli = new World()
})
afterEach(() => cli.remove())

/** A demo with this end. */
function ends({ isIdentical = true, left = [] }: { isIdentical?: boolean; left?: string[] }): void {
  const bill = { tookMs: 1_000, machineMs: 1_000, costMicroUsd: 1 }
  const view = { ...statusOf(), attempts: [] }
  const weights = { path: 'weights.json', sizeBytes: 1, sha256: 'a'.repeat(64), isIdentical }
  const stage = { setUpMs: 0, broken: new Promise(() => undefined), close: async () => left }
  setStage.mockResolvedValue(stage as never)
  playStory.mockResolvedValue({
    moved: view,
    undisturbed: view,
    weights,
    spot: bill,
    onDemand: bill,
  } as never)
}

describe('crucible demo', () => {
  it.each([
    [{}, 0, /The same weights/],
    [{ isIdentical: false }, 1, /Different weights/],
    [{ left: ['temporal 4711'] }, 1, /temporal 4711/],
  ])('that ends with %j exits with %d', async (end, exitCode, words) => {
    ends(end)
    const answer = await cli.run('demo')
    expect(answer.exitCode).toBe(exitCode)
    expect(answer.stdout + answer.stderr).toMatch(words)
  })
})
