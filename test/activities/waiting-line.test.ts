import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { WaitingLine, type Answered } from '../../activities/plan/waiting-line'
import { endTurn, wakeNext } from '../../activities/waking'
import type { LaunchOutcome, PlanInput } from '../../core/activities'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import type { Offer, ReservedCapacity } from '../../core/offer'
import type { BackendAnswer } from '../../core/job/plan'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { lineInWords } from '../../core/job/waiting'
import { leaveLine, readLine } from '../../storage/waiting-line'
import { putRecord } from '../../storage/record'
import { MemoryStore } from '../backends/scripted/memory-store'
import { SPEC } from '../support/spec'
import { partialEntry } from '../support/record'

let nowMs: number
let store: MemoryStore
let closed: string[]
let woken: string[]
let troubles: string[]
const wake = async (jobId: string): Promise<void> => void woken.push(jobId)
let line: WaitingLine

beforeEach(() => {
  nowMs = 1_000_000
  closed = []
  woken = []
  troubles = []
  store = new MemoryStore(() => nowMs)
  line = new WaitingLine({
    store,
    now: () => nowMs,
    random: () => 0.5,
    backends: ['ec2', 'local'],
    near: ['local'],
    wake,
    onTrouble: (error) => void troubles.push((error as Error).message),
    owners: ({ jobId }) => Promise.resolve(closed.includes(jobId) ? 'closed' : 'open'),
  })
})

const LAUNCHED = { kind: 'launched' } as LaunchOutcome
const REFUSED: LaunchOutcome = { kind: 'refused', failure: { class: 'capacity', message: 'none left' } }

/** A job that was submitted this long after the first, and wants this backend. */
async function job(jobId: string, ageOrder: number, backend = 'ec2'): Promise<PlanInput> {
  const spec = { ...SPEC, backends: [{ backend }] }
  const entry = partialEntry({ seq: 0, atMs: ageOrder, kind: 'submitted', summary: '', data: {} })
  await putRecord(store, jobId, entry)
  return {
    jobId,
    deployment: 'dep-0123456789',
    recordSeq: 2,
    attempt: 1,
    bundle: null,
    avoid: [],
    resolved: {
      spec,
      policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
      timing: DEFAULT_TIMING,
      runnerSha256: '',
      storeUrl: store.url,
    },
    ledger: EMPTY_LEDGER,
  }
}

async function askInVain(input: PlanInput): Promise<void> {
  const admission = await line.admit(input, { isWaiting: false })
  if (admission.kind === 'ask') await line.asked(input, admission.at, { came: 'wait' })
}

/** The first in line asks, and is answered. */
async function answer(input: PlanInput, answered: Answered): Promise<void> {
  const admission = await line.admit(input, { isWaiting: true })
  if (admission.kind === 'wait') throw new Error(`${input.jobId} has to wait`)
  await line.asked(input, admission.at, answered)
}

/** Places that are kept for ann. */
const answersWith = (reservation: Partial<ReservedCapacity>): BackendAnswer[] => [
  {
    backend: 'ec2',
    capabilities: {} as BackendAnswer['capabilities'],
    offers: [
      {
        availability: 'unknown',
        reservation: {
          total: 1,
          idleMicroUsdPerHour: 0,
          hold: { reservation: 'res-1', owner: 'ann' },
          ...reservation,
        },
      } as Offer,
    ],
  },
]

