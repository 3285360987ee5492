import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_TIMING, FILE_STORE_PACE } from '../../core/time/timing'
import { writeDevNote, type Environment } from '../../storage/home'
import { readWorkerConfig, TIMING_SETTINGS } from '../../service/config'
import { ConfigError } from '../../service/config-error'

const ROLE = 'arn:aws:iam::123456789012:role/crucible-grant'
let home: string
/** Nothing of the person who runs the tests reaches them. */
let env: Environment

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'crucible-config-'))
  env = { CRUCIBLE_HOME: home, TEMPORAL_CONFIG_FILE: join(home, 'temporal.toml') }
  writeFileSync(env.TEMPORAL_CONFIG_FILE!, '[profile.default]\n')
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const read = (over: Environment = {}) => readWorkerConfig({ ...env, ...over })

function problemsOf(over: Environment): readonly string[] {
  try {
    read(over)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

describe('the configuration of a worker', () => {
  it('limits the size of an artifact where that is wished', () => {
    expect(read().timing.artifactGiBMax).toBeUndefined()
    expect(read({ CRUCIBLE_ARTIFACT_MAX: '50GiB' }).timing.artifactGiBMax).toBe(50)
    expect(problemsOf({ CRUCIBLE_ARTIFACT_MAX: 'much' })).toEqual([
      'CRUCIBLE_ARTIFACT_MAX is "much": write a size from 1GiB, such as 50GiB',
    ])
  })

  it('needs nothing', () => {
    expect(read()).toMatchObject({
      home: { directory: home, storeUrl: `file://${home}/store`, secretKeyFile: join(home, 'secret.key') },
      temporal: { connection: { address: 'localhost:7233' }, namespace: 'default' },
      timing: { ...DEFAULT_TIMING, ...FILE_STORE_PACE },
      logLevel: 'info',
    })
    expect([...read().backends.keys()]).toEqual(['local'])
  })

  it('takes a blank value for none', () => {
    const blank = { CRUCIBLE_LEASE: ' ', CRUCIBLE_STORE: '', CRUCIBLE_SECRET_KEY_FILE: '' }
    expect(read(blank)).toEqual({ ...read(), backends: expect.any(Map) })
  })

  it.each([
    ['9464', { host: '127.0.0.1', port: 9_464 }],
    ['0.0.0.0:9464', { host: '0.0.0.0', port: 9_464 }],
    ['[::1]:0', { host: '::1', port: 0 }],
  ])('serves metrics at %s', (text, monitor) => {
    expect(read({ CRUCIBLE_METRICS: text })).toMatchObject({ monitor })
  })

  it('reads every duration, each in its own place', () => {
    for (const [index, { name, key }] of TIMING_SETTINGS.entries()) {
      const seconds = 1_000 + index
      const value = key === 'beatMs' ? '7s' : `${seconds}s`
      expect(read({ [name]: value }).timing).toEqual({
        ...read().timing,
        [key]: key === 'beatMs' ? 7_000 : seconds * 1_000,
      })
    }
  })

  it('keeps the slower pace for a store that costs money to ask', () => {
    expect(read({ CRUCIBLE_STORE: 's3://bucket' }).timing).toEqual(DEFAULT_TIMING)
  })

  it('says where machines get their credentials', () => {
    expect(read().grants).toEqual({})
    expect(read({ CRUCIBLE_GRANT_ROLE: ROLE }).grants).toEqual({ roleArn: ROLE })
    const keys = { CRUCIBLE_GRANT_ACCESS_KEY_ID: 'AKIA', CRUCIBLE_GRANT_SECRET_ACCESS_KEY: 's' }
    expect(read(keys).grants).toEqual({ keys: { keyId: 'AKIA', secret: 's' } })
    const file = join(home, 'credentials')
    writeFileSync(file, '[default]\naws_access_key_id = AKIA2\naws_secret_access_key=a/b+c=\n')
    const fromFile = { CRUCIBLE_GRANT_CREDENTIALS_FILE: file }
    expect(read(fromFile).grants).toEqual({ keys: { keyId: 'AKIA2', secret: 'a/b+c=' } })
    expect(problemsOf({ ...fromFile, CRUCIBLE_GRANT_ROLE: ROLE })).toEqual([
      expect.stringContaining('CRUCIBLE_GRANT_CREDENTIALS_FILE is set together with another'),
    ])
    writeFileSync(file, '[a]\naws_access_key_id = K\n[b]\naws_access_key_id = K\naws_secret_access_key = s\n')
    expect(problemsOf(fromFile)).toEqual([expect.stringContaining('write one profile with')])
  })

  it('gives the backend a place under the home, unless the configuration names another', () => {
    expect(problemsOf({ CRUCIBLE_LOCAL_ROOT: join(home, 'elsewhere') })).toEqual([])
    expect([...read({ CRUCIBLE_BACKENDS: ' local , ' }).backends.keys()]).toEqual(['local'])
  })
})

describe('the Temporal server', () => {
  it('is the one that the environment names, then the profile, then a running crucible dev', () => {
    const { directory, ...rest } = read().home
    writeDevNote({ directory, ...rest }, { pid: process.pid, address: 'localhost:1111', uiUrl: '' })
    expect(read().temporal.connection.address).toBe('localhost:1111')
    // One that was killed leaves its note behind: it is not where a worker should wait.
    const { pid } = spawnSync('true')
    writeDevNote({ directory, ...rest }, { pid, address: 'localhost:1111', uiUrl: '' })
    expect(read().temporal.connection.address).toBe('localhost:7233')
    mkdirSync(join(home, 'profile'))
    const file = join(home, 'profile', 'temporal.toml')
    writeFileSync(file, '[profile.default]\naddress = "there:2222"\nnamespace = "team"\n')
    expect(read({ TEMPORAL_CONFIG_FILE: file }).temporal).toMatchObject({
      connection: { address: 'there:2222' },
      namespace: 'team',
    })
    expect(
      read({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_ADDRESS: 'here:3333', TEMPORAL_NAMESPACE: 'mine' })
        .temporal,
    ).toMatchObject({ connection: { address: 'here:3333' }, namespace: 'mine' })
  })
})

describe('a bad value', () => {
  it.each<[Environment, RegExp]>([
    [{ CRUCIBLE_LEASE: '90' }, /^CRUCIBLE_LEASE is "90": add its unit: 90s, 90m, 90h or 90d$/],
    [{ CRUCIBLE_DRAIN: 'soon' }, /^CRUCIBLE_DRAIN is "soon": write days, hours, minutes and seconds .*90s/],
    [{ CRUCIBLE_BEAT: '0s' }, /^CRUCIBLE_BEAT is "0s": write a positive duration, such as 5s$/],
    [
      { CRUCIBLE_BEAT: '2m', CRUCIBLE_LEASE: '6m' },
      /^CRUCIBLE_LEASE must be more than three times CRUCIBLE_BEAT/,
    ],
    [
      { CRUCIBLE_BACKENDS: 'moon' },
      /^CRUCIBLE_BACKENDS names "moon": choose from local, ec2, lambda, modal$/,
    ],
    [{ CRUCIBLE_BACKENDS: ' , ' }, /^CRUCIBLE_BACKENDS is empty: list at least one, such as local$/],
    [
      { CRUCIBLE_GRANT_ROLE: 'crucible-grant' },
      /^CRUCIBLE_GRANT_ROLE is "crucible-grant": write the ARN of a role, such as arn:aws:iam::/,
    ],
    [
      { CRUCIBLE_GRANT_ACCESS_KEY_ID: 'AKIA' },
      /^CRUCIBLE_GRANT_ACCESS_KEY_ID and CRUCIBLE_GRANT_SECRET_ACCESS_KEY belong together: set both, or neither$/,
    ],
    [
      {
        CRUCIBLE_GRANT_ROLE: ROLE,
        CRUCIBLE_GRANT_ACCESS_KEY_ID: 'AKIA',
        CRUCIBLE_GRANT_SECRET_ACCESS_KEY: 's',
      },
      /^CRUCIBLE_GRANT_ROLE and CRUCIBLE_GRANT_ACCESS_KEY_ID are both set: keep the keys only if/,
    ],
    [
      { CRUCIBLE_GRANT_CREDENTIALS_FILE: '/nowhere/credentials' },
      /^CRUCIBLE_GRANT_CREDENTIALS_FILE is "\/nowhere\/credentials", which cannot be read .*: name a readable file$/,
    ],
    [{ CRUCIBLE_METRICS: 'here' }, /^CRUCIBLE_METRICS is "here": write host:port, such as 127.0.0.1:9464$/],
    [{ CRUCIBLE_METRICS: ':99999' }, /^CRUCIBLE_METRICS is ":99999": write host:port/],
    [{ CRUCIBLE_LOG: 'loud' }, /^CRUCIBLE_LOG is "loud": write one of debug, info, warn, error$/],
    [{ CRUCIBLE_LOCAL_SLOTS: 'many' }, /^CRUCIBLE_LOCAL_SLOTS is "many": write a whole number from 1/],
    [{ CRUCIBLE_LOCAL_SPOT: 'perhaps' }, /^CRUCIBLE_LOCAL_SPOT is "perhaps": write yes or no$/],
    [{ CRUCIBLE_LOCAL_PRICE: 'cheap' }, /^CRUCIBLE_LOCAL_PRICE is "cheap": write dollars per hour/],
    [{ CRUCIBLE_LOCAL_SPOT_PRICE: '-1' }, /^CRUCIBLE_LOCAL_SPOT_PRICE is "-1": write dollars per hour/],
    [{ CRUCIBLE_LOCAL_NOTICE: '2' }, /^CRUCIBLE_LOCAL_NOTICE is "2": write a duration with its unit/],
    [
      { TEMPORAL_ADDRESS: 'http://there:7233' },
      /^TEMPORAL_ADDRESS is .*: write host:port, such as localhost:7233$/,
    ],
    [{ TEMPORAL_ADDRESS: 'a b' }, /^TEMPORAL_ADDRESS is "a b": write host:port/],
    [{ TEMPORAL_PROFILE: 'nobody' }, /nobody.*correct the TEMPORAL_\* variables or temporal.toml/],
  ])('is named, with what to write instead: %j', (over, message) => {
    const problems = problemsOf(over)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(message)
  })

  it.each(TIMING_SETTINGS.map(({ name }) => name))('is named whichever duration it is: %s', (name) => {
    expect(problemsOf({ [name]: '5' })).toEqual([`${name} is "5": add its unit: 5s, 5m, 5h or 5d`])
  })

  it('is a limit of money under a name that limits nothing', () => {
    for (const name of [
      'CRUCIBLE_MONTH_BUDGET',
      'CRUCIBLE_BUDGET',
      'CRUCIBLE_COST_LIMIT',
      'CRUCIBLE_MAX_SPEND',
    ])
      expect(problemsOf({ [name]: '$6' })).toEqual([
        `${name} is not a setting, so it would limit nothing: write CRUCIBLE_BUDGET_MONTH, CRUCIBLE_BUDGET_OWNER, CRUCIBLE_BUDGET_OWNERS`,
      ])
    const limits = { CRUCIBLE_BUDGET_MONTH: '$6', CRUCIBLE_BUDGET_OWNER: '$5', CRUCIBLE_LOCAL_PRICE: '1' }
    expect(problemsOf(limits)).toEqual([])
  })

  it('is reported together with all the others', () => {
    const problems = problemsOf({ CRUCIBLE_LOG: 'loud', CRUCIBLE_LEASE: '1', CRUCIBLE_BACKENDS: 'moon,sun' })
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
      'CRUCIBLE_LEASE',
      'CRUCIBLE_BACKENDS',
      'CRUCIBLE_BACKENDS',
      'CRUCIBLE_LOG',
    ])
    expect(new ConfigError(problems).message.split('\n')).toHaveLength(4)
  })
})
