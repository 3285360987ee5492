import { describe, expect, it } from '@jest/globals'
import { EC2_SETTINGS, parseEc2Config } from '../../../backends/ec2/config'
import { DEFAULT_IMAGE } from './harness'

const problemsOf = (settings: Record<string, string>): string[] => {
  const parsed = parseEc2Config(settings)
  return 'problems' in parsed ? parsed.problems : []
}

describe('the settings of EC2', () => {
  it('need nothing but a Region', () => {
    expect(parseEc2Config({ AWS_REGION: 'eu-west-1' })).toEqual({
      config: {
        region: 'eu-west-1',
        regions: ['eu-west-1'],
        subnets: 'default',
        securityGroups: { name: 'crucible-machine' },
        profile: 'crucible-machine',
        image: DEFAULT_IMAGE,
        neuronImage: '/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id',
        types: ['g*', 'p*', 'c7i.*', 'm7i.*', 'r7i.*', 'inf2.*', 'trn1*', 'trn2.*'],
        hasSpot: true,
        reservations: 'named',
        diskGiB: 100,
        registerWithinMs: 600_000,
        staleForMs: 300_000,
        templatesKeptMs: 604_800_000,
        hasGrants: true,
        tags: {},
      },
    })
  })

  it('are read, each of them', () => {
    const written = {
      CRUCIBLE_EC2_REGION: 'us-west-2',
      CRUCIBLE_EC2_REGIONS: 'us-west-2, us-east-1',
      CRUCIBLE_EC2_SUBNETS: 'subnet-1a, subnet-2b',
      CRUCIBLE_EC2_SECURITY_GROUPS: 'sg-12ab',
      CRUCIBLE_EC2_PROFILE: 'ml-node',
      CRUCIBLE_EC2_IMAGE: 'ami-0123456789abcdef0',
      CRUCIBLE_EC2_NEURON_IMAGE: 'ami-0123456789abcdef1',
      CRUCIBLE_EC2_TYPES: 'g5.xlarge,p4d.*',
      CRUCIBLE_EC2_SPOT: 'no',
      CRUCIBLE_EC2_RESERVATIONS: 'cr-12ab, cr-34cd',
      CRUCIBLE_EC2_BUYER_ROLE: 'arn:aws:iam::111122223333:role/team/crucible-buyer',
      CRUCIBLE_EC2_TAGS: 'team=ml, cost-center=a b/42',
      CRUCIBLE_EC2_DISK: '250',
      CRUCIBLE_EC2_REGISTER_WITHIN: '90s',
      CRUCIBLE_EC2_STALE_FOR: '2m',
      CRUCIBLE_EC2_TEMPLATES_KEPT: '24h',
      CRUCIBLE_EC2_GRANTS: 'no',
      AWS_ENDPOINT_URL: 'http://127.0.0.1:4566',
    }
    expect(Object.keys(written)).toEqual(EC2_SETTINGS.map(({ name }) => name))
    expect(parseEc2Config({ ...written, AWS_REGION: 'eu-west-1' })).toEqual({
      config: {
        region: 'us-west-2',
        regions: ['us-west-2', 'us-east-1'],
        subnets: ['subnet-1a', 'subnet-2b'],
        securityGroups: { ids: ['sg-12ab'] },
        profile: 'ml-node',
        image: 'ami-0123456789abcdef0',
        neuronImage: 'ami-0123456789abcdef1',
        types: ['g5.xlarge', 'p4d.*'],
        hasSpot: false,
        reservations: ['cr-12ab', 'cr-34cd'],
        buyerRole: 'arn:aws:iam::111122223333:role/team/crucible-buyer',
        tags: { team: 'ml', 'cost-center': 'a b/42' },
        diskGiB: 250,
        registerWithinMs: 90_000,
        staleForMs: 120_000,
        templatesKeptMs: 86_400_000,
        hasGrants: false,
        endpoint: 'http://127.0.0.1:4566',
      },
    })
  })

  it('complain of all that is wrong at once, each with what to write', () => {
    const problems = problemsOf({
      CRUCIBLE_EC2_REGION: 'us-east-1a',
      CRUCIBLE_EC2_REGIONS: 'us-east-1,mars',
      CRUCIBLE_EC2_SUBNETS: 'vpc-1',
      CRUCIBLE_EC2_SECURITY_GROUPS: ',',
      CRUCIBLE_EC2_PROFILE: 'arn:aws:iam::1:instance-profile/x',
      CRUCIBLE_EC2_IMAGE: 'ubuntu',
      CRUCIBLE_EC2_NEURON_IMAGE: 'neuron',
      CRUCIBLE_EC2_TYPES: 'G5',
      CRUCIBLE_EC2_SPOT: 'perhaps',
      CRUCIBLE_EC2_RESERVATIONS: 'some',
      CRUCIBLE_EC2_TAGS: 'team',
      CRUCIBLE_EC2_DISK: '0',
      CRUCIBLE_EC2_REGISTER_WITHIN: '10',
      CRUCIBLE_EC2_STALE_FOR: '0s',
      CRUCIBLE_EC2_TEMPLATES_KEPT: '7d',
      CRUCIBLE_EC2_GRANTS: 'perhaps',
      CRUCIBLE_EC2_BUYER_ROLE: 'crucible-buyer',
      AWS_ENDPOINT_URL: 'localhost:4566',
    })
    expect(problems).toHaveLength(EC2_SETTINGS.length)
    for (const { name } of EC2_SETTINGS)
      expect(problems.find((problem) => problem.startsWith(`${name} is "`))).toMatch(/: write /)
  })

  it('may name several Regions in the place of one, which must be among them', () => {
    const CRUCIBLE_EC2_REGIONS = 'us-west-2,us-east-1,us-west-2'
    expect(parseEc2Config({ AWS_REGION: 'eu-west-1', CRUCIBLE_EC2_REGIONS })).toMatchObject({
      config: { region: 'us-west-2', regions: ['us-west-2', 'us-east-1'] },
    })
    expect(problemsOf({ CRUCIBLE_EC2_REGION: 'eu-west-1', CRUCIBLE_EC2_REGIONS })).toEqual([
      expect.stringContaining('which CRUCIBLE_EC2_REGIONS does not list'),
    ])
  })

  it.each([
    'Name=x',
    'aws:x=1',
    'Crucible:job=x',
    'a/b=1',
    'a b=1',
    '=1',
    '.=1',
    '..=1',
    '_index=1',
    'größe=1',
    'a=*',
    'a=1,a=2',
    `${'a'.repeat(128)}=1`,
  ])('refuse tags that EC2 would refuse, or that are ours: %s', (CRUCIBLE_EC2_TAGS) => {
    const problems = problemsOf({ AWS_REGION: 'us-east-1', CRUCIBLE_EC2_TAGS })
    expect(problems).toEqual([expect.stringMatching(/^CRUCIBLE_EC2_TAGS is .*: write at most 25 such as/)])
  })

  it('ask for a Region where none is named', () => {
    expect(problemsOf({})).toEqual(['CRUCIBLE_EC2_REGION is missing: name a Region, such as us-east-1'])
  })
})
