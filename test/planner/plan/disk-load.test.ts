import { expect, it } from '@jest/globals'
import type { JobSpec } from '../../../core/job/job'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { diskLoadOf } from '../../../planner/plan/disk-load'
import { SPEC } from '../wishes'

const GIB = 2 ** 30
const spec = (changes: Partial<JobSpec>): JobSpec => ({ ...SPEC, resources: {}, ...changes })
const saving = (everyMs: number | undefined, sizeBytes?: number): Partial<JobSpec> => ({
  durationMs: 100 * HOUR_MS,
  isInterruptible: true,
  checkpoint: {
    directory: 'checkpoints',
    ...(everyMs !== undefined && { everyMs }),
    ...(sizeBytes && { sizeBytes }),
  },
})

it.each<[what: string, gib: number, changes: Partial<JobSpec> & { earlierBytes?: number }]>([
  ['30 GiB in an hour where the job says nothing', 32, {}],
  ['the disk that it asks for', 128, { resources: { diskGiB: { min: 100 } } }],
  ['the disk over its time', 16, { resources: { diskGiB: { min: 600 } }, durationMs: 40 * HOUR_MS }],
  ['no more for a job of minutes', 32, { durationMs: MINUTE_MS }],
  ['each of its checkpoints', 128, saving(10 * MINUTE_MS, 20 * GIB)],
  ['checkpoints at the usual pace', 64, saving(undefined, 20 * GIB)],
  ['checkpoints at the usual pace where each one is kept', 64, saving(0, 20 * GIB)],
  ['checkpoints as large as the earlier ones', 64, { ...saving(undefined), earlierBytes: 20 * GIB }],
])('the expected load of a disk has %s: %d GiB an hour', (_, gib, { earlierBytes, ...changes }) => {
  const before = earlierBytes === undefined ? undefined : { totalBytes: earlierBytes, uploadMs: 1, saveMs: 1 }
  expect(diskLoadOf(spec(changes), before)).toBe(gib * 1024)
})
