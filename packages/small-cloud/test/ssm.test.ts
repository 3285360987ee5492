import { RunInstancesCommand, TerminateInstancesCommand } from '@aws-sdk/client-ec2'
import {
  CancelCommandCommand,
  DescribeInstanceInformationCommand,
  GetCommandInvocationCommand,
  type GetCommandInvocationCommandOutput,
  GetParameterCommand,
  GetParametersCommand,
  ListCommandInvocationsCommand,
  ListCommandsCommand,
  SendCommandCommand,
  type SendCommandCommandInput,
} from '@aws-sdk/client-ssm'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src/index'
import {
  IMAGE,
  IMAGE_PARAMETER,
  refusal,
  stopClouds,
  testCloud,
  UP_MS,
  type PaperMachine,
  type TestCloud,
} from './support'

afterEach(stopClouds)

interface SsmCloud extends TestCloud {
  id: string
  machine: () => PaperMachine
  send(more?: Partial<SendCommandCommandInput>): Promise<string>
  result(command: string): Promise<GetCommandInvocationCommandOutput>
  ping(): Promise<string | undefined>
}

/** A cloud with one machine, up for as long as asked. */
async function ssmCloud(world: WorldText = {}, upMs = UP_MS): Promise<SsmCloud> {
  const test = await testCloud(world)
  const { ec2, ssm } = test.clients
  const { Instances } = await ec2.send(
    new RunInstancesCommand({
      ImageId: IMAGE,
      InstanceType: 'g5.xlarge',
      MinCount: 1,
      MaxCount: 1,
      IamInstanceProfile: { Name: 'crucible-machine' },
    }),
  )
  const id = Instances![0]!.InstanceId!
  await test.clock.advance(upMs)
  return {
    ...test,
    id,
    machine: () => test.machines.get(id)!,
    async send(more = {}) {
      const { Command } = await ssm.send(
        new SendCommandCommand({
          InstanceIds: [id],
          DocumentName: 'AWS-RunShellScript',
          Parameters: { commands: ['echo hi'] },
          ...more,
        }),
      )
      return Command!.CommandId!
    },
    result: (CommandId) => ssm.send(new GetCommandInvocationCommand({ CommandId, InstanceId: id })),
    async ping() {
      const { InstanceInformationList } = await ssm.send(
        new DescribeInstanceInformationCommand({ Filters: [{ Key: 'InstanceIds', Values: [id] }] }),
      )
      return InstanceInformationList![0]?.PingStatus
    },
  }
}

describe('an agent', () => {
  it('registers a while after the machine is up, and is unknown before', async () => {
    const test = await ssmCloud({ durations: { pending: 100, boot: 0, register: '30s' } }, 1000)
    expect(await test.ping()).toBeUndefined()
    expect((await refusal(test.send())).code).toBe('InvalidInstanceId')
    await test.clock.advance(30_000)
    expect(await test.ping()).toBe('Online')
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [test.id] }))
    expect(await test.ping()).toBeUndefined()
    expect((await refusal(test.send())).code).toBe('InvalidInstanceId')
  })

  it.each<[string, WorldText]>([
    ['the world says so', { faults: [{ fault: 'no-agent' }] }],
    [
      'its subnet has no way out',
      {
        regions: {
          'us-east-1': {
            zones: ['us-east-1a'],
            subnets: [{ zone: 'us-east-1a', egress: 'none', isDefault: true }],
          },
        },
      },
    ],
    [
      'its role does not let it',
      {
        roles: {
          'crucible-machine': {
            hasProfile: true,
            trusts: ['ec2.amazonaws.com'],
            managed: ['AmazonS3FullAccess'],
          },
        },
      },
    ],
    ['its machine never boots', { faults: [{ fault: 'no-boot' }] }],
  ])('never registers where %s', async (_, world) => {
    const test = await ssmCloud(world)
    await test.clock.advance(600_000)
    expect(await test.ping()).toBeUndefined()
  })

  it('counts as lost some time after its machine has fallen silent', async () => {
    const test = await ssmCloud({
      faults: [{ fault: 'hang', after: '1m' }],
      durations: { connectionLost: '5m' },
    })
    await test.clock.advance(60_000)
    expect(await test.ping()).toBe('Online')
    await test.clock.advance(5 * 60_000)
    expect(await test.ping()).toBe('ConnectionLost')
    expect(test.cloud.instances()[0]).toMatchObject({ state: 'running', isImpaired: true })
  })
})

