/** The news of a run, as its webhook gets them, and its last entry. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import type { RetrainingDeps } from '../../../activities/retraining/activities'
import { finishRun, tellRun } from '../../../activities/retraining/reports'
import { microUsd } from '../../../core/money/money'
import type { RetrainStatus, RunRef } from '../../../core/retraining/run'
import type { NotifyRule } from '../../../core/retraining/retraining'
import { layout } from '../../../storage/layout'
import { scheduleKey, sealSecrets } from '../../../storage/secrets'
import { putRevision, readRun } from '../../../storage/schedules'
import { MemoryStore } from '../../backends/scripted/memory-store'
import { DEPLOYMENT_ID } from '../../workflows/harness'
import { SCHEDULE, SPEC_BY_HAND } from '../../workflows/retraining'

const NOW_MS = Date.UTC(2027, 0, 4)
const KEY = Buffer.alloc(32, 7)
const URL = 'https://hooks.test/x'
const RUN: RunRef = {
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
}
const STATUS: RetrainStatus = {
  schedule: SCHEDULE,
  revision: 1,
  owner: 'ada',
  state: 'waiting',
  message: 'It waits.',
  startedAtMs: 0,
  reservations: [],
  warnings: [],
  jobs: [],
}

let store: MemoryStore
let posted: { url: string; body: { schema: string; text: string; run: RetrainStatus } }[]
let deps: RetrainingDeps

const taskOf = (notify: NotifyRule) => ({
  run: RUN,
  recordSeq: 3,
  input: {
    schedule: SCHEDULE,
    revision: 1,
    spec: { ...SPEC_BY_HAND, notify },
    bundle: null,
    secrets: [],
    owner: 'ada',
    deployment: DEPLOYMENT_ID,
  },
})
const tell = (status: Partial<RetrainStatus>, notify: NotifyRule = { webhook: URL }): Promise<void> =>
  tellRun(deps, { ...taskOf(notify), status: { ...STATUS, ...status } }, new AbortController().signal)

beforeEach(() => {
  store = new MemoryStore(() => NOW_MS)
  posted = []
  const post = async (url: string, body: string): Promise<void> =>
    void posted.push({ url, body: JSON.parse(body) as (typeof posted)[0]['body'] })
  deps = { store, post, key: KEY, now: () => NOW_MS } as unknown as RetrainingDeps
})

describe('the news of a run', () => {
  it('are its status, with a text of its state and its last warning', async () => {
    await tell({})
    await tell({ warnings: ['Earlier.', 'Late.', 'A fallback.'] })
    expect(posted).toEqual([
      {
        url: URL,
        body: { schema: 'crucible/1', run: STATUS, text: 'ranker, run 2027-01-04: waiting. It waits.' },
      },
      {
        url: URL,
        body: {
          schema: 'crucible/1',
          run: { ...STATUS, warnings: ['Earlier.', 'Late.', 'A fallback.'] },
          text: 'ranker, run 2027-01-04: waiting. It waits. A fallback.',
        },
      },
    ])
  })

  it('say how to answer only while a model waits for approval, and end with the page', async () => {
    const pageUrl = 'https://ui.test/run'
    await tell({ state: 'awaiting-approval', message: 'Good?', pageUrl })
    await tell({ state: 'awaiting-approval', message: 'Good?' })
    await tell({ pageUrl })
    const how =
      'Put it into production: `crucible schedule approve ranker --run 2027-01-04`. Keep the old one: `crucible schedule reject ranker --run 2027-01-04`.'
    expect(posted.map(({ body }) => body.text)).toEqual([
      `ranker, run 2027-01-04: awaiting-approval. Good? ${how} ${pageUrl}`,
      `ranker, run 2027-01-04: awaiting-approval. Good? ${how}`,
      `ranker, run 2027-01-04: waiting. It waits. ${pageUrl}`,
    ])
  })

  it('go to the stored address of a webhook that is a secret, and nowhere if it is not stored', async () => {
    const notify = { webhookSecret: 'HOOK' }
    await expect(tell({}, notify)).rejects.toMatchObject({
      failure: { class: 'invalid', message: 'The webhook of ranker is not stored.' },
    })
    await expect(tell({}, {})).rejects.toMatchObject({ failure: { class: 'invalid' } })
    const { input } = taskOf(notify)
    await putRevision(store, { revision: 1, atMs: NOW_MS, by: 'ada', kind: 'created', input })
    const sealed = sealSecrets(scheduleKey(KEY, SCHEDULE), { HOOK: 'https://secret.test' }, Buffer.alloc(16))
    await store.put(layout.scheduleSecrets(SCHEDULE, 1), sealed)
    await tell({}, notify)
    expect(posted.map(({ url }) => url)).toEqual(['https://secret.test'])
    // One that was written in the file counts.
    await tell({}, { ...notify, webhook: URL })
    expect(posted.at(-1)!.url).toBe(URL)
  })
})

describe('the last entry of a run', () => {
  it('is its result with the time and the cost, and the first one counts', async () => {
    const result = {
      schedule: SCHEDULE,
      state: 'kept' as const,
      message: 'Rejected by ada.',
      warnings: [],
      jobs: [],
      startedAtMs: 0,
      run: RUN,
      costMicroUsd: microUsd(3),
      capacityMicroUsd: 0,
    }
    const first = await finishRun(deps, { ...taskOf({}), result })
    expect(first).toEqual({ ...result, endedAtMs: NOW_MS })
    deps.now = () => NOW_MS + 1
    expect(await finishRun(deps, { ...taskOf({}), result })).toEqual(first)
    expect(await readRun(store, SCHEDULE, RUN.id)).toMatchObject([
      { seq: 3, atMs: NOW_MS, kind: 'finished', summary: 'kept, $3.00: Rejected by ada.', data: first },
    ])
  })
})
