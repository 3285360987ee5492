/**
 * Answers that EC2 never gives, between the backend and the small cloud: after each, no machine is lost or bought twice, no healthy one is
 * declared gone, and the error is one of Crucible's.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../backends/backend'
import { BackendError, failureOf } from '../../../backends/errors'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { MINUTE_MS } from '../../../core/time/time'
import { chosen } from '../../support/selection'
import { ANY, AnswerBreaker, hurryTimers, withBody, type Faults } from '../broken-answers'
import { patiently } from '../harness'
import { Ec2Harness, type PaperHarness } from './harness'

const ERROR =
  '<Response><Errors><Error><Code>InternalError</Code><Message>no</Message></Error></Errors></Response>'

/** Faults that can strike an answer in XML. */
const OF_XML: Faults = {
  JSON: withBody(() => '{"message": "ok"}'),
  'an error with status 200': withBody(() => ERROR),
  'an answer to another question': withBody(
    () => '<DescribeRegionsResponse><regionInfo/></DescribeRegionsResponse>',
  ),
  'empty fields': withBody((body) => body.replace(/>[^<>]+</g, '><')),
  'words for numbers and dates': withBody((body) => body.replace(/>[\d.:TZ-]+</g, '>many<')),
  'machines in an unknown state': withBody((body) => body.replace(/>(running|pending)</g, '>dreaming<')),
  'machines of another Region': withBody((body) => body.replaceAll('us-east-1', 'xx-north-9')),
}
const FAULTS = { ...ANY, ...OF_XML }
const FEW = [
  'nothing',
  'half of it',
  'a silence in the middle',
  'empty fields',
  'machines in an unknown state',
]

describe.each(chosen(Object.keys(FAULTS), FEW))('an answer with %s', (name) => {
  const fault = FAULTS[name]!
  let h: PaperHarness
  let breaker: AnswerBreaker
  let backend: Backend
  let order: Order
  let handle: MachineHandle

  beforeAll(async () => {
    h = await Ec2Harness.onPaper({ config: { staleForMs: 5 * MINUTE_MS } })
    breaker = await AnswerBreaker.open(h.cloud.endpoint, fault)
    backend = await h.reopen({ endpoint: breaker.url })
    order = await h.order()
    handle = await h.launched(order)
    await h.clock.advance(MINUTE_MS)
  })
  beforeEach(() => void (breaker.breaks = undefined))
  afterAll(async () => {
    breaker.close()
    await h.dispose()
  })

  function breakAnswersTo(action: string): void {
    breaker.breaks = ({ body }) => new URLSearchParams(body).get('Action') === action
  }

  /** Returns the outcome of a call, which ends within its time limit; a refusal has words for a person. */
  async function outcome<T>(ask: () => Promise<T>): Promise<T | 'refused'> {
    const timers = fault.isEndless === true ? hurryTimers() : undefined
    try {
      return await h.meanwhile(ask())
    } catch (error) {
      expect(error).toBeInstanceOf(BackendError)
      expect(failureOf(error).message).not.toMatch(/undefined|Cannot read|is not a function|not iterable/)
      return 'refused'
    } finally {
      timers?.restore()
    }
  }

  it('ends no healthy machine, and hides none', async () => {
    breakAnswersTo('DescribeInstances')
    const seen = await outcome(() => backend.observe([handle], patiently()))
    if (seen !== 'refused') expect(seen[0]!.state).not.toBe('gone')
    const found = await outcome(() => backend.find(order.attemptId, patiently()))
    if (found !== 'refused') expect(found.kind).not.toBe('absent')
    const listed = await outcome(() => backend.list('test', patiently()))
    if (listed !== 'refused') expect(JSON.stringify(listed)).toContain(handle.id)
  })

  it('to a launch buys one machine, which is found', async () => {
    const next = await h.order()
    breakAnswersTo('CreateFleet')
    const launched = await outcome(() => backend.launch(next, patiently()))
    breaker.breaks = undefined
    const machines = h.cloud.instances().filter(({ tags }) => tags['crucible:attempt'] === next.attemptId)
    expect(machines).toHaveLength(1)
    const isKnown = launched !== 'refused' && launched.kind === 'launched'
    if (isKnown) return expect(launched.handle.id).toBe(machines[0]!.id)
    if (fault.isRefusal !== true) expect(launched).toMatchObject({ kind: 'unconfirmed' })
    const again = await outcome(() => backend.launch(next, patiently()))
    if (again !== 'refused' && again.kind === 'launched') expect(again.handle.id).toBe(machines[0]!.id)
    expect(await backend.find(next.attemptId, patiently())).toMatchObject({
      kind: 'found',
      handles: [{ id: machines[0]!.id }],
    })
  })

  it('to an end leaves the machine ended, or says that it may not be', async () => {
    const one = await h.launched(await h.order())
    breakAnswersTo('TerminateInstances')
    await outcome(() => backend.terminate(one, patiently()))
    breaker.breaks = undefined
    await h.meanwhile(backend.terminate(one, patiently()))
    expect(h.cloud.instances().find(({ id }) => id === one.id)?.state).not.toBe('running')
  })

  it.each(['DescribeInstanceTypes', 'DescribeSpotPriceHistory', 'DescribeImages', 'DescribeSubnets'])(
    'to %s gives no offer without a price and a place',
    async (action) => {
      const fresh = await h.reopen({ endpoint: breaker.url })
      breakAnswersTo(action)
      const offers = await outcome(() => fresh.offers({}, patiently()))
      if (offers === 'refused') return
      for (const { priceMicroUsdPerHour, place } of offers) {
        expect(priceMicroUsdPerHour).toBeGreaterThan(0)
        expect(place).toMatch(/^us-east-1/)
      }
    },
  )
})
