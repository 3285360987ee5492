import { PricingClient } from '@aws-sdk/client-pricing'
import { describe, expect, it } from '@jest/globals'
import { createTransfers } from '../../../../backends/ec2/market/transfer'
import { createPricesApi } from '../../../../backends/ec2/sdk/prices'
import { microUsd } from '../../../../core/money/money'
import { HOUR_MS } from '../../../../core/time/time'
import { patient } from '../../../support/patience'

const signal = AbortSignal.timeout(patient(60_000))

/** A price list that says what is given, and counts how often it is asked. */
function stage(list: (from: string, to: string) => string | undefined) {
  const asked: string[] = []
  let nowMs = Date.UTC(2026, 10, 23)
  const between = createTransfers({
    market: {
      transferUsdPerGb: async ({ from, to }) => {
        asked.push(`${from} ${to}`)
        return list(from, to)
      },
    },
    clock: () => nowMs,
  })
  return { between, asked, nowMs: () => nowMs, pass: (ms: number) => void (nowMs += ms) }
}

const unreachable = (): never => {
  throw new Error('no list')
}

describe('the price of data between Regions', () => {
  it('is that of the list for each direction, and when it was read', async () => {
    const { between, nowMs } = stage((from) => (from === 'sa-east-1' ? '0.2000000000' : '0.0300000000'))
    expect(await between('sa-east-1', 'us-east-1', signal)).toMatchObject({
      storeRegion: 'us-east-1',
      upMicroUsdPerGb: microUsd(0.2),
      downMicroUsdPerGb: microUsd(0.03),
      priceSource: { kind: 'live', observedAtMs: nowMs() },
    })
  })

  it('is asked for once in six hours, and never within one Region', async () => {
    const { between, asked, pass } = stage(() => '0.02')
    for (let at = 0; at < 3; at++) await between('us-west-2', 'us-east-1', signal)
    expect(asked).toEqual(['us-west-2 us-east-1', 'us-east-1 us-west-2'])
    pass(6 * HOUR_MS)
    await between('us-west-2', 'us-east-1', signal)
    expect(asked).toHaveLength(4)
    expect(await between('us-east-1', 'us-east-1', signal)).toBeUndefined()
    expect(asked).toHaveLength(4)
  })

  it.each([
    ['cannot be reached', unreachable],
    ['does not have the way', () => undefined],
  ])('is that of a dated table where the list %s', async (_, list) => {
    const found = await stage(list).between('ap-south-1', 'us-east-1', signal)
    expect(found).toMatchObject({ upMicroUsdPerGb: microUsd(0.086), downMicroUsdPerGb: microUsd(0.02) })
    expect(found!.priceSource!.kind).toBe('static')
  })

  it('counts as assumed where it is so in one direction', async () => {
    const { between } = stage((from) => (from === 'us-east-1' ? '0.02' : undefined))
    expect((await between('eu-west-1', 'us-east-1', signal))!.priceSource!.kind).toBe('static')
    expect((await between('us-east-1', 'eu-west-1', signal))!.priceSource!.kind).toBe('static')
  })

  /** Dollars that Infracost's published estimate of `aws_data_transfer` has for 750 GB to other Regions, from the price list of AWS. */
  it.each([
    [110.25, ['af-south-1', 'mars-north-1']],
    [103.5, ['sa-east-1']],
    [82.88, ['me-south-1']],
    [73.5, ['ap-southeast-2']],
    [67.5, ['ap-northeast-1', 'ap-northeast-3', 'ap-east-1', 'ap-southeast-1']],
    [64.5, ['ap-south-1', 'ap-south-2']],
    [60, ['ap-northeast-2', 'il-central-1']],
    [15, ['us-east-2', 'us-west-1', 'us-west-2', 'ca-central-1', 'ca-west-1', 'eu-central-1']],
    [15, ['eu-north-1', 'eu-south-1', 'eu-west-1', 'eu-west-2', 'eu-west-3']],
  ])('is in the table as others have read it: $%d for 750 GB from %j', async (usd, regions) => {
    const { between } = stage(unreachable)
    for (const region of regions) {
      const { upMicroUsdPerGb } = (await between(region, 'eu-central-2', signal))!
      expect([region, ((upMicroUsdPerGb * 750) / 1e6).toFixed(2)]).toEqual([region, usd.toFixed(2)])
    }
  })

  it('is half between the two Regions of the east of the United States', async () => {
    const { between } = stage(unreachable)
    expect((await between('us-east-1', 'us-east-2', signal))!.upMicroUsdPerGb).toBe(microUsd(0.01))
    expect((await between('us-east-2', 'us-east-1', signal))!.upMicroUsdPerGb).toBe(microUsd(0.01))
  })
})

describe('the price list of data between Regions', () => {
  const product = (usagetype: string, usd: string, unit = 'GB'): string =>
    JSON.stringify({
      product: { attributes: { usagetype } },
      terms: { OnDemand: { a: { priceDimensions: { b: { unit, pricePerUnit: { USD: usd } } } } } },
    })
  const read = async (...PriceList: string[]) => {
    const asked: { input: object }[] = []
    const pricing = {
      config: {},
      send: async (command: { input: object }) => {
        asked.push(command)
        return { PriceList }
      },
    }
    const client = Object.assign(Object.create(PricingClient.prototype) as PricingClient, pricing)
    const api = createPricesApi(client)
    return { usd: await api.transferUsdPerGb({ from: 'us-east-1', to: 'us-west-2' }, signal), asked }
  }

  it('is asked for one direction of one pair, and read of the usual usage alone', async () => {
    const { usd, asked } = await read(
      product('USE1-USW2-AWS-Out-Bytes', '0.0200000000'),
      product('USE1-USW2-S3RTC-Out-Bytes', '0.0350000000'),
      product('USE1-USW2-AWS-Out-Bytes', '0.5000000000', 'Quantity'),
    )
    expect(usd).toBe('0.0200000000')
    expect(asked[0]!.input).toMatchObject({
      ServiceCode: 'AWSDataTransfer',
      Filters: [
        { Field: 'fromRegionCode', Value: 'us-east-1' },
        { Field: 'toRegionCode', Value: 'us-west-2' },
        { Field: 'transferType', Value: 'InterRegion Outbound' },
      ],
    })
  })

  it('says the dearest where it says several, and nothing where it says none', async () => {
    const all = ['0.0200000000', '0.0900000000', '0.0300000000']
    const { usd } = await read(...all.map((each) => product('USE1-USW2-AWS-Out-Bytes', each)))
    expect(usd).toBe('0.0900000000')
    expect((await read()).usd).toBeUndefined()
  })
})
