/** The stack of one Region: what it has, what a deployment would change, deployment and deletion. */
import * as cfn from '@aws-sdk/client-cloudformation'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AccountPart, Step } from '../../account'
import { ec2Error, hasCode } from '../errors'
import { AwsError } from '../sdk/api'
import { call } from '../sdk/errors'
import { isOurs, SETUP_TAGS, type RegionSetup } from './site'

export interface Stack {
  id: string
  status: string
  /** Why it has this status. */
  reason?: string
  /** Whether this set-up deployed it. */
  isOurs: boolean
  parameters: ReadonlyMap<string, string>
}

/** A change set made for a stack that does not exist creates this empty one. */
const EMPTY_STATUS = 'REVIEW_IN_PROGRESS'
const isBusy = (status: string): boolean => status.endsWith('_IN_PROGRESS') && status !== EMPTY_STATUS
export const isEmpty = (stack: Stack | undefined): boolean =>
  stack === undefined || stack.status === EMPTY_STATUS

const POLL_MS = 2_000

const WHAT: Readonly<Record<string, string>> = {
  'AWS::S3::Bucket': 'bucket',
  'AWS::S3::BucketPolicy': 'bucket policy',
  'AWS::IAM::Role': 'role',
  'AWS::IAM::Policy': 'policy',
  'AWS::IAM::InstanceProfile': 'instance profile',
  'AWS::IAM::ServiceLinkedRole': 'role of a service',
  'AWS::EC2::VPC': 'network',
  'AWS::EC2::InternetGateway': 'internet gateway',
  'AWS::EC2::VPCGatewayAttachment': 'gateway attachment',
  'AWS::EC2::RouteTable': 'route table',
  'AWS::EC2::Route': 'route',
  'AWS::EC2::Subnet': 'subnet',
  'AWS::EC2::SubnetRouteTableAssociation': 'route table association',
  'AWS::EC2::VPCEndpoint': 'endpoint',
  'AWS::EC2::SecurityGroup': 'security group',
}

/** The folder of templates. In a build, this file is one folder deeper. */
export function deployFolder(): string {
  const above = join(__dirname, '..', '..', '..')
  return join(above.endsWith('dist') ? join(above, '..') : above, 'deploy')
}

function templateText(): string {
  return readFileSync(join(deployFolder(), 'aws', 'crucible.template.yaml'), 'utf8')
}

type Clients = Pick<RegionSetup, 'clients' | 'signal' | 'prefix'>

/** The stack of this name. Waits until a change of it that is under way has ended. */
export async function readStack(site: Clients): Promise<Stack | undefined> {
  for (;;) {
    const stack = await stackNow(site, site.prefix)
    if (stack === undefined || !isBusy(stack.status)) return stack
    await pause(site)
  }
}

/** @param StackName its id, once it is deleted */
async function stackNow({ clients, signal, prefix }: Clients, StackName: string): Promise<Stack | undefined> {
  try {
    const { Stacks: [stack] = [] } = await call(signal, () =>
      clients.stacks.send(new cfn.DescribeStacksCommand({ StackName }), { abortSignal: signal }),
    )
    if (stack === undefined) return undefined
    const { StackId = '', StackStatus = '', StackStatusReason, Tags, Parameters = [] } = stack
    return {
      id: StackId,
      status: StackStatus,
      reason: StackStatusReason,
      isOurs: isOurs(prefix, Tags),
      parameters: new Map(
        Parameters.map(({ ParameterKey = '', ParameterValue = '' }) => [ParameterKey, ParameterValue]),
      ),
    }
  } catch (error) {
    if (hasCode(error, 'ValidationError') && /does not exist/.test((error as Error).message)) return undefined
    throw error
  }
}

export async function resourcesOf({ clients, signal }: Clients, { id }: Stack): Promise<cfn.StackResource[]> {
  const { StackResources = [] } = await call(signal, () =>
    clients.stacks.send(new cfn.DescribeStackResourcesCommand({ StackName: id }), { abortSignal: signal }),
  )
  return StackResources.filter(
    ({ LogicalResourceId, ResourceStatus }) =>
      LogicalResourceId !== undefined && ResourceStatus !== 'DELETE_COMPLETE',
  )
}

interface ChangeSet {
  id: string
  stackId: string
  /** Missing if the stack is as wanted. */
  changes?: cfn.ResourceChange[]
}

