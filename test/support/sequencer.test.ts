import { join } from 'node:path'
import { expect, it, jest } from '@jest/globals'
import type Sequencer from '@jest/test-sequencer'
import { testFolder } from './folders'

const WaitingFirst = jest.requireActual<typeof Sequencer>('./sequencer.js')

it('begins with what uses the Temporal server or takes long, and goes from the longest to the shortest, by size where nothing is timed', () => {
  const folder = testFolder('sequencer')
  const path = (name: string): string => join(folder, name)
  const sizes = new Map([
    [path('large.test.ts'), 9],
    [path('small.test.ts'), 1],
    [path('small.e2e.test.ts'), 2],
    [path('large.e2e.test.ts'), 3],
  ])
  const context = {
    config: { cache: true, cacheDirectory: folder, id: 'one', haste: {} },
    hasteFS: { getSize: (name: string) => sizes.get(name) ?? null },
  }
  const tests = (): { path: string }[] => [...sizes.keys()].map((path) => ({ context, path }))
  const sequencer = (): Sequencer => new WaitingFirst({ contexts: [context], globalConfig: {} } as never)
  const order = (): string[] =>
    (sequencer().sort(tests() as never) as { path: string }[]).map(({ path }) =>
      path.slice(folder.length + 1),
    )
  expect(order()).toEqual(['large.e2e.test.ts', 'small.e2e.test.ts', 'large.test.ts', 'small.test.ts'])

  const testResults = tests().map(({ path }, index) => {
    const runtime = path.endsWith('small.test.ts') ? 60_000 : 100 - index
    return {
      testFilePath: path,
      numFailingTests: 0,
      skipped: false,
      perfStats: { start: 1, end: 2, runtime },
    }
  })
  sequencer().cacheResults(tests() as never, { testResults } as never)
  expect(order()).toEqual(['small.test.ts', 'small.e2e.test.ts', 'large.e2e.test.ts', 'large.test.ts'])
})
