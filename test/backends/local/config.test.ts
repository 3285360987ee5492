import { describe, expect, it } from '@jest/globals'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOCAL_SETTINGS, parseLocalConfig } from '../../../backends/local/config'
import { BACKENDS } from '../../../backends/registry'

describe('parseLocalConfig', () => {
  it('needs nothing', () => {
    expect(parseLocalConfig({ PATH: '/bin', AWS_SECRET_ACCESS_KEY: 'x', TEMPORAL_API_KEY: 'y' })).toEqual({
      config: {
        root: join(homedir(), '.crucible', 'local'),
        slots: availableParallelism(),
        hasSpot: false,
        priceMicroUsdPerHour: 0,
        spotPriceMicroUsdPerHour: 0,
        noticeMs: 120_000,
        python: 'python3',
        environment: { PATH: '/bin' },
        uids: { first: 1_900_000_000, last: 1_900_065_535, isWanted: false },
      },
    })
  })

  it('reads every setting', () => {
    const settings = {
      CRUCIBLE_LOCAL_ROOT: '~/machines',
      CRUCIBLE_LOCAL_SLOTS: '8',
      CRUCIBLE_LOCAL_SPOT: 'Yes',
      CRUCIBLE_LOCAL_PRICE: '$1.50',
      CRUCIBLE_LOCAL_SPOT_PRICE: '0.35',
      CRUCIBLE_LOCAL_NOTICE: '1.5m',
      CRUCIBLE_LOCAL_PYTHON: '/opt/python',
      CRUCIBLE_LOCAL_UIDS: '300000-300099',
    }
    expect(parseLocalConfig(settings)).toEqual({
      config: {
        root: join(homedir(), 'machines'),
        slots: 8,
        hasSpot: true,
        priceMicroUsdPerHour: 1_500_000,
        spotPriceMicroUsdPerHour: 350_000,
        noticeMs: 90_000,
        python: '/opt/python',
        environment: {},
        uids: { first: 300_000, last: 300_099, isWanted: true },
      },
    })
    expect(LOCAL_SETTINGS.map((setting) => setting.name)).toEqual(Object.keys(settings))
  })

  it.each(['no', 'off', '0'])('runs jobs as the worker with CRUCIBLE_LOCAL_UIDS=%s', (text) => {
    const parsed = parseLocalConfig({ CRUCIBLE_LOCAL_UIDS: text })
    expect('config' in parsed && 'uids' in parsed.config).toBe(false)
  })

  it.each([
    ['yes', 'write the first and the last uid with a dash'],
    ['200000', 'write the first and the last uid with a dash'],
    ['300000-200000', 'the first uid is greater than the last: write 200000-300000'],
    ['0-99', 'uids of jobs must be from 1000 to 2147483647'],
    ['3000000000-3000000999', 'uids of jobs must be from 1000 to 2147483647'],
    ['60000-70000', 'it includes 65534, which the system reserves'],
    ['200000-200002', 'it has 3 uids for 8 slots'],
  ])('refuses CRUCIBLE_LOCAL_UIDS=%s and says what to write', (text, advice) => {
    const parsed = parseLocalConfig({ CRUCIBLE_LOCAL_UIDS: text, CRUCIBLE_LOCAL_SLOTS: '8' })
    expect(parsed).toEqual({
      problems: [expect.stringContaining(`CRUCIBLE_LOCAL_UIDS is "${text}": ${advice}`)],
    })
  })

  it('asks the on-demand price of a spot machine that has none of its own', () => {
    const parsed = parseLocalConfig({ CRUCIBLE_LOCAL_PRICE: '2' })
    expect(parsed).toMatchObject({ config: { spotPriceMicroUsdPerHour: 2_000_000 } })
  })

  it('names every problem at once, with what to write instead', () => {
    const parsed = parseLocalConfig({
      CRUCIBLE_LOCAL_SLOTS: 'many',
      CRUCIBLE_LOCAL_SPOT: 'maybe',
      CRUCIBLE_LOCAL_PRICE: '-1',
      CRUCIBLE_LOCAL_NOTICE: '120',
    })
    expect(parsed).toEqual({
      problems: [
        'CRUCIBLE_LOCAL_PRICE is "-1": write dollars per hour, such as 0.35',
        'CRUCIBLE_LOCAL_SLOTS is "many": write a whole number from 1 to 4096, such as 4',
        'CRUCIBLE_LOCAL_SPOT is "maybe": write yes or no',
        'CRUCIBLE_LOCAL_NOTICE is "120": write a duration with its unit, such as 120s or 2m; 0s for no notice',
      ],
    })
  })
})

describe('the registry', () => {
  it('makes each backend under its own name, from settings alone', async () => {
    const root = await mkdtemp(join(tmpdir(), 'crucible-registry-'))
    try {
      for (const [name, registered] of Object.entries(BACKENDS)) {
        expect(
          registered.settings.every(({ name: setting }) => /^(?:CRUCIBLE|AWS|LAMBDA)_/.test(setting)),
        ).toBe(true)
        const opened = registered.read({
          CRUCIBLE_LOCAL_ROOT: root,
          AWS_REGION: 'us-east-1',
          LAMBDA_API_KEY: 'key',
          CRUCIBLE_MODAL_URL: 'https://gateway.test',
          CRUCIBLE_MODAL_KEY: 'wk',
          CRUCIBLE_MODAL_SECRET: 'ws',
        })
        if ('problems' in opened) throw new Error(opened.problems.join())
        const notHere = () => Promise.reject(new Error('not here'))
        const deps = { fetchRunner: notHere, runnerUrl: notHere, clock: Date.now }
        expect((await opened.create(deps)).name).toBe(name)
      }
    } finally {
      await rm(root, { recursive: true })
    }
  })

  it('gives back what is wrong with the settings', () => {
    expect(BACKENDS.local!.read({ CRUCIBLE_LOCAL_SLOTS: '0' })).toEqual({
      problems: [expect.stringContaining('CRUCIBLE_LOCAL_SLOTS')],
    })
  })
})
