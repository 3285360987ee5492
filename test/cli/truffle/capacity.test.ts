import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { homeOf, removeDevNote, writeDevNote } from '../../../client/config'
import { HOUR_MS } from '../../../core/time/time'
import { testFolder } from '../../support/folders'
import { hasTerraform, hasTerraformParser, readTerraform, unformatted } from '../../support/terraform'
import { TruffleAccount } from './account'

jest.setTimeout(60_000)

let account: TruffleAccount
const startMs = Date.now()

beforeAll(async () => {
  account = await TruffleAccount.open({
    reservations: [
      { kind: 'on-demand', type: 'inf2.xlarge', zone: 'us-east-1a', count: 32 },
      { kind: 'on-demand', type: 'g6.xlarge', zone: 'us-west-2a', count: 64 },
      { kind: 'on-demand', type: 'm7i.large', zone: 'eu-west-1b', count: 3 },
      { kind: 'on-demand', type: 'g6.xlarge', zone: 'us-west-2a', count: 50, ends: '48h' },
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 32, ends: '168h' },
      {
        kind: 'capacity-block',
        type: 'trn1.32xlarge',
        zone: 'us-west-2b',
        count: 16,
        starts: '24h',
        ends: '360h',
        payment: 'succeeds',
      },
    ],
    blockOfferings: [
      { type: 'p5.48xlarge', zone: 'us-east-1a', count: 64, usdPerInstanceHour: 31.5 },
      { type: 'p5.48xlarge', zone: 'us-west-2b', count: 16, usdPerInstanceHour: 29 },
    ],
  })
})
afterAll(() => account.close())

