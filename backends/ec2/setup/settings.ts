import { defined } from '../../../core/defined'
interface Made {
  region: string
  /** All Regions of machines, if there are several. */
  regions?: readonly string[]
  bucket: string
  profile: string
  /** ARN of the role behind the grants. */
  grantRole: string
  /** ARN of the role that buys, if workers may take it. */
  buyerRole?: string
  /** Id of the security group, once it exists; ids separated by commas for several Regions. */
  group?: string
  /** Ids, if machines do not use the default network. */
  subnets?: readonly string[]
}

/** The environment that client and workers need to use an account after set-up. */
export function settingsOf({
  region,
  regions = [],
  bucket,
  profile,
  grantRole,
  buyerRole,
  group,
  subnets = [],
}: Made): Record<string, string> {
  return {
    CRUCIBLE_BACKENDS: 'ec2',
    ...(regions.length > 1 ? { CRUCIBLE_EC2_REGIONS: regions.join(',') } : { CRUCIBLE_EC2_REGION: region }),
    CRUCIBLE_EC2_PROFILE: profile,
    CRUCIBLE_GRANT_ROLE: grantRole,
    ...defined({ CRUCIBLE_EC2_BUYER_ROLE: buyerRole, CRUCIBLE_EC2_SECURITY_GROUPS: group }),
    ...(subnets.length === 0 ? {} : { CRUCIBLE_EC2_SUBNETS: subnets.join(',') }),
    CRUCIBLE_STORE: `s3://${bucket}?region=${region}`,
  }
}
