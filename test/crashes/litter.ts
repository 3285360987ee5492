/** What lost orders leave behind. */
import {
  CreateLaunchTemplateCommand,
  EC2Client,
  RunInstancesCommand,
  TerminateInstancesCommand,
  type RunInstancesCommandInput,
  type Tag,
} from '@aws-sdk/client-ec2'
import { DEFAULT_IMAGE } from '../backends/ec2/harness'
import { until } from '../support/until'
import type { Site } from './site'

/** Does something to the cloud of a site that is none of its processes' doing. */
export async function asOther<T>(site: Site, work: (client: EC2Client) => Promise<T>): Promise<T> {
  const { endpoint, region, credentials } = site.options.ground.cloud
  const client = new EC2Client({ endpoint, region, credentials })
  try {
    return await work(client)
  } finally {
    client.destroy()
  }
}

/** A volume that nothing uses, a request for a spot machine that leads to none, and a launch template. */
export async function litter(site: Site): Promise<void> {
  const { cloud } = site.options.ground
  cloud.addFault({ fault: 'request-dangles', where: { tags: { 'crucible:job': JOB } } })
  const Ebs = { VolumeSize: 50, DeleteOnTermination: false }
  await asOther(site, async (client) => {
    const InstanceIds = [
      await run(client, tagsOf(site, 1), { BlockDeviceMappings: [{ DeviceName: '/dev/sdf', Ebs }] }),
      await run(client, tagsOf(site, 2), { InstanceMarketOptions: { MarketType: 'spot' } }),
    ]
    // Until the cloud's own words know them.
    await until(() => client.send(new TerminateInstancesCommand({ InstanceIds })).then(...YES_OR_NO))
    await client.send(
      new CreateLaunchTemplateCommand({
        LaunchTemplateName: 'stray',
        LaunchTemplateData: { InstanceType: TYPE },
        TagSpecifications: [{ ResourceType: 'launch-template', Tags: tagsOf(site, 1).slice(0, 1) }],
      }),
    )
    const areEnded = () =>
      cloud.instances().every(({ id, state }) => !InstanceIds.includes(id) || state === 'terminated')
    await until(areEnded)
  })
}

/** A machine that runs without an owner. */
export function leaveMachine(site: Site): Promise<string> {
  return asOther(site, (client) => run(client, tagsOf(site, 3)))
}

const TYPE = 'g5.xlarge'
const JOB = 'job-gone'
const YES_OR_NO = [() => true, () => false] as const

function tagsOf({ options: { deployment } }: Site, attempt: number): Tag[] {
  return [
    { Key: 'crucible:deployment', Value: deployment },
    { Key: 'crucible:job', Value: JOB },
    { Key: 'crucible:attempt', Value: `${JOB}-${attempt}` },
  ]
}

async function run(
  client: EC2Client,
  Tags: Tag[],
  input: Partial<RunInstancesCommandInput> = {},
): Promise<string> {
  const { Instances } = await client.send(
    new RunInstancesCommand({
      ImageId: `resolve:ssm:${DEFAULT_IMAGE.replace('{arch}', 'x86_64')}`,
      InstanceType: TYPE,
      MinCount: 1,
      MaxCount: 1,
      TagSpecifications: (['instance', 'volume'] as const).map((ResourceType) => ({ ResourceType, Tags })),
      ...input,
    }),
  )
  return Instances![0]!.InstanceId!
}
