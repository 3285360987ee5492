import { beforeEach, describe, expect, it } from '@jest/globals'
import { WaitingLine } from '../../activities/waiting-line'
import type { PlanInput } from '../../core/activities'
import { EMPTY_LEDGER } from '../../core/ledger'
import { DEFAULT_TIMING } from '../../core/timing'
import { lineInWords } from '../../core/waiting'
import { leaveLine, readLine } from '../../storage/waiting-line'
import { putRecord } from '../../storage/record'
import { MemoryStore } from '../backends/scripted/memory-store'
import { SPEC } from '../support/spec'

let nowMs: number
let store: MemoryStore
let closed: string[]
let line: WaitingLine

beforeEach(() => {
  nowMs = 1_000_000
  closed = []
  store = new MemoryStore(() => nowMs)
  line = new WaitingLine({
    ...{ store, now: () => nowMs, random: () => 0.5, backends: ['ec2', 'local'], near: ['local'] },
    owners: ({ jobId }) => Promise.resolve(closed.includes(jobId) ? 'closed' : 'open'),
  })
})

/** A job that was submitted so long after the first, and wants this backend. */
async function job(jobId: string, ageOrder: number, backend = 'ec2'): Promise<PlanInput> {
  const spec = { ...SPEC, backends: [{ backend }] }
  await putRecord(store, jobId, {
    ...{ seq: 0, atMs: ageOrder, kind: 'submitted', summary: '', data: {} },
  })
  return {
    ...{ jobId, deployment: 'dep-0123456789', recordSeq: 2, attempt: 1, bundle: null, avoid: [] },
    resolved: {
      ...{ spec, policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 } },
      ...{ timing: DEFAULT_TIMING, runnerSha256: '', storeUrl: store.url },
    },
    ledger: EMPTY_LEDGER,
  }
}

async function askInVain(input: PlanInput): Promise<void> {
  const admission = await line.admit(input, { isWaiting: false })
  if (admission.kind === 'ask') await line.asked(input, admission.waiter, 'wait')
}

describe('the line of waiting jobs', () => {
  it('lets a job ask at once while there is no line', async () => {
    expect(await line.admit(await job('a', 1), { isWaiting: false })).toMatchObject({ kind: 'ask' })
    expect(await line.admit(await job('b', 2), { isWaiting: false })).toMatchObject({ kind: 'ask' })
  })

  it('lets only the oldest of equal wishes ask, and tells the others their places', async () => {
    const [a, b, c] = [await job('a', 1), await job('b', 2), await job('c', 3)]
    for (const input of [a, b, c]) await askInVain(input)
    const answers = []
    for (const input of [c, b, a]) answers.push(await line.admit(input, { isWaiting: true }))
    expect(answers).toMatchObject([
      { kind: 'wait', place: { position: 3, pool: 'ec2' } },
      { kind: 'wait', place: { position: 2 } },
      { kind: 'ask' },
    ])
    expect(lineInWords({ position: 3, pool: 'ec2' })).toBe('waiting, 3rd for ec2')
  })

  it('puts a job that recovers ahead of those submitted after it', async () => {
    await askInVain(await job('young', 5))
    expect(await line.admit(await job('old', 1), { isWaiting: false })).toMatchObject({ kind: 'ask' })
  })

  it('does not hold up a job with other wishes', async () => {
    await askInVain(await job('a', 1))
    expect(await line.admit(await job('b', 2, 'local'), { isWaiting: false })).toMatchObject({ kind: 'ask' })
  })

  it('gives a near machine to one job at a time until its order has been answered', async () => {
    const [a, b] = [await job('a', 1, 'local'), await job('b', 2, 'local')]
    const first = await line.admit(a, { isWaiting: false })
    if (first.kind !== 'ask') throw new Error('the first must not wait')
    await line.asked(a, first.waiter, 'place')
    expect(await line.admit(b, { isWaiting: false })).toMatchObject({ kind: 'wait', place: { position: 1 } })
    await leaveLine(store, 'a')
    expect(await line.admit(b, { isWaiting: true })).toMatchObject({ kind: 'ask' })
  })

  it('passes over a job that was terminated while it was first', async () => {
    await askInVain(await job('a', 1))
    const b = await job('b', 2)
    closed.push('a')
    nowMs += 10_000
    expect(await line.admit(b, { isWaiting: true })).toMatchObject({ kind: 'ask' })
    expect((await readLine(store)).waiters.map(({ jobId }) => jobId)).toEqual(['b'])
  })

  it('takes over a turn whose holder has not ordered within half a minute', async () => {
    const [a, b] = [await job('a', 1, 'local'), await job('b', 2, 'local')]
    const first = await line.admit(a, { isWaiting: false })
    if (first.kind === 'ask') await line.asked(a, first.waiter, 'place')
    nowMs += 31_000
    expect(await line.admit(b, { isWaiting: true })).toMatchObject({ kind: 'ask' })
  })

  it('lets a job ask on its own when the line was deleted by hand or cannot be read', async () => {
    const [a, b] = [await job('a', 1), await job('b', 2)]
    for (const input of [a, b]) await askInVain(input)
    for (const { key } of (await readLine(store)).waiters) await store.delete(key)
    expect(await line.admit(b, { isWaiting: true })).toMatchObject({ kind: 'ask' })
    store.isDown = true
    expect(await line.admit(a, { isWaiting: true })).toEqual({ kind: 'ask' })
  })
})
