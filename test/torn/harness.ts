import { availableParallelism } from 'node:os'
import { chunked, harness, nothingAround, type Report } from '../kit/harness'
import { total } from '../kit/table'
import { runCases } from './run'

/** Seeds of one Python process. */
const CHUNK = 250

interface Torn extends Report {
  /** How often each thing happened. */
  counts: Readonly<Record<string, number>>
}

/** Uploads of checkpoints that are torn, and what is resumed from afterwards: the runner's code in Python, the control plane's here. */
export const TORN = harness({
  seeds: 10_000,
  jobs: availableParallelism(),
  isQuiet: true,
  options: {},
  around: nothingAround,
  draw: ({ seeds, jobs }) => chunked(seeds, Math.min(CHUNK, Math.ceil(seeds.length / jobs))),
  live: async ({ seeds }: ReturnType<typeof chunked>[number]): Promise<Torn> => {
    const { bad, counts } = await runCases(seeds[0]!, seeds.length)
    return {
      state: 'over',
      breaches: bad.map(({ seed, words }) => `seed ${seed}: ${words}`),
      story: [],
      again: bad.length === 0 ? undefined : ['--seed', `${bad[0]!.seed}`],
      counts: { ...counts, seeds: seeds.length },
    }
  },
  table: (reports) => [...total(reports.map(({ counts }) => counts))].sort(),
})
