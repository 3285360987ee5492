import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Ec2Api } from '../../../../backends/ec2/sdk/api'
import { createSdkApi } from '../../../../backends/ec2/sdk/index'
import { HOUR_MS } from '../../../../core/time/time'

/** The provider: what it was sent, and what it answers. */
let sent: URLSearchParams[]
let answer: { status: number; body: string; date?: Date; hangsUp?: boolean }
/** Answers by the request, where one does not do for all. */
let answerOf: ((form: URLSearchParams) => typeof answer) | undefined
/** The access key of each request. */
const keysOf: string[] = []
let server: Server
let api: Ec2Api

const XMLNS = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'
const errorOf = (code: string): string =>
  `<Response><Errors><Error><Code>${code}</Code><Message>no</Message></Error></Errors><RequestID>r</RequestID></Response>`

beforeEach(async () => {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })
  sent = []
  answer = { status: 200, body: '' }
  answerOf = undefined
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString())
      sent.push(form)
      keysOf.push(/Credential=(\w+)\//.exec(request.headers.authorization ?? '')?.[1] ?? '')
      if (answerOf !== undefined) answer = answerOf(form)
      if (answer.hangsUp) return request.socket.destroy()
      if (answer.date !== undefined) response.setHeader('Date', answer.date.toUTCString())
      response.writeHead(answer.status, { 'Content-Type': 'text/xml' }).end(answer.body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  api = createSdkApi({ region: 'us-east-1', endpoint: `http://127.0.0.1:${port}` })
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const { signal } = new AbortController()
const buy = (isTrial = false): Promise<unknown> =>
  api.reserving.buyBlock({ offering: 'cb-1', tags: { 'crucible:intent': 'res-1' }, isTrial }, signal)
const extend = (): Promise<unknown> =>
  api.reserving.buyExtension({ offering: 'cbe-1', reservation: 'cr-1' }, signal)

describe('an answer that is not from EC2', () => {
  it.each([
    ['nothing', ''],
    ['the page of a proxy', '<html><body>Please log in</body></html>'],
  ])('is no empty list, although its status is 200: %s', async (_, body) => {
    answer = { status: 200, body }
    const lists = [
      () => api.market.reservations(signal),
      () => api.reserving.extensions(signal),
      () => api.machines.byId(['i-1'], signal),
    ]
    for (const list of lists) await expect(list()).rejects.toMatchObject({ reach: 'unanswered' })
  })

  it('is no endless list of pages with one token', async () => {
    const page = `<DescribeInstancesResponse ${XMLNS}><reservationSet/><nextToken>again</nextToken></DescribeInstancesResponse>`
    answer = { status: 200, body: page }
    await expect(api.machines.byTag({ name: 'tag', values: ['a'] }, signal)).rejects.toMatchObject({
      code: 'RepeatedPage',
    })
    expect(sent).toHaveLength(2)
  })

  it('is an empty list if it says so', async () => {
    answer = {
      status: 200,
      body: `<DescribeCapacityReservationsResponse ${XMLNS}><capacityReservationSet/></DescribeCapacityReservationsResponse>`,
    }
    expect(await api.market.reservations(signal)).toEqual([])
  })
})

describe('a list over several pages', () => {
  it('has each reservation once, although two pages show it', async () => {
    const page = (id: string, next: string): typeof answer => ({
      status: 200,
      body:
        `<DescribeCapacityReservationsResponse ${XMLNS}><capacityReservationSet>` +
        ['cr-1', id]
          .map((one) => `<item><capacityReservationId>${one}</capacityReservationId></item>`)
          .join('') +
        `</capacityReservationSet>${next}</DescribeCapacityReservationsResponse>`,
    })
    answerOf = (form) =>
      form.has('NextToken') ? page('cr-3', '') : page('cr-2', '<nextToken>more</nextToken>')
    const found = await api.market.reservations(signal)
    expect(found.map(({ id }) => id)).toEqual(['cr-1', 'cr-2', 'cr-3'])
  })
})

describe('a purchase over the SDK', () => {
  it.each([
    ['an internal error', { status: 500, body: errorOf('InternalError') }],
    ['a throttle', { status: 503, body: errorOf('RequestLimitExceeded') }],
    ['a connection that breaks', { status: 200, body: '', hangsUp: true }],
    // The SDK corrects its clock by this answer, and would have the request sent again.
    [
      'an internal error and another time of day',
      {
        status: 500,
        body: errorOf('InternalError'),
        date: new Date(Date.now() + HOUR_MS),
      },
    ],
  ])('is sent once, if it meets %s', async (_what, failing) => {
    answer = failing
    await expect(buy()).rejects.toMatchObject({ name: 'AwsError' })
    await expect(extend()).rejects.toMatchObject({ name: 'AwsError' })
    expect(sent.map((form) => form.get('Action'))).toEqual([
      'PurchaseCapacityBlock',
      'PurchaseCapacityBlockExtension',
    ])
  })

  it('is tagged as it is made, and shows its reservation', async () => {
    answer.body = `<PurchaseCapacityBlockResponse ${XMLNS}><capacityReservation>
      <capacityReservationId>cr-1</capacityReservationId><state>payment-pending</state>
      <reservationType>capacity-block</reservationType><totalInstanceCount>2</totalInstanceCount>
      <tagSet><item><key>crucible:intent</key><value>res-1</value></item></tagSet>
      </capacityReservation></PurchaseCapacityBlockResponse>`
    expect(await buy()).toMatchObject({
      id: 'cr-1',
      isBlock: true,
      state: 'payment-pending',
      total: 2,
      tags: { 'crucible:intent': 'res-1' },
    })
    const form = Object.fromEntries(sent[0]!)
    expect(form).toMatchObject({
      CapacityBlockOfferingId: 'cb-1',
      InstancePlatform: 'Linux/UNIX',
      'TagSpecification.1.ResourceType': 'capacity-reservation',
      'TagSpecification.1.Tag.1.Key': 'crucible:intent',
      'TagSpecification.1.Tag.1.Value': 'res-1',
    })
    expect(form).not.toHaveProperty('DryRun')
  })

  it('without a reservation in the answer does not say whether it was made', async () => {
    answer.body = `<PurchaseCapacityBlockResponse ${XMLNS}></PurchaseCapacityBlockResponse>`
    await expect(buy()).rejects.toMatchObject({ reach: 'unanswered' })
  })

  it('can be tried without an effect', async () => {
    answer = { status: 412, body: errorOf('DryRunOperation') }
    await expect(buy(true)).rejects.toMatchObject({ code: 'DryRunOperation', reach: 'answered' })
    expect(sent[0]!.get('DryRun')).toBe('true')
  })
})

describe('an on-demand reservation over the SDK', () => {
  it('is targeted, has our token, and starts when its commitment says', async () => {
    answer.body = `<CreateCapacityReservationResponse ${XMLNS}><capacityReservation>
      <capacityReservationId>cr-2</capacityReservationId><state>assessing</state>
      <commitmentInfo><committedInstanceCount>8</committedInstanceCount>
      <commitmentEndDate>2027-02-01T00:00:00.000Z</commitmentEndDate></commitmentInfo>
      </capacityReservation></CreateCapacityReservationResponse>`
    const startsAtMs = Date.UTC(2027, 0, 18)
    const request = {
      token: 'token-1',
      type: 'g5.xlarge',
      count: 8,
      zone: 'us-east-1a',
      tags: {},
      later: { startsAtMs, committedMs: 14 * 24 * HOUR_MS },
    }
    expect(await api.reserving.create(request, signal)).toMatchObject({
      id: 'cr-2',
      committedUntilMs: Date.UTC(2027, 1, 1),
    })
    expect(Object.fromEntries(sent[0]!)).toMatchObject({
      ClientToken: 'token-1',
      InstanceMatchCriteria: 'targeted',
      Tenancy: 'default',
      EndDateType: 'unlimited',
      CommitmentDuration: '1209600',
      DeliveryPreference: 'incremental',
      StartDate: '2027-01-18T00:00:00Z',
      InstanceCount: '8',
    })
  })

  it('loses its end only if that is said', async () => {
    answer.body = `<ModifyCapacityReservationResponse ${XMLNS}><return>true</return></ModifyCapacityReservationResponse>`
    await api.reserving.modify('cr-2', { count: 3 }, signal)
    await api.reserving.modify('cr-2', { endsAtMs: null }, signal)
    await api.reserving.modify('cr-2', { endsAtMs: Date.UTC(2027, 1, 1) }, signal)
    const forms = sent.map((form) => Object.fromEntries(form))
    expect(forms[0]).toMatchObject({ InstanceCount: '3' })
    expect(forms[0]).not.toHaveProperty('EndDateType')
    expect(forms[1]).toMatchObject({ EndDateType: 'unlimited' })
    expect(forms[1]).not.toHaveProperty('InstanceCount')
    expect(forms[2]).toMatchObject({ EndDateType: 'limited', EndDate: '2027-02-01T00:00:00Z' })
  })

  it('begins later on the terms of its quote', async () => {
    const startsAtMs = Date.UTC(2027, 1, 1, 0, 0, 0)
    answer.body = `<CreateCapacityReservationDateChangeQuoteResponse ${XMLNS}><capacityReservationModificationQuote>
<capacityReservationModificationQuoteId>crmq-1</capacityReservationModificationQuoteId><quoteState>active</quoteState>
<modificationTerms><reservationUpdate><newStartDate>2027-02-01T00:00:00.000Z</newStartDate>
<newCommitmentEndDate>2027-02-15T00:00:00.000Z</newCommitmentEndDate></reservationUpdate></modificationTerms>
</capacityReservationModificationQuote></CreateCapacityReservationDateChangeQuoteResponse>`
    const request = { reservation: 'cr-2', startsAtMs, token: 't' }
    expect(await api.reserving.dateChangeQuote(request, signal)).toEqual({
      id: 'crmq-1',
      state: 'active',
      startsAtMs,
      committedUntilMs: Date.UTC(2027, 1, 15),
    })
    answer.body = `<ModifyCapacityReservationResponse ${XMLNS}><return>true</return></ModifyCapacityReservationResponse>`
    await api.reserving.modify('cr-2', { start: { startsAtMs, quote: 'crmq-1' } }, signal)
    expect(sent.map((form) => Object.fromEntries(form))).toMatchObject([
      { CapacityReservationId: 'cr-2', NewStartDate: '2027-02-01T00:00:00Z', ClientToken: 't' },
      { StartDate: '2027-02-01T00:00:00Z', QuoteId: 'crmq-1', AcceptModificationTerms: 'true' },
    ])
  })

  it('is given back on the terms of its quote', async () => {
    answer.body = `<CancelCapacityReservationResponse ${XMLNS}><return>true</return></CancelCapacityReservationResponse>`
    await api.reserving.cancel('cr-2', {}, signal)
    await api.reserving.cancel('cr-2', { quote: 'crq-1' }, signal)
    const forms = sent.map((form) => Object.fromEntries(form))
    expect(forms[0]).not.toHaveProperty('ApplyCancellationCharges')
    expect(forms[1]).toMatchObject({ QuoteId: 'crq-1', ApplyCancellationCharges: 'commitment-wind-down' })
  })
})

describe('with the role of a buyer', () => {
  const ROLE = 'arn:aws:iam::123456789012:role/crucible-buyer'
  let buying: Ec2Api
  beforeEach(() => {
    const { port } = server.address() as AddressInfo
    buying = createSdkApi({ region: 'us-east-1', endpoint: `http://127.0.0.1:${port}`, buyerRole: ROLE })
  })
  const assumed = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
    <Credentials><AccessKeyId>BUYER</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
    <Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`

  it('purchases are signed with its credentials, and everything else with our own', async () => {
    keysOf.length = 0
    answerOf = (form) =>
      form.get('Action') === 'AssumeRole'
        ? { status: 200, body: assumed }
        : { status: 412, body: errorOf('DryRunOperation') }
    const order = { offering: 'cb-1', tags: {}, isTrial: true }
    await expect(buying.reserving.buyBlock(order, signal)).rejects.toMatchObject({ code: 'DryRunOperation' })
    await expect(buying.market.reservations(signal)).rejects.toMatchObject({ name: 'AwsError' })
    expect(sent[0]!.get('RoleArn')).toBe(ROLE)
    expect(keysOf).toEqual(['test', 'BUYER', 'test'])
  })

  it('nothing is sent if the role cannot be taken', async () => {
    answerOf = () => ({
      status: 403,
      body: `<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>`,
    })
    await expect(buying.reserving.buyBlock({ offering: 'cb-1', tags: {} }, signal)).rejects.toMatchObject({
      code: 'AccessDenied',
      reach: 'unsent',
      message: expect.stringMatching(/^cannot assume the role .*: not you/),
    })
    expect(new Set(sent.map((form) => form.get('Action')))).toEqual(new Set(['AssumeRole']))
  })
})
