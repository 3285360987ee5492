/** What people type by mistake: each gets an answer that says what to type instead, or what they meant. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { TruffleAccount } from './account'

jest.setTimeout(60_000)

let account: TruffleAccount

beforeAll(async () => {
  account = await TruffleAccount.open({
    reservations: [{ kind: 'on-demand', type: 'g5.xlarge', zone: 'us-east-1b', count: 4 }],
    blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 8, usdPerInstanceHour: 30 }],
  })
})
afterAll(() => account.close())

describe('a mistake is answered with what to type instead:', () => {
  it.each<[string, number, RegExp]>([
    ['capcity', 2, /Did you mean capacity\?/],
    ['capacity --block', 2, /Did you mean --blocks\?/],
    ['buy', 2, /truffle buys nothing/],
    ['capacity --regions us-east-1 us-west-2', 2, /with commas: --regions us-east-1,us-west-2/],
    ['capacity --instance-types p5.48xlarge p4d.24xlarge', 2, /cannot place all of these: .*p4d\.24xlarge/],
    ['validate p5.48xlarge 32 7', 2, /--instance-type p5\.48xlarge --count 32 --days 7/],
    [
      'validate --instance-type p5 --count 4',
      2,
      /p5 can be several instance types\.\nName one .*p5\.4xlarge, p5\.48xlarge/,
    ],
    ['validate h100', 2, /h100 can be several/],
    ['validate p5.48xlarge --start tomorrow', 2, /Write a date such as 2027-01-15/],
    ['validate p5.48xlarge --start 01/15/2027', 2, /Write a date such as 2027-01-15/],
    ['az us-east-1a', 2, /us-east-1a is a zone, not a machine type/],
    ['search us-east-1', 2, /us-east-1 is a Region, not a machine type/],
    ['search g6 --regions us-east-1a', 2, /looks like a zone: --regions us-east-1 asks its Region/],
    ['search gpus', 5, /For all types with accelerators: `truffle list`/],
    ['search p5.49xlarge', 5, /Similar ones: .*p5\.48xlarge/],
    ['capacity --instance-types p5.48xlrage', 5, /No instance type matches p5\.48xlrage/],
    [
      'capacity --blocks --offerings --instance-types p5.48xlrage',
      5,
      /No instance type matches p5\.48xlrage/,
    ],
    [
      'capacity --regions eu-west-9',
      2,
      /There is no Region eu-west-9 for this account\.\nWrite one such as eu-west-1/,
    ],
    ['capacity --output xml', 2, /Allowed choices are table, json, yaml, csv, terraform/],
    ['search g6 --output terraform', 2, /Allowed choices are table, json, yaml, csv\./],
    ['capacity --odcr --offerings', 2, /cannot be combined with --odcr/],
    ['capacity --blocks --offerings --topology', 2, /--topology applies to own reservations/],
    ['capacity --blocks --offerings --days 0', 2, /Write days, such as 7/],
    ['spot g6 --max-price -1', 2, /Write dollars per hour/],
    ['spot', 2, /Missing required argument 'pattern'/],
    ['search g6 --min-memory 16x', 2, /Write GiB, such as 64/],
    ['search g6 --architecture sparc', 2, /Write x86_64 or arm64/],
    ['capacity --timeout 0', 2, /Write more than 0/],
    ['capacity --profile', 2, /argument missing/],
    ['quotas nothing', 2, /No vCPU quota is known for nothing/],
    ['advise --purpose training', 2, /--scheduled is missing/],
  ])('truffle %s', async (line, exitCode, words) => {
    expect(await account.run(...line.split(' '))).toEqual({
      exitCode,
      stdout: '',
      stderr: expect.stringMatching(words),
    })
  })
})

describe('a near miss is understood:', () => {
  it.each<[string, RegExp]>([
    ['capacity --region us-east-1 --output JSON', /"reservation_id": "cr-/],
    ['capacity-blocks --instance-type p5.48xlarge', /Capacity Blocks for sale: 1 for 1 day/],
    ['capacity --offerings --instance-types p5.48xlarge', /Capacity Blocks for sale/],
    ['find p5.48xlarge,p4d.24xlarge', /p4d\.24xlarge/],
    ['search P5.48XLARGE', /p5\.48xlarge/],
    ['spot g6.xlarge --max-price $5', /g6\.xlarge/],
    ['validate p4d.24xlarge --days 7d --output csv', /^kind,/],
    ['quotas H100 --regions us-east-1', /P +on-demand/],
    ['quotas all --regions us-east-1', /Trn +spot/],
    ['list p5 --regions us-east-1', /p5\.48xlarge/],
    ['list gpus', /H100/],
    ['spot help', /Usage: truffle spot/],
    ['advise inference --machines 20 --scaling no', /Production inference API/],
    ['capacity --timeout 30', /g5\.xlarge/],
  ])('truffle %s', async (line, words) => {
    const { stdout, stderr } = await account.run(...line.split(' '))
    expect([stdout, stderr]).toEqual([expect.stringMatching(words), expect.not.stringContaining('error:')])
  })
})

describe('help and version have the format that was asked for:', () => {
  it.each<[string, RegExp]>([
    ['--help', /^Finds capacity of EC2[^]*Usage: truffle COMMAND/],
    ['capacity --help', /^Usage: truffle capacity/],
    ['capacity --help --json', /^\{\n {2}"schema": "truffle\/1",\n {2}"help": "Usage: truffle capacity[^"]/],
    ['help spot --output yaml', /^schema: truffle\/1\nhelp: [^]*Usage: truffle spot/],
    ['--help --output csv', /^help\r\n"Finds capacity of EC2/],
    ['spot --help -o csv', /^help\r\n"Usage: truffle spot/],
    ['capacity --help --output terraform', /^Usage: truffle capacity/],
    ['--version', /^\d+\.\d+\.\d+\S*\n$/],
    ['--version --output csv', /^version\r\n\d+\.\d+\.\d+\S*\r\n$/],
    ['--version --json', /^\{\n {2}"schema": "truffle\/1",\n {2}"version": "\d/],
  ])('truffle %s', async (line, pattern) => {
    expect(await account.run(...line.split(' '))).toEqual({
      exitCode: 0,
      stderr: '',
      stdout: expect.stringMatching(pattern),
    })
  })
})
