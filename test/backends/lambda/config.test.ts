import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import {
  keyInWords,
  LAMBDA_SETTINGS,
  parseLambdaConfig,
  type LambdaConfig,
} from '../../../backends/lambda/config'
import { capabilitiesOf } from '../../../backends/lambda'
import { isOffered } from '../../../backends/lambda/offers'
import { testFolder } from '../../support/folders'
import { patiently } from '../harness'
import { CONFIG, LambdaHarness } from './harness'

const KEY = 'secret_small_0123456789_wxyz'

function parsed(settings: Record<string, string>): LambdaConfig {
  const read = parseLambdaConfig({ HOME: testFolder('home'), ...settings })
  if ('problems' in read) throw new Error(read.problems.join('; '))
  return read.config
}
const problemsOf = (settings: Record<string, string>): string[] => {
  const read = parseLambdaConfig({ HOME: testFolder('home'), ...settings })
  return 'problems' in read ? read.problems : []
}

describe('the settings of Lambda', () => {
  it('need nothing but a key', () => {
    expect(parsed({ LAMBDA_API_KEY: KEY })).toEqual({
      apiKey: KEY,
      endpoint: 'https://cloud.lambda.ai',
      types: ['*', '!*gh200*'],
      sshKey: 'crucible',
      staleForMs: 180_000,
      requestsPerSecond: 0.9,
      launchesPerMinute: 5,
    })
    expect(problemsOf({})).toEqual([expect.stringContaining('cloud.lambda.ai/api-keys')])
  })

  it.each([
    ['with a name', `# of Lambda\napi_key = ${KEY}\n`],
    ['in quotes', `api_key="${KEY}"`],
    ['alone', `${KEY}\n`],
  ])('take the key from the file of other programs (%s)', (_, text) => {
    const home = testFolder('home')
    const path = join(home, '.lambda_cloud')
    writeFileSync(path, text)
    chmodSync(path, 0o600)
    expect(parsed({ HOME: home }).apiKey).toBe(KEY)
    expect(parsed({ HOME: home, LAMBDA_API_KEY: 'own' }).apiKey).toBe('own')
  })

  it('come with a warning where other users can read the file with the key', async () => {
    const home = testFolder('home')
    const path = join(home, '.lambda_cloud')
    writeFileSync(path, KEY)
    chmodSync(path, 0o644)
    const { keyProblem } = parsed({ HOME: home })
    expect(keyProblem).toMatchObject({
      severity: 'warning',
      remedy: 'Make the file private: chmod 600 ~/.lambda_cloud',
      message: 'other users of this host can read the credentials in ~/.lambda_cloud',
    })
    const h = await LambdaHarness.make({ config: { keyProblem } })
    expect(await h.backend.check(patiently())).toEqual([keyProblem])
    await h.breakDown()
    expect(await h.backend.check(patiently())).toContainEqual(keyProblem)
    await h.dispose()
    // The environment comes first: then the file does not matter.
    expect(parsed({ HOME: home, LAMBDA_API_KEY: KEY }).keyProblem).toBeUndefined()
    chmodSync(path, 0o600)
    expect(parsed({ HOME: home }).keyProblem).toBeUndefined()
  })

  it('are read whole', () => {
    expect(
      parsed({
        LAMBDA_API_KEY: KEY,
        CRUCIBLE_LAMBDA_ENDPOINT: 'http://127.0.0.1:1/',
        CRUCIBLE_LAMBDA_TYPES: 'gpu_1x_a10, !gpu_8x*',
        CRUCIBLE_LAMBDA_REGIONS: 'us-west-1,us-west-1',
        CRUCIBLE_LAMBDA_SSH_KEY: 'mine',
        CRUCIBLE_LAMBDA_CACHE: 'cache-1',
        CRUCIBLE_LAMBDA_STALE_FOR: '90s',
        CRUCIBLE_LAMBDA_REQUESTS: '0.5',
        CRUCIBLE_LAMBDA_LAUNCHES: '2',
      }),
    ).toEqual({
      apiKey: KEY,
      endpoint: 'http://127.0.0.1:1',
      types: ['gpu_1x_a10', '!gpu_8x*'],
      sshKey: 'mine',
      regions: ['us-west-1'],
      cache: 'cache-1',
      staleForMs: 90_000,
      requestsPerSecond: 0.5,
      launchesPerMinute: 2,
    })
  })

  it.each([
    ['CRUCIBLE_LAMBDA_ENDPOINT', 'lambda', /write a URL/],
    ['CRUCIBLE_LAMBDA_TYPES', 'H100 PCIe', /names of types/],
    ['CRUCIBLE_LAMBDA_REGIONS', 'Texas', /write Regions/],
    ['CRUCIBLE_LAMBDA_SSH_KEY', 'k'.repeat(65), /64 characters/],
    ['CRUCIBLE_LAMBDA_CACHE', '1st', /name of a file system/],
    ['CRUCIBLE_LAMBDA_STALE_FOR', '3', /with its unit/],
    ['CRUCIBLE_LAMBDA_REQUESTS', '0', /above 0/],
    ['CRUCIBLE_LAMBDA_LAUNCHES', '-1', /above 0/],
  ])('say what is wrong with %s', (name, value, advice) => {
    expect(LAMBDA_SETTINGS.map((setting) => setting.name)).toContain(name)
    const [problem, ...others] = problemsOf({ LAMBDA_API_KEY: KEY, [name]: value })
    expect(problem).toMatch(new RegExp(`^${name} is "`))
    expect(problem).toMatch(advice)
    expect(others).toEqual([])
  })

  it('name every problem at once, and no key', () => {
    const wrong = 'secret with spaces_0123456789'
    const problems = problemsOf({ LAMBDA_API_KEY: wrong, CRUCIBLE_LAMBDA_REQUESTS: 'many' })
    expect(problems).toHaveLength(2)
    expect(problems.join()).not.toContain(wrong)
    expect(keyInWords(KEY)).toBe('the key …wxyz')
    expect(keyInWords('short')).toBe('the key …')
  })

  it('choose types by patterns, without ARM machines unless they are named', () => {
    const offered = (types: string[], name: string): boolean =>
      isOffered({ config: { ...CONFIG, types } }, name)
    expect(offered(['*', '!*gh200*'], 'gpu_1x_a10')).toBe(true)
    expect(offered(['*', '!*gh200*'], 'gpu_1x_gh200')).toBe(false)
    expect(offered(['gpu_1x_gh200'], 'gpu_1x_gh200')).toBe(true)
    expect(offered(['gpu_1x_*'], 'gpu_8x_a100')).toBe(false)
    expect(offered(['!gpu_8x*'], 'gpu_1x_a10')).toBe(true)
  })

  it('are those of a provider whose launch takes one type in one Region', () => {
    expect(capabilitiesOf(CONFIG).offersPerOrder).toBe('one')
  })

  it('set the pace at which the provider is asked', () => {
    expect(
      capabilitiesOf({ ...CONFIG, requestsPerSecond: 0.5, launchesPerMinute: 5, staleForMs: 180_000 }).pace,
    ).toEqual({
      observeMs: 8_000,
      goneConfirmMs: 30_000,
      launchesPerMinute: 5,
    })
  })
})
