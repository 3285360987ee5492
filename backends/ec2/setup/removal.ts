/** Steps of a removal in addition to the deletion of the stack. */
import * as ec2 from '@aws-sdk/client-ec2'
import { arnIn } from '../../../network/partitions'
import type { AccountPart, Obstacle, Step, Work } from '../../account'
import { call } from '../sdk/errors'
import { TAGS } from '../tags'
import { roleName, type RegionSetup } from './site'
import { deleteStack, failed, partOf } from './stack'
import { isOwnBucket, removeBucket } from './store'

/** The template retains these; set-up itself removes the bucket, and the spot role stays. */
const RETAINED = ['AWS::S3::Bucket', 'AWS::S3::BucketPolicy', 'AWS::IAM::ServiceLinkedRole']

/** Everything that a removal deletes in a Region, in its order. */
export async function removable(site: RegionSetup): Promise<AccountPart[]> {
  return [
    ...(await templatesOf(site)),
    ...site.resources
      .filter(({ ResourceType = '' }) => !RETAINED.includes(ResourceType))
      .map((resource) => partOf(resource, 'there')),
    ...(await bucketOf(site)),
  ]
}

async function bucketOf(site: RegionSetup): Promise<AccountPart[]> {
  const { isHome, bucket } = site
  if (!isHome || !(await isOwnBucket(site))) return []
  return [{ id: bucket, what: 'bucket', name: bucket, state: 'there', remarks: [] }]
}

/** Deletes the launch templates, then the stack, then the bucket. A stack that cannot be deleted keeps the bucket, too. */
export async function removeSite(
  site: RegionSetup,
  { signal, hasData, onStep }: Work & { hasData: boolean },
): Promise<void> {
  for (const part of await templatesOf(site)) onStep({ part, ...(await removeTemplate(site, part)) })
  const { stack } = site
  if (stack !== undefined && !(await deleteStack(site, stack, onStep))) return
  for (const part of await bucketOf(site))
    onStep({
      part,
      ...(await removeBucket(site, hasData).catch((error: unknown) => {
        if (signal.aborted) throw error
        return failed(error)
      })),
    })
}

async function removeTemplate(
  { clients, signal }: RegionSetup,
  { id }: AccountPart,
): Promise<Omit<Step, 'part'>> {
  const command = new ec2.DeleteLaunchTemplateCommand({ LaunchTemplateId: id })
  try {
    await call(signal, () => clients.ec2.send(command, { abortSignal: signal }))
    return { did: 'removed' }
  } catch (error) {
    if (signal.aborted) throw error
    return failed(error)
  }
}

/** The launch templates of workers that use the profile of this set-up. Those of other set-ups have the same tag and other profiles. */
async function templatesOf({ clients, prefix, signal }: RegionSetup): Promise<AccountPart[]> {
  const profile = roleName(prefix, 'machine')
  const Filters = [{ Name: 'tag-key', Values: [TAGS.deployment] }]
  return call(signal, async () => {
    const found: AccountPart[] = []
    const pages = ec2.paginateDescribeLaunchTemplates({ client: clients.ec2 }, { Filters })
    for await (const { LaunchTemplates = [] } of pages)
      for (const { LaunchTemplateId: id = '', LaunchTemplateName: name = id } of LaunchTemplates) {
        const { LaunchTemplateVersions = [] } = await clients.ec2.send(
          new ec2.DescribeLaunchTemplateVersionsCommand({ LaunchTemplateId: id }),
          { abortSignal: signal },
        )
        const isOfProfile = LaunchTemplateVersions.some(
          ({ LaunchTemplateData: data }) => data?.IamInstanceProfile?.Name === profile,
        )
        if (isOfProfile) found.push({ id, what: 'launch template', name, state: 'there', remarks: [] })
      }
    return found
  })
}

const ALIVE = ['pending', 'running', 'stopping', 'stopped']
const NAMED_MAX = 5

export async function obstaclesTo(site: RegionSetup): Promise<Obstacle[]> {
  const ids = (await machinesOf(site)).map(({ InstanceId = '' }) => InstanceId)
  if (ids.length === 0) return []
  const more = ids.length > NAMED_MAX ? ', ...' : ''
  return [
    {
      message: `${ids.length} of its machines are still there: ${ids.slice(0, NAMED_MAX).join(', ')}${more}`,
      remedy:
        'Cancel their jobs (`crucible list`, `crucible cancel JOB`), or remove orphaned resources (`crucible gc`).',
    },
  ]
}

/** Machines that need what is to be removed: those with the profile, and those of deployments that have no profile or use the security group. */
async function machinesOf({
  clients,
  signal,
  account,
  prefix,
  ...site
}: RegionSetup): Promise<ec2.Instance[]> {
  const profile = arnIn(site.region, `iam::${account}:instance-profile/${roleName(prefix, 'machine')}`)
  const groups = site.resources.flatMap(({ ResourceType, PhysicalResourceId }) =>
    ResourceType === 'AWS::EC2::SecurityGroup' ? PhysicalResourceId : [],
  )
  const isInTheWay = ({ IamInstanceProfile, SecurityGroups = [], Tags = [] }: ec2.Instance): boolean =>
    IamInstanceProfile?.Arn === profile ||
    (Tags.some(({ Key }) => Key === TAGS.deployment) &&
      (IamInstanceProfile === undefined || SecurityGroups.some(({ GroupId }) => groups.includes(GroupId))))
  const Filters = [{ Name: 'instance-state-name', Values: ALIVE }]
  return call(signal, async () => {
    const found: ec2.Instance[] = []
    for await (const { Reservations = [] } of ec2.paginateDescribeInstances(
      { client: clients.ec2 },
      { Filters },
    ))
      found.push(...Reservations.flatMap(({ Instances = [] }) => Instances).filter(isInTheWay))
    return found
  })
}
