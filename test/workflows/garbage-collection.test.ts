import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import type { CollectGarbageInput } from '../../core/activities'
import { carrying } from '../../core/failure'
import type { GarbageCollectionInput, GarbageVerdict } from '../../core/messages'
import type * as Collection from '../../workflows/garbage-collection'

/** The arguments of each look, its answer, and how long the grace was. */
let looks: CollectGarbageInput[]
let slept: number[]
let answerOf: (input: CollectGarbageInput) => GarbageVerdict[]

jest.mock('@temporalio/workflow', () => {
  const look = (input: CollectGarbageInput): Promise<GarbageVerdict[]> => {
    looks.push(input)
    return Promise.resolve(answerOf(input))
  }
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    proxyActivities: () => ({ collectGarbage: look, collectStoreGarbage: look }),
    sleep: async (forMs: number) => void slept.push(forMs),
  }
})
const { garbageCollection } = jest.requireActual<typeof Collection>('../../workflows/garbage-collection')

const INPUT: GarbageCollectionInput = {
  ...{ deployment: 'dep-1', backends: ['local', 'ec2'], graceMs: 90_000, isDryRun: false },
}
const verdict = (backend: string, id: string, action: GarbageVerdict['action']): GarbageVerdict => ({
  ...{ backend, kind: 'machine', id, owner: '', description: '', action, reason: '' },
})

beforeEach(() => {
  looks = []
  slept = []
  answerOf = ({ backend, candidates }) =>
    candidates.length === 0
      ? [verdict(backend, `${backend}-1`, 'would-end'), verdict(backend, `${backend}-2`, 'kept')]
      : candidates.map((id) => verdict(backend, id, 'ended'))
})

describe('a garbage collection', () => {
  it('gives each backend, and the store, the candidates that it named itself, after the grace', async () => {
    const { verdicts } = await garbageCollection(INPUT)
    const [first, second] = [looks.slice(0, 3), looks.slice(3)]
    const common = { deployment: 'dep-1', isDryRun: false }
    expect(first).toEqual(
      ['local', 'ec2', 'store'].map((backend) => ({ ...common, backend, candidates: [] })),
    )
    expect(slept).toEqual([90_000])
    expect(second).toEqual(
      ['local', 'ec2', 'store'].map((backend) => ({
        ...common,
        ...{ backend, candidates: [`${backend}-1`], youngMs: 90_000 },
      })),
    )
    expect(verdicts.map(({ id, action }) => [id, action])).toEqual(
      ['local-1', 'ec2-1', 'store-1'].map((id) => [id, 'ended']),
    )
  })

  it.each([
    ['that is a dry run', { ...INPUT, isDryRun: true }, true],
    ['that finds nothing', INPUT, false],
  ])('%s looks once, and waits for nothing', async (_, input, hasFound) => {
    if (!hasFound) answerOf = () => []
    const { verdicts } = await garbageCollection(input)
    expect(looks.map(({ backend, isDryRun }) => ({ backend, isDryRun }))).toEqual(
      ['local', 'ec2', 'store'].map((backend) => ({ backend, isDryRun: input.isDryRun })),
    )
    expect(slept).toEqual([])
    expect(verdicts.length > 0).toBe(hasFound)
  })

  it('continues if one backend cannot be asked', async () => {
    const well = answerOf
    answerOf = (input) => {
      if (input.backend === 'ec2') throw new Error('no worker')
      return well(input)
    }
    const { verdicts } = await garbageCollection(INPUT)
    expect(verdicts.map(({ backend, action }) => [backend, action])).toEqual([
      ['local', 'ended'],
      ['ec2', 'failed'],
      ['store', 'ended'],
    ])
  })

  it('says why a backend cannot be asked, and what to do about it', async () => {
    const failure = { class: 'auth', message: 'The credentials have expired.' } as const
    const reasonOf = async (hint?: string): Promise<string | undefined> => {
      answerOf = () => {
        throw ApplicationFailure.create(carrying({ ...failure, ...(hint && { hint }) }))
      }
      return (await garbageCollection({ ...INPUT, backends: ['ec2'] })).verdicts[0]?.reason
    }
    expect(await reasonOf()).toBe('The credentials have expired.')
    expect(await reasonOf('Renew them.')).toBe('The credentials have expired. Renew them.')
  })
})
