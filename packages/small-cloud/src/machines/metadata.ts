/** A text, or a function that is called at each request. */
export type MetadataValue = string | (() => string)

/**
 * The values of the metadata service, by path below `/latest/meta-data/`, such as `placement/region`, `spot/instance-action`,
 * `tags/instance/Name` or `iam/security-credentials/ROLE`. Paths that begin with `dynamic/` are below `/latest/` instead. A missing path,
 * or undefined, gives 404. Folders list their content.
 */
export type MachineMetadata = Record<string, MetadataValue | undefined>

export interface MachineFacts {
  instanceId: string
  instanceType: string
  imageId: string
  accountId: string
  region: string
  /** Zone such as `us-east-1a`. */
  zone: string
  /** Zone id such as `use1-az4`. */
  zoneId: string
  privateIp: string
  architecture: 'x86_64' | 'arm64'
  capacityType: 'on-demand' | 'spot' | 'capacity-block'
  launchedAt: Date
  /** Tags; only if the machine may read them. */
  tags?: Record<string, string>
  securityGroups?: string[]
  subnetId?: string
  vpcId?: string
}

/** Returns the metadata common to all machines of this kind; the owner adds credentials, tags and notices. */
export function metadataOf(facts: MachineFacts): MachineMetadata {
  const { instanceId, instanceType, imageId, region, zone, zoneId, privateIp } = facts
  const host = `ip-${privateIp.replaceAll('.', '-')}.${region === 'us-east-1' ? 'ec2' : `${region}.compute`}.internal`
  const mac = macOf(privateIp)
  const network = `network/interfaces/macs/${mac}`
  const metadata: MachineMetadata = {
    'ami-id': imageId,
    'ami-launch-index': '0',
    hostname: host,
    'instance-action': 'none',
    'instance-id': instanceId,
    'instance-life-cycle': facts.capacityType,
    'instance-type': instanceType,
    'local-hostname': host,
    'local-ipv4': privateIp,
    mac,
    [`${network}/device-number`]: '0',
    [`${network}/local-ipv4s`]: privateIp,
    [`${network}/mac`]: mac,
    'placement/availability-zone': zone,
    'placement/availability-zone-id': zoneId,
    'placement/region': region,
    profile: 'default-hvm',
    'services/domain': 'amazonaws.com',
    'services/partition': 'aws',
    'dynamic/instance-identity/document': identityOf(facts),
  }
  if (facts.securityGroups !== undefined) metadata['security-groups'] = facts.securityGroups.join('\n')
  if (facts.subnetId !== undefined) metadata[`${network}/subnet-id`] = facts.subnetId
  if (facts.vpcId !== undefined) metadata[`${network}/vpc-id`] = facts.vpcId
  for (const [key, value] of Object.entries(facts.tags ?? {})) metadata[`tags/instance/${key}`] = value
  return metadata
}

function identityOf(facts: MachineFacts): string {
  const document = {
    accountId: facts.accountId,
    architecture: facts.architecture,
    availabilityZone: facts.zone,
    billingProducts: null,
    devpayProductCodes: null,
    marketplaceProductCodes: null,
    imageId: facts.imageId,
    instanceId: facts.instanceId,
    instanceType: facts.instanceType,
    kernelId: null,
    pendingTime: atSecond(facts.launchedAt),
    privateIp: facts.privateIp,
    ramdiskId: null,
    region: facts.region,
    version: '2017-09-30',
  }
  return JSON.stringify(document, undefined, 2)
}

function macOf(privateIp: string): string {
  return ['0a', 'ff', ...privateIp.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))].join(
    ':',
  )
}

export interface SessionCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string
  updatedAt: Date
  expiresAt: Date
}

/** The document below `iam/security-credentials/ROLE`, which the providers of SDKs read. */
export function credentialsDocument(credentials: SessionCredentials): string {
  return JSON.stringify(
    {
      Code: 'Success',
      LastUpdated: atSecond(credentials.updatedAt),
      Type: 'AWS-HMAC',
      AccessKeyId: credentials.accessKeyId,
      SecretAccessKey: credentials.secretAccessKey,
      Token: credentials.sessionToken,
      Expiration: atSecond(credentials.expiresAt),
    },
    undefined,
    2,
  )
}

/** The document below `iam/info`. */
export function instanceProfileDocument(profile: { arn: string; id: string; updatedAt: Date }): string {
  return JSON.stringify(
    {
      Code: 'Success',
      LastUpdated: atSecond(profile.updatedAt),
      InstanceProfileArn: profile.arn,
      InstanceProfileId: profile.id,
    },
    undefined,
    2,
  )
}

/** The document below `spot/instance-action`; a line below `spot/termination-time` has the same instant. */
export function spotNotice(
  at: Date,
  action: 'terminate' | 'stop' | 'hibernate' = 'terminate',
): MachineMetadata {
  const time = atSecond(at)
  return {
    'spot/instance-action': JSON.stringify({ action, time }),
    ...(action === 'terminate' && { 'spot/termination-time': time }),
  }
}

/** The document below `events/recommendations/rebalance`. */
export function rebalanceNotice(at: Date): MachineMetadata {
  return { 'events/recommendations/rebalance': JSON.stringify({ noticeTime: atSecond(at) }) }
}

/** The service reports whole seconds. */
function atSecond(at: Date): string {
  return at.toISOString().replace(/\.\d+Z$/, 'Z')
}
