/** The jobs of a run: their names and budgets, and the secrets that each gets. */
import { describe, expect, it } from '@jest/globals'
import type { RetrainingDeps } from '../../../activities/retraining/activities'
import { prepareJob, specOf } from '../../../activities/retraining/jobs'
import { microUsd } from '../../../core/money/money'
import type { PrepareJobTask, RunJob } from '../../../core/retraining/run'
import { layout } from '../../../storage/layout'
import { putRevision } from '../../../storage/schedules'
import { attemptKey, openSecrets, scheduleKey, sealSecrets } from '../../../storage/secrets'
import { MemoryStore } from '../../backends/scripted/memory-store'
import { DEPLOYMENT_ID } from '../../workflows/harness'
import { SCHEDULE, SPEC_BY_HAND } from '../../workflows/retraining'

const NOW_MS = Date.UTC(2027, 0, 4)
const KEY = Buffer.alloc(32, 7)

const taskOf = (
  part: RunJob['part'],
  { job = {}, ...more }: { job?: object; budgetMicroUsd?: number } = {},
): PrepareJobTask => ({
  part,
  jobId: 'job-1',
  recordSeq: 1,
  ...more,
  run: {
    id: '2027-01-04',
    jobPrefix: 'ranker-20270104',
    dates: {
      nominal: '2027-01-04',
      opensAtMs: NOW_MS,
      zone: 'UTC',
      isByHand: false,
      notes: [],
      window: { start: '2026-10-01', end: '2027-01-01' },
    },
  },
  input: {
    schedule: SCHEDULE,
    revision: 1,
    bundle: null,
    secrets: [],
    owner: 'ada',
    deployment: DEPLOYMENT_ID,
    spec: {
      ...SPEC_BY_HAND,
      job: { ...SPEC_BY_HAND.job, ...job },
      rehearsal: { run: 'train --steps 1', budget: '$1' },
    },
  },
})

describe('a job of a run', () => {
  it('has the name of its part, unless it is the training', () => {
    expect(specOf(taskOf('training'), NOW_MS).name).toBe('ranker')
    expect(specOf(taskOf('rehearsal'), NOW_MS).name).toBe('ranker-rehearsal')
  })

  it('may spend its own budget or the rest of the run, whichever is less, and is refused without any', () => {
    const most = (part: RunJob['part'], budgetMicroUsd?: number): number | undefined =>
      specOf(taskOf(part, budgetMicroUsd === undefined ? {} : { budgetMicroUsd }), NOW_MS).budgetMicroUsd
    expect(most('rehearsal', microUsd(5))).toBe(microUsd(1))
    expect(most('rehearsal', microUsd(0.5))).toBe(microUsd(0.5))
    expect(most('training', microUsd(5))).toBe(microUsd(5))
    expect(most('training')).toBeUndefined()
    expect(() => most('training', 0)).toThrow('The budget of the run is used up before its training.')
  })

  it('gets only the secrets that it needs, and is refused while one is missing', async () => {
    const store = new MemoryStore(() => NOW_MS)
    const deps = { store, key: KEY, now: () => NOW_MS } as unknown as RetrainingDeps
    const task = taskOf('training', { job: { secrets: ['TOKEN'] } })
    await putRevision(store, { revision: 1, atMs: NOW_MS, by: 'ada', kind: 'created', input: task.input })
    const sealed = (values: Record<string, string>) =>
      store.put(
        layout.scheduleSecrets(SCHEDULE, 1),
        sealSecrets(scheduleKey(KEY, SCHEDULE), values, Buffer.alloc(16)),
      )
    await sealed({ OTHER: 'o' })
    await expect(prepareJob(deps, task)).rejects.toMatchObject({
      failure: { class: 'invalid', message: 'The secrets TOKEN of ranker are not in the object store.' },
    })
    await sealed({ OTHER: 'o', TOKEN: 't' })
    await prepareJob(deps, task)
    const own = (await store.get(layout.secrets('job-1')))!.toString()
    expect(openSecrets(attemptKey(KEY, 'job-1'), own)).toEqual({ TOKEN: 't' })
  })
})
