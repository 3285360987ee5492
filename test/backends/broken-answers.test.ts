/** Answers that Modal's gateway and Lambda never give: no machine is lost, made twice or declared gone by one. EC2 has a test of its own. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { sendOnce } from '../../activities/machine/sending'
import type { Backend } from '../../backends/backend'
import { BackendError, failureOf } from '../../backends/errors'
import type { LaunchOutcome } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/job/plan'
import { Ages } from '../../core/time/ages'
import { patient } from '../support/patience'
import { chosen } from '../support/selection'
import { until } from '../support/until'
import { ANY, AnswerBreaker, hurryTimers, OF_JSON, type Fault, type Question } from './broken-answers'
import { patiently } from './harness'
import { LambdaHarness } from './lambda/harness'
import { ModalHarness } from './modal/harness'

type JsonHarness = LambdaHarness | ModalHarness

interface Site {
  open: (fault: Fault) => Promise<{ h: JsonHarness; breaker: AnswerBreaker; backend: Backend }>
  launches: (question: Question) => boolean
  ends: (question: Question) => boolean
}

const SITES: Readonly<Record<string, Site>> = {
  modal: {
    open: async (fault) => {
      const h = await ModalHarness.make({ isOnPaper: true })
      const breaker = await AnswerBreaker.open(h.config.url, fault)
      return { h, breaker, backend: await h.reopen({ url: breaker.url }) }
    },
    launches: ({ method }) => method === 'PUT',
    ends: ({ path }) => path.endsWith('/cancel'),
  },
  lambda: {
    open: async (fault) => {
      const h = await LambdaHarness.make({ isOnPaper: true, config: { staleForMs: 0 } })
      const breaker = await AnswerBreaker.open(h.config.endpoint, fault)
      return { h, breaker, backend: await h.reopen({ endpoint: breaker.url }) }
    },
    launches: ({ path }) => path.endsWith('/launch'),
    ends: ({ path }) => path.endsWith('/terminate'),
  },
}

const FAULTS = { ...ANY, ...OF_JSON }
const FEW = ['nothing', 'the answer to an earlier question', 'a silence', 'empty ids', 'an unknown state']
const CASES = Object.entries(SITES).flatMap(([name, site]) =>
  chosen(Object.keys(FAULTS), FEW).map((fault) => ({ name, site, fault })),
)

describe.each(CASES)('an answer of $name with $fault', ({ site, fault: faultName }) => {
  const fault = FAULTS[faultName]!
  let h: JsonHarness
  let breaker: AnswerBreaker
  let backend: Backend
  let order: Order
  let handle: MachineHandle

  beforeAll(async () => {
    ;({ h, breaker, backend } = await site.open(fault))
    order = await h.order()
    handle = await launched(order)
  })
  beforeEach(() => {
    breaker.breaks = undefined
    breaker.keepsBack = false
  })
  afterAll(async () => {
    breaker.close()
    await h.dispose()
  })

  const ages = new Ages({ now: Date.now, monotonicMs: () => performance.now() })
  const launch = (next: Order): Promise<LaunchOutcome> =>
    sendOnce({ backend, store: h.store, now: Date.now, ages }, next, patiently().signal)

  async function launched(next: Order): Promise<MachineHandle> {
    const outcome = await launch(next)
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    await until(async () => (await h.runningOf(next.attemptId)) === 1)
    return outcome.handle
  }

  /** Returns the outcome of a call, which ends within its time limit; a refusal has words for a person. */
  async function outcome<T>(ask: () => Promise<T>): Promise<T | 'refused'> {
    const timers = fault.isEndless === true ? hurryTimers() : undefined
    try {
      return await ask()
    } catch (error) {
      expect(error).toBeInstanceOf(BackendError)
      expect(failureOf(error).message).not.toMatch(/undefined|Cannot read|is not a function|not iterable/)
      return 'refused'
    } finally {
      timers?.restore()
    }
  }

  it(
    'ends no healthy machine, and hides none',
    async () => {
      breaker.breaks = () => true
      const seen = await outcome(() => backend.observe([handle], patiently()))
      if (seen !== 'refused') expect(seen[0]?.state).not.toBe('gone')
      const found = await outcome(() => backend.find(order.attemptId, patiently()))
      if (found !== 'refused') expect(found.kind).not.toBe('absent')
      const listed = await outcome(() => backend.list('test', patiently()))
      if (listed !== 'refused') expect(JSON.stringify(listed)).toContain(handle.id)
    },
    patient(20_000),
  )

  it(
    'to a launch makes one machine, which is found',
    async () => {
      const next = await h.order()
      breaker.breaks = site.launches
      const answered = await outcome(() => launch(next))
      breaker.breaks = undefined
      await until(async () => (await h.runningOf(next.attemptId)) === 1)
      if (answered !== 'refused' && answered.kind === 'refused') expect(fault.isRefusal).toBe(true)
      if (answered !== 'refused' && answered.kind === 'launched')
        expect(answered.handle.attemptId).toBe(next.attemptId)
      const found = await backend.find(next.attemptId, patiently())
      expect(found).toMatchObject({ kind: 'found', handles: [{ attemptId: next.attemptId }] })
      const again = await launch(next)
      if (again.kind === 'launched' && found.kind === 'found')
        expect(again.handle.id).toBe(found.handles[0]!.id)
      expect(await h.runningOf(next.attemptId)).toBe(1)
    },
    patient(20_000),
  )

  it(
    'to an end that did not arrive hides no machine that runs',
    async () => {
      breaker.breaks = site.ends
      breaker.keepsBack = true
      await outcome(() => backend.terminate(handle, patiently()))
      breaker.breaks = undefined
      const [seen] = await backend.observe([handle], patiently())
      expect(['pending', 'running']).toContain(seen?.state)
      await backend.terminate(handle, patiently())
      await until(async () => (await h.runningOf(order.attemptId)) === 0)
    },
    patient(20_000),
  )
})
