/** Many Regions at once: all are asked together, and each answers or is named. */
import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { parse } from 'yaml'
import { createRegionApi } from '../../../backends/ec2/sdk/region'
import type { Limiter } from '../../../backends/limiter'
import { readCliConfig } from '../../../cli/kit/config'
import { runTruffle } from '../../../cli/truffle/run'
import { Paper } from '../outside'
import { TruffleAccount, type TruffleDocument } from './account'
import { COMMANDS, HOME, NOW, REGIONS, runOn, scriptOf } from './drawn'
import { fakeRegion, fakeReservation, type RegionScript } from './fake-region'
import { chosen } from '../../support/selection'

jest.setTimeout(240_000)

const scriptsWith = (own: (region: string) => Partial<RegionScript>): RegionScript[] =>
  REGIONS.map((name) => ({ name, reservations: [fakeReservation(name)], ...own(name) }))

describe('an interruptible reservation', () => {
  const shown = (...more: string[]) =>
    runOn(
      scriptsWith((region) => ({
        reservations: [
          fakeReservation(region, { id: 'cr-spare', isInterruptible: true }),
          fakeReservation(region, { free: 3 }),
        ],
      })),
      ['capacity', '--odcr', '--json', '--regions', 'us-east-1', ...more],
    )

  it('is shown as one that no job uses', async () => {
    const { stdout } = await shown()
    const { results, notes } = JSON.parse(stdout) as TruffleDocument
    expect(results.map((row) => [row['reservation_id'], row['interruptible']])).toEqual([
      ['cr-spare', true],
      ['cr-us-east-1', false],
    ])
    expect(notes.join(' ')).toMatch(/Interruptible, so that no job runs there .*: cr-spare\./)
  })

  it.each([
    ['--available-only', ['cr-us-east-1']],
    ['--min-capacity=2', ['cr-us-east-1']],
    ['--min-capacity=4', []],
  ])('is no room for a run: %s', async (option, ids) => {
    const { stdout } = await shown(option)
    const { results = [], notes = [] } = JSON.parse(stdout) as TruffleDocument
    expect(results.map((row) => row['reservation_id'])).toEqual(ids)
    expect(notes.join(' ')).not.toContain('together')
  })
})

describe('twenty Regions', () => {
  it('are asked at once: none answers before all were asked', async () => {
    let waiting: (() => void)[] = []
    const before = (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve)
        if (waiting.length < REGIONS.length) return
        waiting.forEach((go) => go())
        waiting = []
      })
    const [stdout, stderr] = [new Paper(), new Paper()]
    await runTruffle(['capacity', '--blocks', '--json', '--fresh', '--regions', REGIONS.join(',')], {
      config: readCliConfig({ CRUCIBLE_HOME: HOME }, '/usr/local/bin/truffle'),
      stdout,
      stderr,
      signals: new EventEmitter(),
      exit: () => {},
      now: () => NOW,
      openRegion: (region) => fakeRegion({ name: region, before }, REGIONS, NOW),
    })
    expect(JSON.parse(stdout.text)).toMatchObject({ results: [], unanswered: [] })
  })

  it('are named if they fail, are not enabled or do not answer in time, and the rest is kept', async () => {
    const scripts = scriptsWith((region) => ({
      error:
        region === 'eu-west-1'
          ? {
              code: 'UnauthorizedOperation',
              message: 'You are not authorized to perform: ec2:DescribeCapacityReservations',
              httpStatus: 403,
            }
          : undefined,
      ...(region === 'af-south-1' && {
        error: {
          code: 'AuthFailure',
          message: 'AWS was not able to validate the provided access credentials',
          httpStatus: 401,
        },
      }),
      isSilent: region === 'me-south-1' ? true : undefined,
    }))
    const { exitCode, stdout, stderr } = await runOn(scripts, ['capacity', '--json', '--timeout', '1'])
    const { results, unanswered } = JSON.parse(stdout) as TruffleDocument
    expect(exitCode).toBe(0)
    expect(results.map(({ region }) => region).sort()).toEqual(
      REGIONS.filter((region) => !['eu-west-1', 'af-south-1', 'me-south-1'].includes(region)),
    )
    expect(unanswered.map(({ region, code }) => [region, code])).toEqual([
      ['af-south-1', 'RegionNotEnabled'],
      ['eu-west-1', 'UnauthorizedOperation'],
      ['me-south-1', 'Timeout'],
    ])
    expect(stderr).toContain('aws account enable-region --region-name af-south-1')
    expect(stderr).toContain('me-south-1 did not answer within 1s')
  })

  it('make no "no capacity" of Regions that did not answer', async () => {
    const denied = { code: 'UnauthorizedOperation', httpStatus: 403 }
    // An account that has not enabled a Region cannot have capacity there.
    const closed = { code: 'AuthFailure', httpStatus: 401 }
    const empty = (region: string, error: RegionScript['error']): Partial<RegionScript> => ({
      reservations: [],
      error: region === 'eu-west-1' && error !== undefined ? { ...error, only: /reservations/ } : undefined,
    })
    const codes = await Promise.all(
      [undefined, closed, denied, { code: 'RequestLimitExceeded', httpStatus: 503 }].map(
        async (error) =>
          (
            await runOn(
              scriptsWith((region) => empty(region, error)),
              ['capacity'],
            )
          ).exitCode,
      ),
    )
    expect(codes).toEqual([3, 3, 4, 7])
  })

  it('show how many have answered, on a terminal and on stderr only', async () => {
    const { stdout, stderr } = await runOn(
      scriptsWith(() => ({})),
      ['capacity', '--json'],
      true,
    )
    expect(stderr).toContain('Asking 20 Regions: 7 have answered')
    expect(JSON.parse(stdout)).toMatchObject({ schema: 'truffle/1' })
  })
})

