import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { parse } from 'yaml'
import { TruffleAccount } from './account'

jest.setTimeout(60_000)

let account: TruffleAccount

beforeAll(async () => {
  account = await TruffleAccount.open()
})
afterAll(() => account.close())

describe('truffle search', () => {
  it.each([
    ['a type', ['m7i.large', '--regions', 'us-east-1'], ['m7i.large']],
    ['a type in capitals', ['M7I.LARGE', '--regions', 'us-east-1'], ['m7i.large']],
    ['a family', ['inf2', '-r', 'us-east-1'], ['inf2.xlarge']],
    ['a glob', ['g6e.?xlarge', '--region', 'us-east-1', '--min-vcpus', '16'], ['g6e.4xlarge', 'g6e.8xlarge']],
    ['a regular expression', ['^p(4|5)de?\\.', '-r', 'us-east-1'], ['p4d.24xlarge', 'p4de.24xlarge']],
    ['an accelerator', ['h100', '-r', 'us-east-1'], ['p5.48xlarge', 'p5.4xlarge']],
    [
      'chips that are no GPUs',
      ['trn1', 'inf2', '--gpu-only', '-r', 'us-east-1'],
      ['inf2.xlarge', 'trn1.2xlarge', 'trn1.32xlarge'],
    ],
    [
      'memory',
      ['p*', '--min-memory', '2TB', '-r', 'us-east-1'],
      ['p5.48xlarge', 'p5en.48xlarge', 'p6-b200.48xlarge'],
    ],
  ])('finds %s', async (_what, args, expected) => {
    const { results } = await account.json('search', ...args)
    expect(results.map((row) => row['instance_type']).sort()).toEqual(expected)
  })

  it('asks all enabled Regions, and lists the zones and the price of each', async () => {
    const { results } = await account.json('search', 'p5.48xlarge', '--show-price')
    expect(results.map(({ region, on_demand_price }) => [region, on_demand_price])).toEqual([
      ['eu-west-1', 55.04],
      ['us-east-1', 55.04],
      ['us-west-2', 55.04],
    ])
    expect(results[1]).toMatchObject({
      availability_zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'],
      vcpus: 192,
      memory_mib: 2_097_152,
      gpus: 8,
      gpu_model: 'H100',
      gpu_memory_mib: 81_920,
    })
  })

  it('knows no price of a Region from another one, and says so', async () => {
    account.cloud.addFault({
      fault: 'error',
      code: 'AccessDeniedException',
      times: 20,
      where: { service: 'pricing' },
    })
    const args = ['search', 'p5.48xlarge', '--show-price', '--regions', 'us-east-1,eu-west-1']
    const { results, notes } = await account.json(...args)
    expect(results.map(({ region, on_demand_price }) => [region, on_demand_price])).toEqual([
      ['eu-west-1', null],
      ['us-east-1', 55.04],
    ])
    expect(notes.join(' ')).toContain('The price in eu-west-1 is not known: p5.48xlarge.')
  })

  it('says which types have a similar name', async () => {
    const { exitCode, stderr } = await account.run('search', 'p5.49xlarge')
    expect({ exitCode, stderr }).toEqual({
      exitCode: 5,
      stderr: expect.stringMatching(
        /No instance type matches p5\.49xlarge in any of 3 Regions[^]*p5\.48xlarge/,
      ),
    })
  })
})

describe('truffle az', () => {
  it('finds Regions with enough zones', async () => {
    const { results } = await account.json('az', 'g5.xlarge', '--min-az-count', '3')
    expect(results).toEqual([
      {
        instance_type: 'g5.xlarge',
        region: 'us-east-1',
        availability_zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'],
        availability_zone_ids: ['use1-az1', 'use1-az2', 'use1-az3'],
        az_count: 3,
        capacity_scores: null,
      },
    ])
  })

  it('asks only the Regions of named zones', async () => {
    const { results } = await account.json('az', 'g5.xlarge', '--az', 'us-west-2b')
    expect(results.map((row) => row['availability_zones'])).toEqual([['us-west-2b']])
  })

  it('ends with 3 when no Region has so many zones', async () => {
    expect(await account.run('az', 'g5.xlarge', '--min-az-count', '9', '-o', 'csv')).toMatchObject({
      exitCode: 3,
      stdout: 'instance_type,region,availability_zones,availability_zone_ids,az_count,capacity_scores\r\n',
    })
  })
})

describe('answers of truffle', () => {
  it.each(['json', 'yaml', 'csv'])('are one %s document also for errors', async (format) => {
    const asked = [
      ['search', 'p5.49xlarge'],
      ['search'],
      ['search', '('],
      ['nonsense'],
      ['search', 'g5', '-r', 'nowhere'],
    ]
    for (const args of asked) {
      const { exitCode, stdout } = await account.run(...args, '--output', format)
      expect(exitCode).toBeGreaterThan(0)
      if (format === 'csv') expect(stdout).toMatch(/^error,message,hint\r\n(usage|not-found),/)
      else
        expect(parse(stdout)).toMatchObject({ schema: 'truffle/1', error: { message: expect.any(String) } })
    }
  })

  it('come from the last seconds if the same is asked again, unless --fresh', async () => {
    const calls = (): number => account.cloud.journal.calls({ action: 'DescribeInstanceTypes' }).length
    await account.run('search', 'r7i.large', '-r', 'us-east-1', '--fresh')
    const before = calls()
    const { stderr } = await account.run('search', 'r7i.large', '-r', 'us-east-1')
    expect([calls() - before, stderr]).toEqual([
      0,
      expect.stringMatching(/Some answers are from .* ago; --fresh asks again/),
    ])
    await account.run('search', 'r7i.large', '-r', 'us-east-1', '--fresh')
    expect(calls() - before).toBe(1)
  })

  it('take options before the command too', async () => {
    const { stdout } = await account.run('--output', 'json', '-r', 'us-east-1', 'search', 'inf2')
    expect(JSON.parse(stdout)).toMatchObject({ results: [{ instance_type: 'inf2.xlarge' }] })
  })

  it('draw a progress line only on a terminal, and on stderr', async () => {
    expect((await account.run('search', 'inf2', '--fresh')).stderr).not.toContain('Asking')
  })
})

describe('truffle list', () => {
  it('lists families with their largest type', async () => {
    const { results } = await account.json('list')
    expect(results.find((row) => row['family'] === 'p5')).toMatchObject({
      instance_type: 'p5.48xlarge',
      region: 'us-east-1',
      gpus: 8,
      gpu_model: 'H100',
      efa_interfaces: 32,
      relative_speed: 2.12,
      on_demand_price: 55.04,
    })
  })

  it('lists accelerators without credentials', async () => {
    const calls = account.cloud.journal.calls().length
    const { results } = await account.json('list', '--accelerators')
    expect(results.find((row) => row['accelerator'] === 'A100')).toMatchObject({
      memory_gb: 40,
      relative_speed: 1,
    })
    expect(account.cloud.journal.calls()).toHaveLength(calls)
  })
})

it('truffle version and completion need no AWS', async () => {
  expect(await account.run('version')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
  })
  const { stdout } = await account.run('completion', 'bash')
  expect(stdout).toContain('complete -o default -F _truffle truffle')
  expect(stdout).toMatch(/search\) flags='.*--min-memory.*'/)
  expect(stdout).not.toContain('crucible')
})
