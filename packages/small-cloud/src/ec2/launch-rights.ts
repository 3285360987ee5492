/** Checks whether the caller may run the instances of a launch. */
import { ApiError } from '../wire/errors'
import type { Call } from '../wire/service'
import type { Ec2 } from './ec2'
import type { LaunchPlan } from './launch-plan'

/**
 * Returns the denial of `ec2:RunInstances` on an instance of the launch's type or on its volumes, if any. A fleet launches with its caller's
 * permissions, so a policy that denies types, untagged or unencrypted ones refuses the overrides of a fleet and not the fleet.
 */
export function launchDenial(ec2: Ec2, call: Call, plan: LaunchPlan): ApiError | undefined {
  const disks = (plan.fields.BlockDeviceMapping ?? []).flatMap((disk) => ('Ebs' in disk ? [disk.Ebs] : []))
  const isEncrypted = disks.length > 0 && disks.every((disk) => disk?.Encrypted === true)
  return (
    denialOn(ec2, call, plan, {
      kind: 'instance',
      facts: { 'ec2:InstanceType': plan.type.name, 'ec2:InstanceMarketType': plan.capacity },
    }) ?? denialOn(ec2, call, plan, { kind: 'volume', facts: { 'ec2:Encrypted': String(isEncrypted) } })
  )
}

function denialOn(
  ec2: Ec2,
  { principal, region }: Call,
  plan: LaunchPlan,
  { kind, facts }: { kind: string; facts: Record<string, string> },
): ApiError | undefined {
  const resource = `arn:aws:ec2:${region}:${ec2.parts.world.account}:${kind}/*`
  const tags = (plan.fields.TagSpecification ?? [])
    .filter(({ ResourceType }) => ResourceType === kind)
    .flatMap(({ Tag }) => Tag)
  const context = {
    'aws:RequestedRegion': region,
    ...facts,
    ...Object.fromEntries(tags.map(({ Key, Value }) => [`aws:RequestTag/${Key}`, Value])),
  }
  const verdict = ec2.parts.identities.judge(principal, { action: 'ec2:RunInstances', resource, context })
  if (verdict === 'allowed') return undefined
  const why =
    verdict === 'explicitDeny'
      ? 'with an explicit deny in a service control policy'
      : 'because no identity-based policy allows the ec2:RunInstances action'
  return new ApiError(
    'UnauthorizedOperation',
    `You are not authorized to perform this operation. User: ${principal.arn} is not authorized to perform: ec2:RunInstances on resource: ${resource} ${why}`,
    403,
  )
}