describe('throttling', () => {
  let account: TruffleAccount
  beforeAll(async () => {
    account = await TruffleAccount.open()
  })
  afterAll(() => account.close())

  it('costs time and no answer: refused requests are sent again', async () => {
    account.cloud.addFault({
      fault: 'error',
      code: 'RequestLimitExceeded',
      status: 503,
      times: 6,
      where: { service: 'ec2', action: 'DescribeInstanceTypes' },
    })
    const { results, unanswered } = await account.json('search', 'g6.xlarge')
    expect([results.length, unanswered]).toEqual([3, []])
    const calls = account.cloud.journal.calls({ action: 'DescribeInstanceTypes' })
    expect(calls.filter(({ outcome }) => outcome === 'RequestLimitExceeded')).toHaveLength(6)
  })

  it('is avoided: every request of a Region, and every repetition, waits for the limiter', async () => {
    const before = account.cloud.journal.calls({ service: 'ec2' }).length
    account.cloud.addFault({
      fault: 'error',
      code: 'RequestLimitExceeded',
      status: 503,
      times: 1,
      where: { service: 'ec2', action: 'DescribeSubnets' },
    })
    let waited = 0
    const limiter: Limiter = {
      run: (_rank, _signal, call) => {
        waited += 1
        return call()
      },
    }
    const { signal } = new AbortController()
    const { endpoint } = account.cloud
    const api = createRegionApi({ region: 'us-east-1', endpoint, limiter, signal })
    await api.capacity.subnetsOfAll(signal)
    await api.market.types(['*'], signal)
    expect(waited).toBe(account.cloud.journal.calls({ service: 'ec2' }).length - before)
    expect(waited).toBeGreaterThanOrEqual(3)
  })
})

describe('in drawn states of twenty Regions', () => {
  it('JSON, YAML and CSV are valid, and each Region answers or is named', async () => {
    const drawn = fc.tuple(
      fc.tuple(...REGIONS.map(scriptOf)),
      fc.constantFrom(...COMMANDS),
      fc.constantFrom('json', 'yaml', 'csv'),
    )
    await fc.assert(
      fc.asyncProperty(drawn, async ([scripts, command, format]) => {
        const named = scripts.map(({ name }) => name).join(',')
        const asked = [...command.split(' '), '--output', format, '--regions', named]
        const { exitCode, stdout } = await runOn(scripts, asked)
        expect([0, 2, 3, 4, 5, 7, 9, 1]).toContain(exitCode)
        if (format === 'csv') return expectCsv(stdout)
        const document = (format === 'json' ? JSON.parse(stdout) : parse(stdout)) as TruffleDocument
        expect(document.schema).toBe('truffle/1')
        if (document.error !== undefined) return expect(exitCode).toBeGreaterThan(0)
        expect(Array.isArray(document.results)).toBe(true)
        const lost = document.unanswered.map(({ region }) => region)
        for (const row of document.results) if (row['region']) expect(lost).not.toContain(row['region'])
      }),
      { numRuns: chosen([1_000], [150])[0]! },
    )
  })
})

/** Every line has as many cells as the first one. */
function expectCsv(text: string): void {
  const rows: string[][] = [[]]
  for (const [, quoted, bare, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    rows.at(-1)!.push(quoted ?? bare!)
    if (end === '\r\n') rows.push([])
  }
  const widths = rows.slice(0, -1).map(({ length }) => length)
  expect(widths.length).toBeGreaterThan(0)
  expect(new Set(widths).size).toBe(1)
}
