/**
 * What backend, doctor and set-up send, and what the small cloud answers, judged by botocore's models of the services, which neither of the
 * two was made from. Skipped without a Python with boto3.
 */
import { afterEach, expect, it, jest, describe } from '@jest/globals'
import type { CapacityRequest, OwnedReservation } from '../../../core/reservation/reservation'
import { DAY_MS } from '../../../core/time/time'
import { createAccountSetup } from '../../../backends/ec2/setup'
import { awsClients, judgeWire, unknownOperations, type WireVerdict } from '../../support/aws-clients'
import { hasMotoIn, startMoto } from '../../support/moto'
import { startRecordingProxy, type RecordingProxy } from '../../support/recording-proxy'
import { until } from '../../support/until'
import { patiently, settled } from '../harness'
import { WireReservingHarness } from './reserving/wire-harness'
import { Ec2Harness } from './harness'

jest.setTimeout(240_000)

const { python } = awsClients()
const PART = { intent: 'res-part', deployment: 'dep', owner: 'ada' }
let proxy: RecordingProxy | undefined
let harness: Ec2Harness | undefined

afterEach(async () => {
  await proxy?.stop()
  await harness?.dispose()
  proxy = undefined
  harness = undefined
})

const PURCHASES = [
  'ec2:DescribeCapacityBlockOfferings',
  'ec2:PurchaseCapacityBlock',
  'ec2:DescribeCapacityBlockExtensionOfferings',
  'ec2:PurchaseCapacityBlockExtension',
  'ec2:DescribeCapacityBlockExtensionHistory',
  'ec2:CreateCapacityReservation',
  'ec2:ModifyCapacityReservation',
  'ec2:CreateCapacityReservationBySplitting',
  'ec2:CreateCapacityReservationCancellationQuote',
  'ec2:CreateCapacityReservationDateChangeQuote',
  'ec2:CancelCapacityReservation',
]

/** Registers a test, or where the judge is older than an operation a skipped one whose name says so. */
function judged(test: string, operations: string[], run: () => Promise<void>): void {
  const unknown = python === undefined ? [] : unknownOperations(python, operations)
  if (unknown.length === 0) it(test, run)
  else it.skip(`${test} (this botocore does not know ${unknown.join(', ')})`, run)
}

const verdict = (): Promise<WireVerdict> => judgeWire(python!, proxy!.calls)

;(python === undefined ? describe.skip : describe)('by the models of botocore', () => {
  it('a judge finds what is wrong', async () => {
    const call = { service: 'ec2', action: 'DescribeInstances', status: 200, answer: '<r><nonsense/></r>' }
    const { problems } = await judgeWire(python!, [
      { ...call, request: 'Action=DescribeInstances&Version=2016-11-15&Nonsense=1&MaxResults=many' },
      {
        ...call,
        action: 'ModifyCapacityReservation',
        answer: '<r><return>true</return></r>',
        request: 'Action=ModifyCapacityReservation&CapacityReservationId=cr-1&EndDateType=never',
      },
    ])
    expect(problems).toHaveLength(4)
  })

  it('doctor, launches of both kinds, their ends and garbage collection are well formed', async () => {
    harness = await Ec2Harness.make()
    proxy = await startRecordingProxy(harness.cloud.endpoint)
    const backend = await harness.reopen({ endpoint: proxy.endpoint }, { deployment: 'test' })
    await backend.check(patiently())
    for (const way of ['on-demand', 'spot', 'reserved'] as const) {
      const offers = (await backend.offers({ diskMibPerSecond: 1_000 }, patiently())).filter(
        (one) => one.type === 'g5.xlarge' && one.capacityType === way,
      )
      const order = await harness.order({ capacityType: way, offers })
      const outcome = await backend.launch(order, patiently())
      if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
      const { handle } = outcome
      await until(async () => (await settled(backend.start!(handle, order, patiently()))) === 'answer')
      await backend.find(order.attemptId, patiently())
      await backend.observe([handle], patiently())
      await backend.list('test', patiently())
      await (way === 'spot'
        ? backend.endAbruptly!(handle, patiently())
        : backend.terminate(handle, patiently()))
    }
    const { judged, actions, problems } = await verdict()
    expect(problems).toEqual([])
    expect(judged).toBeGreaterThan(40)
    expect(actions).toEqual(
      expect.arrayContaining([
        'ec2:CreateFleet',
        'ec2:RunInstances',
        'ec2:TerminateInstances',
        'ssm:SendCommand',
      ]),
    )
  })

  judged(
    'purchases, extensions, changes and releases of reservations are well formed',
    PURCHASES,
    async () => {
      const market = await WireReservingHarness.make(async (cloud) => {
        proxy = await startRecordingProxy(cloud.endpoint)
        return proxy.endpoint
      })
      const { reserving } = market
      let bought = 0
      const buy = async (wish: CapacityRequest): Promise<OwnedReservation> => {
        const [quote] = await reserving.reservable(wish, patiently())
        const order = { intent: `res-${++bought}`, send: 1, deployment: 'test', owner: 'ann', backend: 'ec2' }
        const outcome = await reserving.reserve({ ...order, quote: quote! }, patiently())
        if (outcome.kind !== 'reserved') throw new Error(JSON.stringify(outcome))
        return outcome.reservation
      }
      try {
        const block = await buy(market.wish('prepaid'))
        await market.settlePayment()
        await buy({ ...market.wish('prepaid'), durationMs: DAY_MS, extends: block })
        const hourly = await buy({ ...market.wish('hourly'), count: 3, durationMs: DAY_MS })
        await reserving.change(hourly, { kind: 'count', count: 4 }, patiently())
        await reserving.change(hourly, { kind: 'end', endsAtMs: null }, patiently())
        await reserving.change(hourly, { kind: 'split', count: 1, ...PART }, patiently())
        const later = await buy(market.committedWish())
        await market.pass(DAY_MS)
        const startsAtMs = later.startsAtMs! + DAY_MS
        await reserving.change(later, { kind: 'start', startsAtMs }, patiently())
        for (const held of [hourly, later])
          await reserving.release(held, await reserving.releaseTerms(held, patiently()), patiently())
        await reserving.reservations(patiently())
      } finally {
        await market.dispose()
      }
      const { actions, problems } = await verdict()
      expect(problems).toEqual([])
      expect(actions).toEqual(expect.arrayContaining(PURCHASES))
    },
  )

  ;(hasMotoIn(python!) ? it : it.skip)('set-up and its removal are well formed', async () => {
    const moto = await startMoto(python!)
    proxy = await startRecordingProxy(moto.endpoint)
    const setup = createAccountSetup({
      prefix: 'crucible',
      hasOwnNetwork: false,
      region: 'us-east-1',
      endpoint: proxy.endpoint,
    })
    await setup.survey(patiently().signal)
    await setup.apply({ ...patiently(), onStep: () => {} })
    await setup.remove({ ...patiently(), hasData: true, onStep: () => {} })
    await moto.stop()
    const calls = proxy.calls.filter(({ service }) => service === 'cloudformation')
    const { actions, problems } = await judgeWire(python!, calls)
    // The answers are moto's.
    expect(problems.filter((problem) => !problem.includes(' answers'))).toEqual([])
    expect(actions).toEqual(
      expect.arrayContaining(['cloudformation:CreateChangeSet', 'cloudformation:DeleteStack']),
    )
  })
})