describe('a command', () => {
  it('is run by the machine, and its outcome told', async () => {
    const test = await ssmCloud()
    test.machine().answer = async () => ({ exitCode: 3, stdout: 'out', stderr: 'err', timedOut: false })
    const id = await test.send({
      Comment: 'start',
      Parameters: { commands: ['a', 'b'], executionTimeout: ['60'], workingDirectory: ['/srv'] },
    })
    expect(await test.result(id)).toMatchObject({
      Status: 'Pending',
      ResponseCode: -1,
      StandardOutputContent: '',
    })
    await test.clock.advance(1000)
    expect(test.machine().commands).toEqual([
      { id, lines: ['a', 'b'], timeoutMs: 60_000, workingDirectory: '/srv' },
    ])
    expect(await test.result(id)).toMatchObject({
      Status: 'Failed',
      StatusDetails: 'Failed',
      ResponseCode: 3,
      StandardOutputContent: 'out',
      StandardErrorContent: 'err',
    })
    const { CommandInvocations } = await test.clients.ssm.send(
      new ListCommandInvocationsCommand({ InstanceId: test.id, Details: true }),
    )
    expect(CommandInvocations![0]).toMatchObject({
      CommandId: id,
      Comment: 'start',
      CommandPlugins: [{ Output: 'out\n----------ERROR-------\nerr' }],
    })
    const { Commands } = await test.clients.ssm.send(new ListCommandsCommand({ CommandId: id }))
    expect(Commands![0]).toMatchObject({
      Status: 'Failed',
      TargetCount: 1,
      CompletedCount: 1,
      ErrorCount: 1,
      RequestedDateTime: expect.any(Date),
    })
  })

  it('finds its machines by tag', async () => {
    const test = await ssmCloud()
    await test.send({ InstanceIds: undefined, Targets: [{ Key: 'tag:none', Values: ['x'] }] })
    const { Commands } = await test.clients.ssm.send(new ListCommandsCommand({}))
    expect(Commands![0]!.StatusDetails).toBe('NoInstancesInTag')
  })

  it('has its output cut where SSM cuts it', async () => {
    const test = await ssmCloud()
    test.machine().answer = async () => ({
      exitCode: 0,
      stdout: 'o'.repeat(50_000),
      stderr: 'e'.repeat(50_000),
      timedOut: false,
    })
    const id = await test.send()
    await test.clock.advance(1000)
    const { StandardOutputContent, StandardErrorContent } = await test.result(id)
    expect([StandardOutputContent!.length, StandardErrorContent!.length]).toEqual([24_000, 8_000])
    expect(StandardOutputContent).toMatch(/---Output truncated---$/)
    const { CommandInvocations } = await test.clients.ssm.send(
      new ListCommandInvocationsCommand({ CommandId: id, Details: true }),
    )
    expect(CommandInvocations![0]!.CommandPlugins![0]!.Output).toHaveLength(2500)
  })

  it('is not known for a while where the world says so', async () => {
    const test = await ssmCloud({ durations: { invocationHidden: '3s' } })
    const id = await test.send()
    expect(await refusal(test.result(id))).toMatchObject({ code: 'InvocationDoesNotExist', status: 400 })
    await test.clock.advance(3000)
    expect((await test.result(id)).Status).toBe('Success')
  })

  it('stays in progress when its machine dies, until all its time is over', async () => {
    const test = await ssmCloud()
    test.machine().answer = () => new Promise(() => undefined)
    const id = await test.send({
      TimeoutSeconds: 60,
      Parameters: { commands: ['train'], executionTimeout: ['600'] },
    })
    await test.clock.advance(1000)
    await test.clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [test.id] }))
    await test.clock.advance(600_000)
    expect((await test.result(id)).Status).toBe('InProgress')
    await test.clock.advance(60_000)
    expect(await test.result(id)).toMatchObject({ Status: 'TimedOut', StatusDetails: 'DeliveryTimedOut' })
  })

  it('can be cancelled, without anybody vouching for it', async () => {
    const test = await ssmCloud()
    let end = (_: { exitCode: number; stdout: string; stderr: string; timedOut: boolean }): void => undefined
    test.machine().answer = () => new Promise((resolve) => (end = resolve))
    const id = await test.send()
    await test.clock.advance(1000)
    await test.clients.ssm.send(new CancelCommandCommand({ CommandId: id }))
    expect([test.machine().cancelled, (await test.result(id)).Status]).toEqual([[id], 'Cancelling'])
    end({ exitCode: 137, stdout: '', stderr: '', timedOut: false })
    await test.clock.advance(0)
    expect(await test.result(id)).toMatchObject({ Status: 'Cancelled', ResponseCode: 137 })
  })

  it('tells when it was killed by its own timeout', async () => {
    const test = await ssmCloud()
    test.machine().answer = async () => ({ exitCode: 137, stdout: '', stderr: '', timedOut: true })
    const id = await test.send()
    await test.clock.advance(1000)
    expect(await test.result(id)).toMatchObject({ Status: 'TimedOut', StatusDetails: 'ExecutionTimedOut' })
  })

  it('is delivered twice, never, late or cut short where the world says so', async () => {
    const test = await ssmCloud({
      faults: [
        { fault: 'command-doubled', times: 1 },
        { fault: 'command-lost', skip: 1, times: 1 },
        { fault: 'command-late', by: '10m', skip: 1, times: 1 },
        { fault: 'command-truncated', chars: 3, skip: 1, times: 1 },
      ],
    })
    const doubled = await test.send()
    await test.clock.advance(1000)
    expect(test.machine().commands.map(({ id }) => id)).toEqual([doubled, `${doubled}-again`])
    const lost = await test.send({ TimeoutSeconds: 30 })
    await test.clock.advance(30_000)
    expect([test.machine().commands.length, (await test.result(lost)).StatusDetails]).toEqual([
      2,
      'DeliveryTimedOut',
    ])
    const late = await test.send()
    await test.clock.advance(9 * 60_000)
    expect((await test.result(late)).Status).toBe('Pending')
    await test.clock.advance(2 * 60_000)
    expect(await test.result(late)).toMatchObject({
      Status: 'Success',
      StandardOutputContent: '\n---Output truncated---',
    })
  })

  it.each<[string, Partial<SendCommandCommandInput>]>([
    ['InvalidDocument', { DocumentName: 'Mine' }],
    ['InvalidParameters', { Parameters: { commands: ['a'], executionTimeout: ['200000'] } }],
    ['InvalidParameters', { Parameters: { script: ['a'] } }],
    ['MaxDocumentSizeExceeded', { Parameters: { commands: ['x'.repeat(70_000)] } }],
    ['ValidationException', { OutputS3BucketName: 'b' }],
    ['ValidationException', { TimeoutSeconds: 3 }],
    ['ValidationException', { Comment: 'c'.repeat(101) }],
  ])('is refused with %s', async (code, more) => {
    const test = await ssmCloud()
    expect(await refusal(test.send(more))).toMatchObject({ code, status: 400 })
    await test.clock.advance(1000)
    expect(test.machine().commands).toEqual([])
  })
})

describe('public parameters', () => {
  it('lead to images', async () => {
    const { clients } = await testCloud({ parameters: { '/own/image': 'ami-0123456789abcdef0' } })
    const { Parameters, InvalidParameters } = await clients.ssm.send(
      new GetParametersCommand({ Names: [IMAGE_PARAMETER, '/own/image', '/none'] }),
    )
    expect(Parameters!.map(({ Value }) => Value)).toEqual([
      expect.stringMatching(/^ami-0[0-9a-f]{16}$/),
      'ami-0123456789abcdef0',
    ])
    expect(InvalidParameters).toEqual(['/none'])
    expect((await refusal(clients.ssm.send(new GetParameterCommand({ Name: '/none' })))).code).toBe(
      'ParameterNotFound',
    )
  })
})