describe('the line of waiting jobs', () => {
  afterEach(() => void jest.restoreAllMocks())

  it('lets a job ask at once while there is no line', async () => {
    expect(await line.admit(await job('a', 1), { isWaiting: false })).toMatchObject({ kind: 'ask' })
    expect(await line.admit(await job('b', 2), { isWaiting: false })).toMatchObject({ kind: 'ask' })
  })

  it('lets a job ask when the store fails, and reports why', async () => {
    const input = await job('a', 1)
    jest.spyOn(store, 'list').mockImplementation(() => {
      throw new Error('the store is away')
    })
    expect(await line.admit(input, { isWaiting: true })).toEqual({ kind: 'ask' })
    expect(troubles).toEqual(['the store is away'])
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

  it('keeps apart what a price or a Region separates', async () => {
    const anywhere = await job('a', 1)
    await askInVain(anywhere)
    for (const wish of [{ regions: ['us-east-1'] }, { priceMaxMicroUsdPerHour: 3_000_000 }]) {
      const input = await job(`b-${Object.keys(wish)[0]!.toLowerCase()}`, 2)
      Object.assign(input.resolved.spec, wish)
      expect(await line.admit(input, { isWaiting: false })).toMatchObject({ kind: 'ask' })
    }
    expect(await line.admit(await job('c', 3), { isWaiting: false })).toMatchObject({ kind: 'wait' })
  })

  it('lets one job at a time of an owner pass the others, while places are kept for that owner', async () => {
    const ofOwner = async (id: string, age: number, owner: string): Promise<PlanInput> => {
      const input = await job(id, age)
      return { ...input, resolved: { ...input.resolved, owner } }
    }
    const jobs = [await ofOwner('a', 1, 'bob'), await ofOwner('b', 2, 'ann'), await ofOwner('c', 3, 'ann')]
    for (const input of jobs) await askInVain(input)
    const kinds = async (): Promise<string[]> =>
      Promise.all(
        jobs.slice(1).map(async (input) => {
          const admission = await line.admit(input, { isWaiting: true })
          if (admission.kind === 'ask') await line.asked(input, admission.at, { came: 'wait' })
          return admission.kind
        }),
      )
    expect(await kinds()).toEqual(['wait', 'wait'])
    line.held.saw(answersWith({ free: 1, namedByWaiting: 1 }))
    expect(await kinds()).toEqual(['wait', 'wait'])
    line.held.saw(answersWith({ free: 1 }))
    const first = await line.admit(jobs[1]!, { isWaiting: true })
    expect(first).toMatchObject({ kind: 'ask', at: { place: { position: 2 } } })
    expect(await line.admit(jobs[2]!, { isWaiting: true })).toMatchObject({ kind: 'wait' })
    await line.asked(jobs[1]!, first.kind === 'ask' ? first.at : undefined, { came: 'wait' })
    expect(await line.admit(jobs[2]!, { isWaiting: true })).toMatchObject({ kind: 'ask' })
    nowMs += 61_000
    expect(await line.admit(jobs[1]!, { isWaiting: true })).toMatchObject({ kind: 'wait' })
  })

  it('lets as many jobs ask for near places as the first was offered, and no more', async () => {
    const jobs = await Promise.all([1, 2, 3, 4].map((age) => job(`job-${age}`, age, 'local')))
    const look = async (index: number): Promise<string> => {
      const admission = await line.admit(jobs[index]!, { isWaiting: true })
      if (admission.kind === 'wait') return `waits as ${admission.place.position}`
      return `asks behind ${line.askerOf(jobs[index]!, admission.at)?.ahead.join()}`
    }
    for (const input of jobs) await askInVain(input)
    expect([await look(1), await look(0)]).toEqual(['waits as 2', 'asks behind '])
    await answer(jobs[0]!, { came: 'wait', freePlaces: 0 })
    expect(await look(1)).toBe('waits as 2')
    await answer(jobs[0]!, { came: 'place', freePlaces: 3 })
    expect([await look(1), await look(2), await look(3)]).toEqual([
      'asks behind ',
      'asks behind job-2',
      'waits as 3',
    ])
    // What was counted a while ago says nothing about now.
    nowMs += 2_001
    expect(await look(2)).toBe('waits as 2')
  })

  it('wakes as many jobs as there are near places left', async () => {
    const jobs = await Promise.all([1, 2, 3, 4].map((age) => job(`job-${age}`, age, 'local')))
    for (const input of jobs) await askInVain(input)
    await answer(jobs[0]!, { came: 'place', freePlaces: 4 })
    expect(woken).toEqual(['job-2', 'job-3', 'job-4'])
  })

  it('wakes those who are next when the last near place is taken, so that they are there for the one after it', async () => {
    const jobs = await Promise.all([1, 2, 3, 4].map((age) => job(`job-${age}`, age, 'local')))
    for (const input of jobs) await askInVain(input)
    await answer(jobs[0]!, { came: 'place', freePlaces: 1 })
    expect(woken).toEqual(['job-2', 'job-3'])
  })

  it('wakes a few at a time where many places are free: each of them wakes others', async () => {
    const jobs = await Promise.all(Array.from({ length: 8 }, (_, age) => job(`job-${age}`, age, 'local')))
    for (const input of jobs) await askInVain(input)
    await answer(jobs[0]!, { came: 'place', freePlaces: 100 })
    expect(woken).toEqual(['job-1', 'job-2', 'job-3', 'job-4'])
  })

  it('reads a long line once for all who ask, and again later', async () => {
    const list = jest.spyOn(store, 'list')
    const jobs = await Promise.all(Array.from({ length: 150 }, (_, age) => job(`job-${age}`, age, 'local')))
    for (const input of jobs) await askInVain(input)
    list.mockClear()
    jest.spyOn(performance, 'now').mockReturnValue(1e9)
    const looks = (from: number): Promise<unknown[]> =>
      Promise.all(jobs.slice(from).map((input) => line.admit(input, { isWaiting: true })))
    const first = await looks(0)
    expect(first[0]).toMatchObject({ kind: 'ask' })
    expect(first[149]).toMatchObject({ kind: 'wait', place: { position: 150 } })
    jest.spyOn(performance, 'now').mockReturnValue(2e9)
    await leaveLine(store, { jobId: 'job-0' })
    expect((await looks(1))[148]).toMatchObject({ kind: 'wait', place: { position: 149 } })
    expect(list.mock.calls.length).toBeLessThan(10)
  })

  it('takes a job out of a long line that was read before the job joined', async () => {
    const others = await Promise.all(Array.from({ length: 150 }, (_, age) => job(`job-${age}`, age, 'local')))
    for (const input of others) await askInVain(input)
    jest.spyOn(performance, 'now').mockReturnValue(1e9)
    await line.admit(others[1]!, { isWaiting: true })
    const late = await job('late', -1, 'local')
    await answer(late, { came: 'place', freePlaces: 1 })
    expect((await readLine(store)).waiters.map(({ jobId }) => jobId)).not.toContain('late')
  })

  it('has the jobs of a long line ask less often the later their turn comes', async () => {
    const input = await job('a', 1, 'local')
    const pauses = [3, 400, 1_000, 100_000].map((position) => line.retryInMs(input, position, 1))
    expect(pauses).toEqual([6_000, 10_000, 20_000, 120_000])
  })

  it('lets one job at a time order in a cloud, and wakes the next one when the order was filled', async () => {
    const jobs = await Promise.all([1, 2, 3].map((age) => job(`job-${age}`, age)))
    for (const input of jobs) await askInVain(input)
    await answer(jobs[0]!, { came: 'place' })
    expect(await line.admit(jobs[1]!, { isWaiting: true })).toMatchObject({ kind: 'wait' })
    expect(woken).toEqual([])
    await endTurn({ store, wake }, 'job-1', LAUNCHED)
    expect(woken).toEqual(['job-2'])
    await answer(jobs[1]!, { came: 'place' })
    await endTurn({ store, wake }, 'job-2', REFUSED)
    expect(woken).toEqual(['job-2'])
    expect(await line.admit(jobs[2]!, { isWaiting: true })).toMatchObject({ kind: 'ask' })
  })

  it('has only the first of each line look when a machine ends that the line could have', async () => {
    for (const [name, age, backend] of [
      ['a', 1, 'ec2'],
      ['b', 2, 'ec2'],
      ['c', 3, 'local'],
      ['d', 4, 'local'],
    ] as const)
      await askInVain(await job(name, age, backend))
    await wakeNext({ store, wake }, 'local')
    expect(woken).toEqual(['c'])
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
    const [a, b] = [await job('a', 1), await job('b', 2)]
    for (const input of [a, b]) await askInVain(input)
    const first = await line.admit(a, { isWaiting: true })
    if (first.kind === 'ask') await line.asked(a, first.at, { came: 'place' })
    expect(await line.admit(b, { isWaiting: true })).toMatchObject({ kind: 'wait', place: { position: 1 } })
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

describe('a job whose turn for a near machine is next', () => {
  const linger = (input: PlanInput, position: number | undefined, sinceMs = nowMs): Promise<boolean> =>
    line.linger(input, { position, sinceMs, signal: stop.signal })
  /** A job that has joined the line. */
  const waiting = async (jobId: string, ageOrder: number): Promise<PlanInput> => {
    const input = await job(jobId, ageOrder, 'local')
    await askInVain(input)
    return input
  }
  let stop: AbortController

  beforeEach(() => {
    jest.useFakeTimers()
    stop = new AbortController()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('waits inside its activity: the first for less than half a second, the second for a second', async () => {
    const [a, b] = [await waiting('a', 1), await waiting('b', 2)]
    const looks: string[] = []
    void linger(a, 1).then((again) => looks.push(`a ${again}`))
    void linger(b, 2).then((again) => looks.push(`b ${again}`))
    await jest.advanceTimersByTimeAsync(399)
    expect(looks).toEqual([])
    await jest.advanceTimersByTimeAsync(1)
    expect(looks).toEqual(['a true'])
    await jest.advanceTimersByTimeAsync(600)
    expect(looks).toEqual(['a true', 'b true'])
  })

  it('looks less often the longer it lingers, and leaves the wait to Temporal after half a minute', async () => {
    const a = await waiting('a', 1)
    const looks: boolean[] = []
    void linger(a, 1, nowMs - 20_000).then((again) => looks.push(again))
    await jest.advanceTimersByTimeAsync(999)
    expect(looks).toEqual([])
    await jest.advanceTimersByTimeAsync(1)
    expect(looks).toEqual([true])
    expect(await linger(a, 1, nowMs - 30_000)).toBe(false)
  })

  it.each([2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])(
    'leaves the wait to Temporal when the clock is set by %d ms, and keeps its place',
    async (stepMs) => {
      const [a, b] = [await waiting('a', 1), await waiting('b', 2)]
      const sinceMs = nowMs
      nowMs += stepMs
      expect(await linger(a, 1, sinceMs)).toBe(false)
      await line.admit(a, { isWaiting: true })
      expect(await line.admit(b, { isWaiting: true })).toMatchObject({ kind: 'wait', place: { position: 2 } })
    },
  )

  it('looks at once when it is woken, and the server is not asked to', async () => {
    const [a, b] = [await waiting('a', 1), await waiting('b', 2)]
    const lingering = linger(b, 2)
    await answer(a, { came: 'place', freePlaces: 1 })
    expect(await lingering).toBe(true)
    expect(woken).toEqual([])
  })

  it('does not linger as the third, for a cloud, or where it is in no line', async () => {
    expect(await linger(await job('a', 1, 'local'), 3)).toBe(false)
    expect(await linger(await job('a', 1, 'local'), undefined)).toBe(false)
    expect(await linger(await job('b', 2), 1)).toBe(false)
  })

  it('leaves room for other work: twenty linger at the most', async () => {
    const jobs = await Promise.all(Array.from({ length: 21 }, (_, age) => waiting(`job-${age}`, age)))
    const lingering = jobs.map((input) => linger(input, 1))
    expect(await lingering[20]).toBe(false)
    await jest.advanceTimersByTimeAsync(400)
    expect(await Promise.all(lingering.slice(0, 20))).not.toContain(false)
    const again = linger(jobs[20]!, 1)
    await jest.advanceTimersByTimeAsync(400)
    expect(await again).toBe(true)
  })

  it('does not look again once its job has finished: a cancelled activity hears of it late', async () => {
    const [a, b] = [await waiting('a', 1), await waiting('b', 2)]
    const lingering = [linger(a, 1), linger(b, 2)]
    await leaveLine(store, { jobId: 'a' })
    await jest.advanceTimersByTimeAsync(1_000)
    expect(await Promise.all(lingering)).toEqual([false, true])
  })

  it('leaves the wait to Temporal when the line cannot be read', async () => {
    const lingering = linger(await waiting('a', 1), 1)
    store.isDown = true
    await jest.advanceTimersByTimeAsync(400)
    expect(await lingering).toBe(false)
  })

  it('stops waiting when its activity is cancelled', async () => {
    const lingering = linger(await job('a', 1, 'local'), 1)
    stop.abort(new Error('cancelled'))
    await expect(lingering).rejects.toThrow('cancelled')
  })
})
