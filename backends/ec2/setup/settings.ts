import { arnIn } from '../../../network/partitions'
import { roleName, type Place, type RoleOf, type RegionSetup } from './site'

/** The environment that client and workers need to use an account after set-up. What is not created yet is left out. */
export function settingsOf({ sites, letsWorkersBuy }: Place): Record<string, string> {
  const [home] = sites
  const { prefix, bucket, region, tags } = home
  const idsOf = (type: string): string[] =>
    sites
      .flatMap(({ resources }) => resources)
      .flatMap(({ ResourceType, PhysicalResourceId }) => (ResourceType === type && PhysicalResourceId) || [])
  const groups = idsOf('AWS::EC2::SecurityGroup')
  const subnets = idsOf('AWS::EC2::Subnet')
  const settings = {
    CRUCIBLE_BACKENDS: 'ec2',
    ...(sites.length > 1
      ? { CRUCIBLE_EC2_REGIONS: sites.map((site) => site.region).join(',') }
      : { CRUCIBLE_EC2_REGION: region }),
    CRUCIBLE_EC2_PROFILE: roleName(prefix, 'machine'),
    CRUCIBLE_GRANT_ROLE: roleArn(home, 'grant'),
    CRUCIBLE_EC2_BUYER_ROLE: letsWorkersBuy ? roleArn(home, 'buyer') : '',
    CRUCIBLE_EC2_SECURITY_GROUPS: groups.join(','),
    CRUCIBLE_EC2_SUBNETS: subnets.join(','),
    CRUCIBLE_EC2_TAGS: Object.entries(tags)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
    CRUCIBLE_STORE: `s3://${bucket}?region=${region}`,
  }
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== ''))
}

function roleArn({ region, account, prefix, parameters }: RegionSetup, of: RoleOf): string {
  return arnIn(region, `iam::${account}:role${parameters['RolePath'] ?? '/'}${roleName(prefix, of)}`)
}
