/** Answers that providers never give: no machine is lost, made twice or declared gone by one. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { sendOnce } from '../../activities/machine/sending'
import type { Backend } from '../../backends/backend'
import type { LaunchOutcome } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/job/plan'
import { Ages } from '../../core/time/ages'
import { MINUTE_MS } from '../../core/time/time'
import { patient } from '../support/patience'
import { chosen } from '../support/selection'
import { until } from '../support/until'
import { ANY, AnswerBreaker, OF_JSON, OF_XML, type Fault, type Faults, type Question } from './broken-answers'
import { outcomeOf } from './broken-frame'
import { Ec2Harness } from './ec2/harness'
import { patiently } from './harness'
import { LambdaHarness } from './lambda/harness'
import { ModalHarness } from './modal/harness'

type SomeHarness = Ec2Harness | LambdaHarness | ModalHarness

interface Opened {
  h: SomeHarness
  breaker: AnswerBreaker
  backend: Backend
  /** Lets time pass until a call is over, where the harness drives the clock. */
  meanwhile?: <T>(call: Promise<T>) => Promise<T>
}

interface Site {
  faults: Faults
  /** Names of the faults that `npm test` plays; `test:all` plays every one. */
  few: readonly string[]
  open: (fault: Fault) => Promise<Opened>
  launches: (question: Question) => boolean
  ends: (question: Question) => boolean
}

const JSON_FAULTS = { ...ANY, ...OF_JSON }
const FEW = ['nothing', 'the answer to an earlier question', 'a silence', 'empty ids', 'an unknown state']
const actionOf = ({ body }: Question): string | null => new URLSearchParams(body).get('Action')

const SITES: Readonly<Record<string, Site>> = {
  ec2: {
    faults: { ...ANY, ...OF_XML },
    few: ['nothing', 'half of it', 'a silence in the middle', 'empty fields', 'machines in an unknown state'],
    open: async (fault) => {
      const h = await Ec2Harness.onPaper({ config: { staleForMs: 5 * MINUTE_MS } })
      const breaker = await AnswerBreaker.open(h.cloud.endpoint, fault)
      const backend = await h.reopen({ endpoint: breaker.url })
      return { h, breaker, backend, meanwhile: (call) => h.meanwhile(call) }
    },
    launches: (question) => actionOf(question) === 'CreateFleet',
    ends: (question) => actionOf(question) === 'TerminateInstances',
  },
  modal: {
    faults: JSON_FAULTS,
    few: FEW,
    open: async (fault) => {
      const h = await ModalHarness.make({ isOnPaper: true })
      const breaker = await AnswerBreaker.open(h.config.url, fault)
      return { h, breaker, backend: await h.reopen({ url: breaker.url }) }
    },
    launches: ({ method }) => method === 'PUT',
    ends: ({ path }) => path.endsWith('/cancel'),
  },
  lambda: {
    faults: JSON_FAULTS,
    few: FEW,
    open: async (fault) => {
      const h = await LambdaHarness.make({ isOnPaper: true, config: { staleForMs: 0 } })
      const breaker = await AnswerBreaker.open(h.config.endpoint, fault)
      return { h, breaker, backend: await h.reopen({ endpoint: breaker.url }) }
    },
    launches: ({ path }) => path.endsWith('/launch'),
    ends: ({ path }) => path.endsWith('/terminate'),
  },
}

const CASES = Object.entries(SITES).flatMap(([name, site]) =>
  chosen(Object.keys(site.faults), site.few).map((fault) => ({ name, site, fault })),
)

describe.each(CASES)('an answer of $name with $fault', ({ site, fault: faultName }) => {
  const fault = site.faults[faultName]!
  let h: SomeHarness
  let breaker: AnswerBreaker
  let backend: Backend
  let meanwhile: NonNullable<Opened['meanwhile']>
  let order: Order
  let handle: MachineHandle

  beforeAll(async () => {
    const opened = await site.open(fault)
    ;({ h, breaker, backend } = opened)
    meanwhile = opened.meanwhile ?? ((call) => call)
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
    meanwhile(sendOnce({ backend, store: h.store, now: Date.now, ages }, next, patiently().signal))
  const untilRunning = (id: string, count: number): Promise<unknown> =>
    meanwhile(until(async () => (await h.runningOf(id)) === count))

  async function launched(next: Order): Promise<MachineHandle> {
    const outcome = await launch(next)
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    await untilRunning(next.attemptId, 1)
    return outcome.handle
  }

  const outcome = <T>(ask: () => Promise<T>): Promise<T | 'refused'> =>
    outcomeOf(fault, () => meanwhile(ask()))

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
      await untilRunning(next.attemptId, 1)
      if (answered !== 'refused' && answered.kind === 'refused') expect(fault.isRefusal).toBe(true)
      if (answered !== 'refused' && answered.kind === 'launched')
        expect(answered.handle.attemptId).toBe(next.attemptId)
      const found = await outcome(() => backend.find(next.attemptId, patiently()))
      expect(found).toMatchObject({ kind: 'found', handles: [{ attemptId: next.attemptId }] })
      const again = await launch(next)
      if (again.kind === 'launched' && found !== 'refused' && found.kind === 'found')
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
      const [seen] = await meanwhile(backend.observe([handle], patiently()))
      expect(['pending', 'running']).toContain(seen?.state)
      await meanwhile(backend.terminate(handle, patiently()))
      await untilRunning(order.attemptId, 0)
    },
    patient(20_000),
  )
})
