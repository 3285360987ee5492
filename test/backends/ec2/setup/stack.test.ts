/** What moto's CloudFormation lacks: previews of single resources, drift, events and failures, by answers in the form that AWS documents. */
import type * as cfn from '@aws-sdk/client-cloudformation'
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { createAccountSetup } from '../../../../backends/ec2/setup'
import { createClients, type Clients } from '../../../../backends/ec2/setup/clients'
import type { RegionSetup } from '../../../../backends/ec2/setup/site'
import {
  deleteStack,
  deploy,
  previewParts,
  readStack,
  type Stack,
} from '../../../../backends/ec2/setup/stack'
import type { Step } from '../../../../backends/account'
import { patiently } from '../../harness'

const STACK_ID = 'arn:aws:cloudformation:us-east-1:111122223333:stack/crucible/1'
const STACK: Stack = { id: STACK_ID, status: 'CREATE_COMPLETE', isOurs: true, parameters: new Map() }
const ROLE = {
  LogicalResourceId: 'WorkerRole',
  PhysicalResourceId: 'crucible-worker',
  ResourceType: 'AWS::IAM::Role',
}
const VPC = { LogicalResourceId: 'Vpc', PhysicalResourceId: 'vpc-1', ResourceType: 'AWS::EC2::VPC' }
const GROUP = {
  LogicalResourceId: 'MachineGroup',
  PhysicalResourceId: 'sg-1',
  ResourceType: 'AWS::EC2::SecurityGroup',
}

type Answers = Record<string, object | (() => object)>

let sent: { name: string; input: Record<string, unknown> }[]
let clients: Clients
let answers: Answers

beforeEach(() => {
  sent = []
  answers = {
    CreateChangeSet: { Id: 'change-set', StackId: STACK_ID },
    DescribeStackEvents: { StackEvents: [] },
    ExecuteChangeSet: {},
    DeleteChangeSet: {},
    DeleteStack: {},
  }
  clients = createClients({ region: 'us-east-1', endpoint: 'http://127.0.0.1:9' })
  jest.spyOn(clients.stacks, 'send').mockImplementation((async (command: cfn.DescribeStacksCommand) => {
    const name = command.constructor.name.replace(/Command$/, '')
    sent.push({ name, input: command.input as Record<string, unknown> })
    const answer = answers[name]
    if (answer === undefined) throw new Error(`no answer for ${name}`)
    return typeof answer === 'function' ? (answer as () => object)() : answer
  }) as never)
})

function siteWith(more: Partial<RegionSetup> = {}): RegionSetup {
  return {
    clients,
    region: 'us-east-1',
    isHome: true,
    ...patiently(),
    prefix: 'crucible',
    tags: { team: 'ml' },
    account: '111122223333',
    bucket: 'store',
    resources: [],
    parameters: { Prefix: 'crucible' },
    ...more,
  }
}

const names = (): string[] => sent.map(({ name }) => name)
const inputOf = (wanted: string): Record<string, unknown> => sent.find(({ name }) => name === wanted)!.input
const changes = (...all: cfn.ResourceChange[]): object => ({
  Status: 'CREATE_COMPLETE',
  Changes: all.map((ResourceChange) => ({ Type: 'Resource', ResourceChange })),
})

