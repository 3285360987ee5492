import { defined } from '../../../core/defined'
interface Made {
  region: string
  /** All Regions of machines, where there are several. */
  regions?: readonly string[]
  bucket: string
  profile: string
  /** ARN of the role that grants are made from. */
  grantRole: string
  /** Id of the security group, once it is there; ids with commas between them for several Regions. */
  group?: string
  /** Ids, where machines are not to be put into the default network. */
  subnets?: readonly string[]
}

/** What client and workers need in their environment to use an account that was set up. */
export function settingsOf({
  region,
  regions = [],
  bucket,
  profile,
  grantRole,
  group,
  subnets = [],
}: Made): Record<string, string> {
  return {
    CRUCIBLE_BACKENDS: 'ec2',
    ...(regions.length > 1 ? { CRUCIBLE_EC2_REGIONS: regions.join(',') } : { CRUCIBLE_EC2_REGION: region }),
    CRUCIBLE_EC2_PROFILE: profile,
    CRUCIBLE_GRANT_ROLE: grantRole,
    ...defined({ CRUCIBLE_EC2_SECURITY_GROUPS: group }),
    ...(subnets.length === 0 ? {} : { CRUCIBLE_EC2_SUBNETS: subnets.join(',') }),
    CRUCIBLE_STORE: `s3://${bucket}?region=${region}`,
  }
}