describe('truffle capacity', () => {
  it('lists on-demand reservations, and says that they are billed whether used or not', async () => {
    const { exitCode, stdout, stderr } = await account.run('capacity')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/Capacity Reservation Summary \(ODCRs\):\n {3}Total Reservations: 4\n/)
    expect(stdout).toContain('Instance Types: 3 (g6.xlarge, inf2.xlarge, m7i.large)')
    expect(stdout).toContain('Total Capacity: 149 instances\n   Available: 149 instances (100.0% free)')
    // 32 x 0.7582 + 114 x 0.8048 + 3 x 0.1008
    expect(stdout).toContain('Cost: $116.31/h, billed whether used or not; unused: $116.31/h')
    expect(stdout).not.toContain('p5.48xlarge')
    expect(stderr).toContain('billed at the on-demand price, used or not')
  })

  it('never mixes up reservations and blocks', async () => {
    const { results: odcrs } = await account.json('capacity', '--odcr')
    const { results: blocks, summary } = await account.json('capacity', '--blocks')
    expect(new Set(odcrs.map((row) => row['reservation_type']))).toEqual(new Set(['odcr']))
    expect(
      blocks.map((row) => [row['reservation_type'], row['instance_type'], row['instance_count']]),
    ).toEqual([
      ['capacity-block', 'p5.48xlarge', 32],
      ['capacity-block', 'trn1.32xlarge', 16],
    ])
    expect(summary).toMatchObject({ total: 2, total_capacity: 48, available_capacity: 32 })
  })

  it('has the fields that scripts know, and when machines of a block begin to be ended', async () => {
    const { results } = await account.json('capacity', '--blocks', '--instance-types', 'p5.48xlarge')
    const [block] = results as unknown as [Record<string, string>]
    expect(block).toMatchObject({
      region: 'us-east-1',
      availability_zone: 'us-east-1a',
      state: 'active',
      duration_hours: 168,
      ultra_cluster_placement: true,
      reservation_fee: null,
      available_capacity: 32,
      capacity_block_id: expect.stringMatching(/^cb-/),
      reservation_id: expect.stringMatching(/^cr-/),
    })
    expect(Date.parse(block['end_date']!) - Date.parse(block['usable_until']!)).toBe(HOUR_MS / 2)
  })

  it.each([
    ['accelerated types', ['--gpu-only'], ['inf2.xlarge', 'g6.xlarge', 'g6.xlarge']],
    ['types by glob', ['--instance-types', 'm7i.*,inf*'], ['m7i.large', 'inf2.xlarge']],
    ['room in one reservation', ['--min-capacity', '40'], ['g6.xlarge', 'g6.xlarge']],
    ['a zone', ['--az', 'eu-west-1b'], ['m7i.large']],
    ['a Region', ['--regions', 'us-east-1'], ['inf2.xlarge']],
  ])('finds reservations by %s', async (_what, args, expected) => {
    const { results } = await account.json('capacity', ...args)
    expect(results.map((row) => row['instance_type'])).toEqual(expected)
  })

  it('ends with 3 when nothing fits, and says what several reservations have together', async () => {
    const { exitCode, stdout, stderr } = await account.run(
      'capacity',
      '--instance-types',
      'g6.xlarge',
      '--min-capacity',
      '100',
    )
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: 'No on-demand capacity reservation fits.\n' })
    expect(stderr).toContain('those of g6.xlarge in us-west-2a have room for 114 together')
  })

  it('counts a paid block that has not begun as active, but not as available', async () => {
    const states = async (flag: string): Promise<unknown[]> =>
      (await account.json('capacity', '--blocks', flag)).results.map((row) => row['state'])
    // Its payment takes a moment here.
    let active: unknown[] = []
    while (active.length < 2) active = await states('--active-only')
    expect(active).toEqual(['active', 'scheduled'])
    expect(await states('--available-only')).toEqual(['active'])
    const { results, summary } = await account.json('capacity', '--blocks')
    expect(results.map((row) => row['available_capacity'])).toEqual([32, 0])
    expect(summary).toMatchObject({ available_capacity: 32 })
    const { stdout } = await account.run('capacity', '--blocks')
    expect(stdout).toContain('Available: 32 instances')
    expect(stdout).toMatch(/^trn1\.32xlarge +16 +0 /m)
  })

  it('says in each format that the account is simulated', async () => {
    const home = homeOf(account.environment)
    const { endpoint: url, controlKey } = account.cloud
    const cloud = { url, simulated: ['ec2'], controlKey }
    const note = { pid: process.pid, address: 'localhost:1', uiUrl: '', cloud }
    writeDevNote(home, note)
    try {
      const { notes } = await account.json('capacity', '--blocks')
      expect(notes[0]).toMatch(/^Simulated: ec2 of `crucible dev --sim`/)
      expect((await account.run('capacity', '--blocks')).stderr).toMatch(/^Simulated: ec2 /m)
      expect((await account.json('version')).notes).toEqual([])
    } finally {
      removeDevNote(home, note)
    }
  })

  it('shows how reservations are placed in the network', async () => {
    const { results, topology } = await account.json(
      'capacity',
      '--topology',
      '--instance-types',
      'p5.48xlarge',
    )
    expect([topology, results[0]!['network_nodes']]).toEqual([
      true,
      expect.arrayContaining([expect.stringMatching(/^nn-/)]),
    ])
    const { stdout } = await account.run('capacity', '--topology', '--instance-types', 'p5.48xlarge')
    expect(stdout).toMatch(
      /^us-east-1a\n {2}nn-\w+\n {4}nn-\w+\n {6}nn-\w+\n {8}cr-\w+ {2}p5.48xlarge {2}active\n$/,
    )
  })
})