describe('the preview of a deployment', () => {
  it('of a new stack names what it creates, and leaves neither the change set nor the empty stack', async () => {
    answers['DescribeChangeSet'] = changes({
      Action: 'Add',
      LogicalResourceId: 'WorkerRole',
      ResourceType: 'AWS::IAM::Role',
      AfterContext: JSON.stringify({ Properties: { RoleName: 'crucible-worker' } }),
    })
    expect(await previewParts(siteWith())).toEqual([
      { id: 'WorkerRole', what: 'role', name: 'crucible-worker', state: 'missing', remarks: [] },
    ])
    expect(inputOf('CreateChangeSet')).toMatchObject({
      ChangeSetType: 'CREATE',
      OnStackFailure: 'DELETE',
      Tags: [
        { Key: 'team', Value: 'ml' },
        { Key: 'crucible:setup', Value: 'crucible' },
      ],
      Capabilities: ['CAPABILITY_NAMED_IAM'],
    })
    expect(names().slice(-2)).toEqual(['DeleteChangeSet', 'DeleteStack'])
  })

  it('of a deployed stack reads the resources themselves: changed by hand, deleted by hand, other in the template', async () => {
    answers['DescribeChangeSet'] = changes(
      {
        ...ROLE,
        Action: 'Modify',
        ResourceDriftStatus: 'MODIFIED',
        Details: [{ Target: { Attribute: 'Properties', Name: 'Policies' } }],
      },
      { ...VPC, Action: 'Add' },
      { LogicalResourceId: 'Old', ResourceType: 'AWS::IAM::Policy', Action: 'Remove' },
    )
    const resources = [ROLE, VPC, GROUP, { LogicalResourceId: 'Old', ResourceType: 'AWS::IAM::Policy' }]
    const parts = await previewParts(siteWith({ stack: STACK, resources: resources as cfn.StackResource[] }))
    expect(parts.map(({ id, name, state, remarks }) => [id, name, state, ...remarks])).toEqual([
      ['WorkerRole', 'crucible-worker', 'differs', 'was changed by hand: Policies'],
      ['Vpc', 'Vpc', 'missing'],
      ['MachineGroup', 'MachineGroup', 'there'],
      ['Old', 'Old', 'differs', 'is no longer needed'],
    ])
    expect(parts[2]).toMatchObject({ what: 'security group', providerId: 'sg-1' })
    expect(inputOf('CreateChangeSet')).toMatchObject({
      ChangeSetType: 'UPDATE',
      DeploymentMode: 'REVERT_DRIFT',
    })
    expect(names()).not.toContain('DeleteStack')
  })

  it('keeps an empty stack that somebody else is about to deploy', async () => {
    answers['DescribeChangeSet'] = changes()
    await previewParts(siteWith({ stack: { ...STACK, status: 'REVIEW_IN_PROGRESS' } }))
    expect(inputOf('CreateChangeSet')).toMatchObject({ ChangeSetType: 'CREATE' })
    expect(names()).not.toContain('DeleteStack')
  })

  it('fails with the reason of CloudFormation', async () => {
    answers['DescribeChangeSet'] = { Status: 'FAILED', StatusReason: 'Template error: no such parameter' }
    await expect(previewParts(siteWith())).rejects.toThrow('Template error: no such parameter')
  })
})

