import { patient } from '../support/patience'
import type { TestConnection } from '../support/temporal'
import { checkpoint } from './checkpoint'
import { coldStart } from './cold-start'
import { disks } from './disks'
import { endings } from './endings'
import { fleet } from './fleet'
import { forecast } from './forecast/measures'
import { history } from './history'
import type { Measure } from './measure'
import { queue } from './queue'
import { recovery } from './recovery'
import { throughput } from './throughput'

/** The sizes of the benchmarks: those of a real run, and those that only show that each of them works. */
export const SIZES = {
  repeats: { default: 4, tiny: 1, means: 'history: machines lost by one job, and half as many failures' },
  jobs: { default: 100, tiny: 2, means: 'throughput: jobs at once in a round' },
  pairs: { default: 5, tiny: 1, means: 'throughput: rounds, each with one of bare workflows' },
  rounds: { default: 15, tiny: 1, means: 'cold-start: how often each command is started' },
  fleet: { default: 2_000, tiny: 3, means: 'fleet: jobs that run at once' },
  quiet: { default: 60, tiny: 1, means: 'fleet: seconds for which they are measured' },
  mib: { default: 2_048, tiny: 1, means: 'checkpoint: size of the file' },
  disk: { default: 256, tiny: 2, means: 'disks: MiB of the checkpoint, a twentieth of its size' },
  recoveries: { default: 10, tiny: 1, means: 'recovery: losses of each kind' },
  boot: { default: 9_000, tiny: 300, means: 'recovery: milliseconds that the provider takes for a machine' },
  queue: { default: 50, tiny: 2, means: 'queue: short jobs' },
  each: { default: 5_000, tiny: 200, means: 'queue: milliseconds of each' },
  endings: { default: 300, tiny: 3, means: 'endings: jobs that end at once' },
  stop: { default: 120_000, tiny: 300, means: 'endings: milliseconds that a machine takes to stop' },
  forecasts: { default: 1_000, tiny: 40, means: 'forecast: how many jobs' },
}
export type Sizes = Readonly<Record<keyof typeof SIZES, number>>

type Part = (at: TestConnection, sizes: Sizes) => Promise<Measure[]>

export const PARTS: Readonly<Record<string, Part>> = {
  history: (at, { repeats }) => history(at, repeats),
  throughput: (at, { jobs, pairs }) => throughput(at, jobs, pairs),
  'cold-start': (at, { rounds }) => coldStart(at, rounds),
  fleet: (at, sizes) => fleet(at, sizes.fleet, sizes.quiet),
  checkpoint: (_, { mib }) => checkpoint(mib),
  disks: (at, { disk }) => disks(at, disk),
  recovery: (at, { recoveries, boot }) => recovery(at, recoveries, boot),
  queue: (at, sizes) => queue(at, sizes.queue, sizes.each),
  endings: (at, sizes) => endings(at, sizes.endings, sizes.stop),
  forecast: async (_, { forecasts }) => forecast(forecasts),
}

/** Far more than any of them takes. */
const PART_MAX_MS = 60 * 60_000

/** The figures of one benchmark, which ends: one that hangs fails. */
export async function measure(
  name: string,
  at: TestConnection,
  { sizes, limitMs = PART_MAX_MS }: { sizes: Sizes; limitMs?: number },
): Promise<Measure[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const words = `The benchmark ${name} did not end within ${patient(limitMs) / 1_000} s.`
    timer = setTimeout(() => reject(new Error(words)), patient(limitMs))
  })
  try {
    return await Promise.race([PARTS[name]!(at, sizes), late])
  } finally {
    clearTimeout(timer)
  }
}

export function sizesOf(which: 'default' | 'tiny'): Sizes {
  return Object.fromEntries(Object.entries(SIZES).map(([name, size]) => [name, size[which]])) as Sizes
}
