import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { Grant } from '../../core/grants'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { openGrant, type Granter } from '../../storage/grants'
import { StoreError } from '../../storage/store'
import { granterFor, GrantIssuer } from '../../service/grants'
import { readWorkerConfig, type WorkerConfig } from '../../service/config'
import type { Environment } from '../../storage/home'
import { openStore } from '../../storage/open-store'

const KEY = Buffer.alloc(32, 5)
const GRANTEE = { jobId: 'job-a', attempt: 2, attemptId: 'job-a-2' }
const AWAY = new StoreError('Could not get credentials: no answer.', { isTransient: true })

let nowMs: number
/** The clock skew of this computer; the token service has the true time. */
let stepMs: number
let clockOffsetMs: number | undefined
let wishes: number[]
let answer: () => Grant
let said: string[]
let desk: GrantIssuer

const lasting = (ms: number) => (): Grant => ({
  keyId: 'ASIA',
  secret: 's',
  sessionToken: 't',
  expiresAtMs: nowMs + ms,
})
const refusing = (error: Error) => (): Grant => {
  throw error
}

beforeEach(() => {
  nowMs = 1_800_000_000_000
  stepMs = 0
  clockOffsetMs = undefined
  wishes = []
  said = []
  answer = lasting(HOUR_MS)
  const granter: Granter = {
    durationMsMax: 12 * HOUR_MS,
    get clockOffsetMs() {
      return clockOffsetMs
    },
    grant: async ({ durationMs }) => {
      wishes.push(durationMs)
      return answer()
    },
  }
  const say = (first: unknown, second?: string): void => void said.push(second ?? String(first))
  const logger = { warn: say, info: say }
  const keys = { keyOf: () => KEY.toString('hex') }
  desk = new GrantIssuer({
    granter,
    keys,
    timing: DEFAULT_TIMING,
    now: () => nowMs + stepMs,
    monotonicMs: () => nowMs,
    logger,
  })
})

describe('the desk of grants', () => {
  it('asks for grants that outlast a whole lease after half of their time', async () => {
    await desk.grant(GRANTEE)
    const { leaseMs, drainMs, powerOffMs } = DEFAULT_TIMING
    expect(wishes[0]! / 2).toBeGreaterThan(leaseMs + drainMs + powerOffMs)
  })

  it('seals with the key of the attempt, for the lease and for the first file alike', async () => {
    const { sealed } = await desk.grant(GRANTEE)
    expect(openGrant(KEY, sealed)).toEqual(answer())
    const file = await desk.grantFile(GRANTEE)
    expect(file).not.toContain('ASIA')
    expect(openGrant(KEY, JSON.parse(file) as never)).toEqual(answer())
  })

  it('counts on no grant to its very end, as clocks differ', async () => {
    expect((await desk.grant(GRANTEE)).endsAtMs).toBe(nowMs + HOUR_MS - 30 * SECOND_MS)
    answer = lasting(60 * SECOND_MS)
    expect((await desk.grant(GRANTEE)).endsAtMs).toBe(nowMs + 54 * SECOND_MS)
  })

  it('learns from the first how long they hold, and never asks twice for that', async () => {
    // Half a day until somebody says that it is less.
    expect(desk.holdsForMs).toBeGreaterThan(11 * HOUR_MS)
    expect(await desk.learnHoldsForMs(GRANTEE)).toBe(HOUR_MS - 30 * SECOND_MS)
    expect(await desk.learnHoldsForMs(GRANTEE)).toBe(HOUR_MS - 30 * SECOND_MS)
    expect(wishes).toHaveLength(1)
  })

  it('knows a grant again that another process gave', async () => {
    const given = await desk.grant(GRANTEE)
    nowMs += 10 * MINUTE_MS
    expect(desk.recall(GRANTEE, given.sealed)).toEqual(given)
  })

  it('has keys that never end for stores without a token service', async () => {
    answer = () => ({ keyId: 'AKIA', secret: 's', sessionToken: null, expiresAtMs: null })
    expect((await desk.grant(GRANTEE)).endsAtMs).toBe(Infinity)
    expect(await desk.learnHoldsForMs(GRANTEE)).toBe(Infinity)
  })

  it('asks a token service that does not answer only now and then, for all machines together, and says so once', async () => {
    await desk.grant(GRANTEE)
    answer = refusing(AWAY)
    for (let second = 0; second < 60; second++, nowMs += SECOND_MS)
      await expect(desk.grant(GRANTEE)).rejects.toMatchObject({ class: 'transient', message: AWAY.message })
    expect(wishes.length - 1).toBe(6)
    expect(said).toEqual([
      'machines get no new credentials for the store; they continue with their current ones',
    ])
    answer = lasting(HOUR_MS)
    nowMs += 10 * SECOND_MS
    await desk.grant(GRANTEE)
    expect(said[1]).toBe('machines get credentials for the store again')
  })

  it('says when the trouble has become another, and whether it can pass', async () => {
    answer = refusing(AWAY)
    await expect(desk.grant(GRANTEE)).rejects.toMatchObject({ class: 'transient' })
    nowMs += MINUTE_MS
    answer = refusing(new StoreError('The role is gone.', { isTransient: false }))
    await expect(desk.learnHoldsForMs(GRANTEE)).rejects.toMatchObject({ class: 'auth' })
    expect(said).toHaveLength(2)
  })
})