describe('a deployment', () => {
  const event = (resource: object, status: string, reason?: string): object => ({
    EventId: `${JSON.stringify(resource)} ${status}`,
    ...resource,
    ResourceStatus: status,
    ResourceStatusReason: reason,
  })
  const own = {
    LogicalResourceId: 'crucible',
    PhysicalResourceId: STACK_ID,
    ResourceType: 'AWS::CloudFormation::Stack',
  }

  /** Deploys while the stack goes through states, each with the events that come with it, newest first. */
  async function deployed(
    site: RegionSetup,
    states: [status: string, events: object[]][],
  ): Promise<{ isDone: boolean; steps: unknown[] }> {
    let at = -1
    let events: object[] = []
    answers['DescribeChangeSet'] = changes({ ...ROLE, Action: 'Add' })
    answers['DescribeStacks'] = () => {
      const [StackStatus, more] = states[++at]!
      events = [...more.reverse(), ...events]
      return { Stacks: [{ StackId: STACK_ID, StackName: 'crucible', StackStatus }] }
    }
    answers['DescribeStackEvents'] = () => ({ StackEvents: events })
    const steps: Step[] = []
    const isDone = await deploy(site, (step) => steps.push(step))
    return {
      isDone,
      steps: steps.map(({ part, did, reason, permission }) =>
        [part.name, did, reason, permission].filter((each) => each !== undefined),
      ),
    }
  }

  it('reports each resource once, and ends when the stack is complete', async () => {
    const { isDone, steps } = await deployed(siteWith(), [
      ['REVIEW_IN_PROGRESS', []],
      ['CREATE_IN_PROGRESS', [event(own, 'CREATE_IN_PROGRESS'), event(ROLE, 'CREATE_IN_PROGRESS')]],
      ['CREATE_IN_PROGRESS', [event(ROLE, 'CREATE_COMPLETE')]],
      ['CREATE_COMPLETE', [event(VPC, 'UPDATE_COMPLETE'), event(own, 'CREATE_COMPLETE')]],
    ])
    expect([isDone, ...steps]).toEqual([true, ['crucible-worker', 'made'], ['Vpc', 'mended']])
  })

  it('of a new stack that lacks a permission fails with its name, and nothing stays', async () => {
    const denied = 'User: me is not authorized to perform: ec2:CreateVpc on resource: vpc/*'
    const { isDone, steps } = await deployed(siteWith(), [
      ['CREATE_IN_PROGRESS', [event(ROLE, 'CREATE_COMPLETE')]],
      [
        'DELETE_IN_PROGRESS',
        [event(VPC, 'CREATE_FAILED', denied), event(GROUP, 'CREATE_FAILED', 'Resource creation cancelled')],
      ],
      ['DELETE_COMPLETE', [event(ROLE, 'DELETE_COMPLETE')]],
    ])
    expect(isDone).toBe(false)
    expect(steps).toEqual([
      ['crucible-worker', 'made'],
      ['Vpc', 'failed', denied, 'ec2:CreateVpc'],
      ['crucible-worker', 'removed'],
    ])
  })

  it('is not executed where nothing differs', async () => {
    answers['DescribeChangeSet'] = {
      Status: 'FAILED',
      StatusReason: "The submitted information didn't contain changes.",
    }
    expect(await deploy(siteWith({ stack: STACK }), () => {})).toBe(true)
    expect(names()).not.toContain('ExecuteChangeSet')
    expect(names().at(-1)).toBe('DeleteChangeSet')
  })

  it('waits for the end of one that is under way', async () => {
    const states = ['UPDATE_IN_PROGRESS', 'UPDATE_COMPLETE_CLEANUP_IN_PROGRESS', 'UPDATE_COMPLETE']
    answers['DescribeStacks'] = () => ({ Stacks: [{ StackId: STACK_ID, StackStatus: states.shift() }] })
    expect(await readStack(siteWith())).toMatchObject({ status: 'UPDATE_COMPLETE', isOurs: false })
  })
})

describe('a removal', () => {
  it('reports a resource that cannot be deleted', async () => {
    const events: object[] = []
    answers['DeleteStack'] = () => {
      const reason = 'resource sg-1 has a dependent object'
      events.push({ EventId: '1', ...GROUP, ResourceStatus: 'DELETE_FAILED', ResourceStatusReason: reason })
      return {}
    }
    answers['DescribeStackEvents'] = () => ({ StackEvents: events })
    answers['DescribeStacks'] = { Stacks: [{ StackId: STACK_ID, StackStatus: 'DELETE_FAILED' }] }
    const steps: Step[] = []
    expect(await deleteStack(siteWith({ stack: STACK }), STACK, (step) => steps.push(step))).toBe(false)
    expect(steps).toMatchObject([{ did: 'failed', reason: expect.stringContaining('dependent object') }])
  })
})

describe('set-up of an account', () => {
  const wish = { prefix: 'crucible', hasOwnNetwork: false, region: 'us-east-1' }

  it.each([
    [{ region: '' }, 'the Region is missing'],
    [{ region: 'us-east-1,moon' }, 'Unknown Region "moon"'],
    [
      { region: 'us-gov-west-1' },
      'us-gov-west-1 (AWS GovCloud (US-West)) is in the partition aws-us-gov, which set-up does not support',
    ],
    [{ region: 'eusc-de-east-1' }, 'is in the partition aws-eusc'],
    [{ region: 'us-isof-east-1' }, 'is in the partition aws-iso-f'],
    [{ region: 'us-east-1,cn-north-1' }, 'cn-north-1 (China (Beijing)) is in the partition aws-cn'],
    [{ prefix: 'Crucible' }, 'Invalid prefix "Crucible"'],
    [{ bucket: 'My_Bucket' }, 'Invalid bucket name "My_Bucket"'],
  ])('refuses %j before it asks AWS anything', (options, message) => {
    expect(() => createAccountSetup({ ...wish, ...options })).toThrow(message)
  })

  it('that is stopped returns its steps so far', async () => {
    const setup = createAccountSetup({ ...wish, endpoint: 'http://127.0.0.1:9' })
    expect(await setup.apply({ signal: AbortSignal.abort(), onStep: () => {} })).toEqual([])
  })
})