describe('truffle capacity --blocks --offerings', () => {
  const asked = ['capacity', '--blocks', '--offerings', '--instance-types', 'p5.48xlarge']

  it('lists what can be bought, with its price per day and instance-hour', async () => {
    const { results } = await account.json(...asked, '--count', '32', '--days', '7')
    expect(new Set(results.map((row) => row['availability_zone']))).toEqual(new Set(['us-east-1a']))
    const exact = results.find((row) => Number(row['duration_hours']) === 168)
    expect(exact).toMatchObject({
      instance_count: 32,
      upfront_fee: 169_344,
      currency_code: 'USD',
      price_per_day: 24_192,
      price_per_instance_hour: 31.5,
      ultra_cluster_placement: true,
      short_hours: 0.5,
      price_per_useful_hour: expect.closeTo(169_344 / 32 / 167.5, 4),
      reserve_command: expect.stringContaining('reserve --type p5.48xlarge --count 32 --for 7d'),
      purchase_command: expect.stringMatching(
        /^aws ec2 purchase-capacity-block --capacity-block-offering-id cb-/,
      ),
    })
    for (const row of results) expect(row['end_date']).toMatch(/T11:30:00Z$/)
  })

  it('says what the search did not cover', async () => {
    const { not_covered } = await account.json(...asked, '--count', '32', '--days', '7')
    const words = (not_covered as string[]).join(' ')
    for (const part of [
      'Only blocks of 7 days',
      '8 weeks ahead',
      'at most 6 blocks',
      'Local Zones',
      'narrow the dates',
    ])
      expect(words).toContain(part)
    expect(words).toMatch(/There may be more in us-east-1/)
  })

  it('keeps to the dates', async () => {
    const day = (days: number): string => new Date(startMs + days * 24 * HOUR_MS).toISOString().slice(0, 10)
    const { results } = await account.json(
      ...asked,
      '--days',
      '2',
      '--start-after',
      day(10),
      '--start-before',
      day(13),
    )
    expect(results.length).toBeGreaterThan(0)
    for (const row of results) {
      expect(String(row['start_date']) >= day(10)).toBe(true)
      expect(String(row['start_date']) <= day(13)).toBe(true)
    }
  })

  it('rounds to a length that AWS sells, and says so', async () => {
    const { days, notes } = await account.json(...asked, '--days', '15')
    expect([days, notes[0]]).toEqual([21, expect.stringContaining('searched 21 instead of 15')])
  })

  it.each([
    ['more instances than a block has', [...asked, '--count', '65'], /at most 64 instances/],
    ['more days than AWS sells', [...asked, '--days', '183'], /182 days at most/],
    ['a date of the past', [...asked, '--start-before', '2020-01-01'], /2020-01-01 has passed/],
    ['a date that does not exist', [...asked, '--start-after', '2027-02-30'], /Write a date such as/],
    [
      'dates the wrong way round',
      [...asked, '--start-after', '2030-01-02', '--end-by', '2030-01-01'],
      /is later than/,
    ],
    [
      'offerings of on-demand reservations',
      ['capacity', '--odcr', '--offerings'],
      /cannot be combined with --odcr/,
    ],
    [
      'days of what is owned',
      ['capacity', '--blocks', '--days', '7'],
      /--days requires --blocks --offerings/,
    ],
    ['room in what is for sale', [...asked, '--available-only'], /applies to own reservations/],
  ])('refuses %s', async (_what, args, words) => {
    expect(await account.run(...args)).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(words),
    })
  })

  it('ends with 3 for a type that no Region sells as blocks', async () => {
    const { exitCode, stderr } = await account.run(
      'capacity',
      '--blocks',
      '--offerings',
      '--instance-types',
      'g6.xlarge',
    )
    expect({ exitCode, stderr }).toEqual({
      exitCode: 3,
      stderr: expect.stringContaining(
        'No Capacity Blocks of these types are sold in eu-west-1, us-east-1, us-west-2.',
      ),
    })
  })
})

;(hasTerraformParser && hasTerraform ? describe : describe.skip)(
  'truffle capacity --output terraform',
  () => {
    it.each([
      ['own reservations', ['--odcr']],
      ['own blocks', ['--blocks']],
      ['both', ['--odcr', '--blocks']],
      ['nothing', ['--odcr', '--instance-types', 'x1.32xlarge']],
      [
        'a reservation to create',
        ['--odcr', '--instance-types', 'p4d.24xlarge', '--az', 'us-east-1b', '--min-capacity', '4'],
      ],
      [
        'a purchase',
        ['--blocks', '--offerings', '--instance-types', 'p5.48xlarge', '--count', '4', '--days', '7'],
      ],
    ])('of %s is well formed', async (_what, args) => {
      const { stdout } = await account.run('capacity', ...args, '--output', 'terraform')
      const folder = join(testFolder('terraform'), 'capacity')
      mkdirSync(folder)
      writeFileSync(join(folder, 'main.tf'), stdout)
      expect(() => readTerraform(folder)).not.toThrow()
      expect(unformatted(folder)).toBe('')
    })
  },
)