describe.each([
  ['2 h ahead', 2 * HOUR_MS],
  ['2 h back', -2 * HOUR_MS],
  ['30 d ahead', 30 * DAY_MS],
  ['30 d back', -30 * DAY_MS],
])('a grant that is given while the clock is %s', (_, byMs) => {
  beforeEach(() => {
    stepMs = byMs
  })

  it('holds as long as by the clock of the token service', async () => {
    clockOffsetMs = -stepMs
    const given = await desk.grant(GRANTEE)
    expect(given.endsAtMs - (nowMs + stepMs)).toBe(HOUR_MS - 30 * SECOND_MS)
    expect(desk.holdsForMs).toBe(HOUR_MS - 30 * SECOND_MS)
    expect(desk.recall(GRANTEE, given.sealed)).toEqual(given)
  })

  it('is valid, and for no longer than was asked for, if no other clock is known', async () => {
    const { endsAtMs } = await desk.grant(GRANTEE)
    expect(endsAtMs).toBeGreaterThan(nowMs + stepMs)
    expect(endsAtMs).toBeLessThan(nowMs + stepMs + wishes[0]!)
  })

  it('is asked for again after a refusal as soon as at another time', async () => {
    stepMs = 0
    answer = refusing(AWAY)
    await expect(desk.grant(GRANTEE)).rejects.toMatchObject({ class: 'transient' })
    stepMs = byMs
    answer = lasting(HOUR_MS)
    nowMs += 10 * SECOND_MS
    await desk.grant(GRANTEE)
    expect(wishes).toHaveLength(2)
  })
})

describe('who gets grants', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'crucible-grants-'))
    writeFileSync(join(folder, 'temporal.toml'), '[profile.default]\n')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const configOf = (settings: Environment): WorkerConfig =>
    readWorkerConfig({
      CRUCIBLE_HOME: folder,
      TEMPORAL_CONFIG_FILE: join(folder, 'temporal.toml'),
      AWS_REGION: 'us-east-1',
      CRUCIBLE_BACKENDS: 'local,ec2',
      ...settings,
    })

  it('are machines without credentials of their own, at a store that asks for some', () => {
    const [disk, bucket] = [openStore('file:///srv/store'), openStore('s3://bucket')]
    const config = configOf({})
    expect(granterFor(config, 'local', bucket)).toBeDefined()
    expect(granterFor(config, 'local', disk)).toBeUndefined()
    expect(granterFor(config, 'ec2', bucket)).toBeDefined()
    expect(granterFor(configOf({ CRUCIBLE_EC2_GRANTS: 'no' }), 'ec2', bucket)).toBeUndefined()
  })
})