/** Asks CloudFormation what a deployment would change. Manual changes of the resources count, and the deployment reverts them. */
async function makeChangeSet(site: RegionSetup): Promise<ChangeSet> {
  const { clients, signal, prefix, tags, stack, parameters } = site
  const isNew = isEmpty(stack)
  const wish: cfn.CreateChangeSetCommandInput = {
    StackName: prefix,
    ChangeSetName: `crucible-${Date.now()}`,
    ChangeSetType: isNew ? 'CREATE' : 'UPDATE',
    TemplateBody: templateText(),
    Parameters: Object.entries(parameters).map(([ParameterKey, ParameterValue]) => ({
      ParameterKey,
      ParameterValue,
    })),
    Capabilities: ['CAPABILITY_NAMED_IAM'],
    Tags: Object.entries({ ...tags, [SETUP_TAGS.setup]: prefix }).map(([Key, Value]) => ({ Key, Value })),
    ...(isNew ? { OnStackFailure: 'DELETE' } : { DeploymentMode: 'REVERT_DRIFT' }),
  }
  const { Id: id = '', StackId: stackId = '' } = await call(signal, () =>
    clients.stacks.send(new cfn.CreateChangeSetCommand(wish), { abortSignal: signal }),
  )
  return { id, stackId, changes: await changesOf(site, id) }
}

const NO_CHANGES = /didn't contain changes|no updates are to be performed/i

async function changesOf(
  site: RegionSetup,
  ChangeSetName: string,
): Promise<cfn.ResourceChange[] | undefined> {
  const { clients, signal } = site
  const changes: cfn.ResourceChange[] = []
  let NextToken: string | undefined
  for (;;) {
    const wish = { ChangeSetName, NextToken, IncludePropertyValues: true }
    const page: cfn.DescribeChangeSetCommandOutput = await call(signal, () =>
      clients.stacks.send(new cfn.DescribeChangeSetCommand(wish), { abortSignal: signal }),
    )
    const { Status = '', StatusReason = '' } = page
    if (Status === 'FAILED') {
      if (NO_CHANGES.test(StatusReason)) return undefined
      throw new AwsError(StatusReason, { code: 'ChangeSetFailed', reach: 'answered' })
    }
    if (Status !== 'CREATE_COMPLETE') {
      await pause(site)
      continue
    }
    changes.push(...(page.Changes ?? []).flatMap(({ ResourceChange }) => ResourceChange ?? []))
    NextToken = page.NextToken
    if (NextToken === undefined) return changes
  }
}

/** The parts of the template in this Region, and how they differ from it. Leaves nothing behind. */
export async function previewParts(site: RegionSetup): Promise<AccountPart[]> {
  const { id, stackId, changes = [] } = await makeChangeSet(site)
  await dropChangeSet(site, { id, stackId })
  const known = new Set(site.resources.map(({ LogicalResourceId }) => LogicalResourceId))
  const added = changes.filter(({ LogicalResourceId }) => !known.has(LogicalResourceId))
  return [
    ...site.resources.map((resource) => {
      const change = changes.find(({ LogicalResourceId }) => LogicalResourceId === resource.LogicalResourceId)
      if (change?.Action === 'Add') return partOf(change, 'missing')
      return change === undefined
        ? partOf(resource, 'there')
        : partOf({ ...resource, ...change }, 'differs', remarksOf(change))
    }),
    ...added.map((change) => partOf(change, 'missing')),
  ]
}

async function dropChangeSet(
  { clients, signal, stack }: RegionSetup,
  { id, stackId }: Pick<ChangeSet, 'id' | 'stackId'>,
): Promise<void> {
  const options = { abortSignal: signal }
  await call(signal, () =>
    clients.stacks.send(new cfn.DeleteChangeSetCommand({ ChangeSetName: id }), options),
  )
  if (stack === undefined)
    await call(signal, () => clients.stacks.send(new cfn.DeleteStackCommand({ StackName: stackId }), options))
}

type Resource = Pick<
  cfn.ResourceChange,
  'LogicalResourceId' | 'PhysicalResourceId' | 'ResourceType' | 'AfterContext'
>

/** People know these resources by their names, others by the names in the template. */
const NAMED = /::(?:Bucket|Role|InstanceProfile|ServiceLinkedRole)$/

export function partOf(resource: Resource, state: AccountPart['state'], remarks: string[] = []): AccountPart {
  const { LogicalResourceId: id = '', PhysicalResourceId: physical = '', ResourceType: type = '' } = resource
  const name = (NAMED.test(type) && physical) || nameIn(resource) || id
  return {
    id,
    what: WHAT[type] ?? type,
    name,
    providerId: physical === '' || physical === name ? undefined : physical,
    state,
    remarks,
  }
}

/** The name that a resource will have; CloudFormation reports its properties as JSON. */
function nameIn({ AfterContext }: Resource): string | undefined {
  const { Properties = {} } = JSON.parse(AfterContext ?? '{}') as { Properties?: Record<string, string> }
  return (
    Properties['RoleName'] ??
    Properties['BucketName'] ??
    Properties['InstanceProfileName'] ??
    Properties['GroupName']
  )
}

