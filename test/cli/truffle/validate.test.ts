import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { TruffleAccount } from './account'

jest.setTimeout(60_000)

interface ValidateDocument {
  verdict: string
  results: { kind: string }[]
  next_command: string
  quotas: object[]
}

let account: TruffleAccount

beforeAll(async () => {
  account = await TruffleAccount.open({
    reservations: [
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-west-2a', count: 8, ends: '168h' },
    ],
    blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 64, usdPerInstanceHour: 31.5 }],
  })
})
afterAll(() => account.close())

describe('truffle validate', () => {
  it('answers yes with 0, and prints the next command', async () => {
    const { exitCode, stdout } = await account.run(
      'validate',
      '--instance-type',
      'p5.48xlarge',
      '--count',
      '8',
      '--days',
      '7',
    )
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(
      /^Yes: the capacity is available\.\n {3}8x p5\.48xlarge for 7 days, as soon as possible\n/,
    )
    expect(stdout).toContain('nothing more; the block is paid for')
    expect(stdout).toMatch(/^Next: crucible submit job\.yaml --reservation cr-\w+$/m)
  })

  it('answers yes with conditions with 9: what to buy, what it costs, what is owned and too small', async () => {
    const { exitCode, stdout, stderr } = await account.run(
      'validate',
      'p5.48xlarge',
      '--count',
      '32',
      '--days',
      '7',
      '--json',
    )
    const { verdict, results, next_command, quotas } = JSON.parse(stdout) as ValidateDocument
    expect([exitCode, verdict]).toEqual([9, 'conditions'])
    expect(stderr).toContain('A job of Crucible runs on one machine')
    expect(next_command).toMatch(
      /^crucible reservations reserve --type p5.48xlarge --count 32 --for 7d --region us-east-1 --start-by \S+ --max-upfront \d+$/,
    )
    expect(results[0]).toMatchObject({
      kind: 'offering',
      purchase_command: expect.stringMatching(
        /^aws ec2 purchase-capacity-block --capacity-block-offering-id cb-\w+ .* --region us-east-1$/,
      ),
      is_usable: true,
      ultra_cluster_placement: true,
      efa_interfaces: 32,
    })
    const own = results.find(({ kind }) => kind === 'capacity-block')
    expect(own).toMatchObject({ is_usable: false, obstacles: ['it has room for 8 of 32'] })
    expect(quotas).toContainEqual(
      expect.objectContaining({ quota_code: 'L-417A185B', limit_vcpus: 768, vcpus_per_machine: 192 }),
    )
  })

  it('answers no with 3, and says what is missing', async () => {
    const { exitCode, stdout } = await account.run('validate', 'g6.xlarge', '--count', '400')
    expect(exitCode).toBe(3)
    expect(stdout).toContain('No: no capacity fits.')
    expect(stdout).toContain('No Region has vCPU quota for 400 more on demand: `truffle quotas g6.xlarge`.')
  })

  it('does not say no when Regions did not answer', async () => {
    const undo = account.cloud.addFault({
      fault: 'error',
      code: 'UnauthorizedOperation',
      status: 403,
      where: { region: 'us-*-1', action: 'DescribeCapacityReservations' },
    })
    const { exitCode, stderr } = await account.run('validate', 'g6.xlarge', '--count', '400', '--fresh')
    undo()
    expect({ exitCode, stderr }).toEqual({
      exitCode: 4,
      stderr: expect.stringContaining('No answer from us-east-1'),
    })
  })

  it.each([
    ['no type', [], /The instance type is missing/],
    ['two types', ['p5.48xlarge', '--instance-type', 'p4d.24xlarge'], /one instance type at a time/],
    ['a pattern', ['p5.*'], /one instance type at a time/],
    ['a date of the past', ['p5.48xlarge', '--start', '2025-01-15'], /2025-01-15 has passed/],
    ['no machines', ['p5.48xlarge', '--count', '0'], /whole number from 1/],
  ])('refuses %s', async (_what, args, words) => {
    expect(await account.run('validate', ...args)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(words),
    })
  })

  it('names similar types for a type that does not exist', async () => {
    expect(await account.run('validate', 'p5.49xlarge')).toMatchObject({
      exitCode: 5,
      stderr: expect.stringMatching(/No instance type matches p5\.49xlarge[^]*p5\.48xlarge/),
    })
  })
})

describe('truffle advise', () => {
  it('asks at a terminal', async () => {
    account.replies = ['train', 'y', '10', '32', 'n']
    const { exitCode, stdout, stderr } = await account.run('advise')
    account.replies = undefined
    expect({ exitCode, stderr }).toEqual({
      exitCode: 0,
      stderr: expect.stringMatching(/Purpose \(.*Are its dates known\?/),
    })
    expect(stdout).toMatch(/^Distributed training: Capacity Block\n/)
    expect(stdout).toContain('truffle validate --instance-type p5.48xlarge --count 32 --days 10')
  })

  it('takes options elsewhere, and names the missing one', async () => {
    expect(await account.run('advise', '--purpose', 'inference')).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining('--machines is missing'),
    })
    const { results } = await account.json(
      'advise',
      '--purpose',
      'inference',
      '--machines',
      '20',
      '--scaling',
      'yes',
    )
    expect(results[0]).toMatchObject({
      use_case: 'Auto-scaling inference',
      reservation_type: 'odcr',
      commands: [
        'truffle capacity --odcr --instance-types inf2.xlarge --min-capacity 20',
        'truffle quotas inf2.xlarge',
      ],
    })
  })
})