function remarksOf({ Action, Details = [], ResourceDriftStatus }: cfn.ResourceChange): string[] {
  if (Action === 'Remove') return ['is no longer needed']
  const properties = Details.map(({ Target }) => Target?.Name ?? Target?.Attribute ?? '')
  const named = [...new Set(properties)].filter((name) => name !== '').join(', ')
  const how = ResourceDriftStatus === 'MODIFIED' ? 'was changed by hand' : 'differs from the template'
  return [named === '' ? how : `${how}: ${named}`]
}

type Tell = (step: Omit<Step, 'part'> & { part: AccountPart }) => void

/** Creates or changes what `previewParts` showed, all of it or nothing. Returns whether it succeeded. */
export async function deploy(site: RegionSetup, tell: Tell): Promise<boolean> {
  const { clients, signal, stack } = site
  const { id, stackId, changes } = await makeChangeSet(site)
  if (changes === undefined) {
    await dropChangeSet(site, { id, stackId })
    return true
  }
  const before = isEmpty(stack) ? [] : await eventsOf(site, stackId)
  const seen = new Set(before.map(({ EventId = '' }) => EventId))
  await call(signal, () =>
    clients.stacks.send(new cfn.ExecuteChangeSetCommand({ ChangeSetName: id }), { abortSignal: signal }),
  )
  const status = await follow(site, { stackId, seen, tell })
  // A new stack that fails is deleted.
  return status === 'CREATE_COMPLETE' || status === 'UPDATE_COMPLETE'
}

/** Deletes a stack. The bucket and the spot role are retained. Returns whether it succeeded. */
export async function deleteStack(site: RegionSetup, { id }: Stack, tell: Tell): Promise<boolean> {
  const { clients, signal } = site
  const seen = new Set((await eventsOf(site, id)).map(({ EventId = '' }) => EventId))
  await call(signal, () =>
    clients.stacks.send(new cfn.DeleteStackCommand({ StackName: id }), { abortSignal: signal }),
  )
  return (await follow(site, { stackId: id, seen, tell })) === 'DELETE_COMPLETE'
}

interface Following {
  stackId: string
  /** Events of earlier operations. */
  seen: Set<string>
  tell: Tell
}

/** Reports the events of an operation until it has ended, and returns the status of its stack. */
async function follow(site: RegionSetup, { stackId, seen, tell }: Following): Promise<string> {
  for (;;) {
    const stack = await stackNow(site, stackId)
    for (const event of await eventsOf(site, stackId)) {
      if (seen.has(event.EventId ?? '')) continue
      seen.add(event.EventId ?? '')
      const step = event.PhysicalResourceId === stackId ? undefined : stepOf(event)
      if (step !== undefined) tell(step)
    }
    // A deleted stack is found by its id; where it is not, its deletion has ended.
    const status = stack?.status ?? 'DELETE_COMPLETE'
    if (!status.endsWith('_IN_PROGRESS')) return status
    await pause(site)
  }
}

/** Oldest first. */
async function eventsOf({ clients, signal }: RegionSetup, StackName: string): Promise<cfn.StackEvent[]> {
  return call(signal, async () => {
    const events: cfn.StackEvent[] = []
    const pages = cfn.paginateDescribeStackEvents({ client: clients.stacks }, { StackName })
    for await (const { StackEvents } of pages) events.push(...(StackEvents ?? []))
    return events.reverse()
  })
}

const DONE: Readonly<Record<string, Step['did']>> = {
  CREATE_COMPLETE: 'made',
  UPDATE_COMPLETE: 'mended',
  DELETE_COMPLETE: 'removed',
}

function stepOf(event: cfn.StackEvent): Parameters<Tell>[0] | undefined {
  const { ResourceStatus = '', ResourceStatusReason = '' } = event
  const part = partOf(event, 'there')
  const did = DONE[ResourceStatus]
  if (did !== undefined) return { part, did }
  // After one failure CloudFormation cancels everything else.
  if (!ResourceStatus.endsWith('_FAILED') || /cancelled/i.test(ResourceStatusReason)) return undefined
  return { part, ...failed(new AwsError(ResourceStatusReason, { code: ResourceStatus, reach: 'answered' })) }
}

const NAMED_ACTION = /not authorized to perform: ([\w-]+:\w+)/

/** A step that did not succeed, with the permission that it lacked. */
export function failed(error: unknown): Omit<Step, 'part'> {
  const { message } = ec2Error(error).failure
  return { did: 'failed', reason: message, permission: NAMED_ACTION.exec(message)?.[1] }
}

async function pause({ clients, signal }: Pick<RegionSetup, 'clients' | 'signal'>): Promise<void> {
  const ms = clients.endpoint === undefined ? POLL_MS : POLL_MS / 20
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}
