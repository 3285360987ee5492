/** Other people's clients against the cloud on real time with real machines: boto3 and the aws CLI, where they are installed. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { awsClients } from '../support/aws-clients'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { testFolder } from '../support/folders'
import { HAS_NAMESPACES } from '../../packages/small-cloud/test/machines/machines'
import { IMAGE_PARAMETER } from '../../packages/small-cloud/test/support'
import { itInAll } from '../support/selection'

const { python, aws: cli } = awsClients()
const BUCKET = 'clients'

let cloud: TestCloud

beforeAll(async () => {
  cloud = await startTestCloud(BUCKET, { durations: { statusChecks: 0 } })
}, 240_000)
afterAll(() => cloud.stop())

function environment(): NodeJS.ProcessEnv {
  const { PATH, LANG } = process.env
  return {
    PATH,
    LANG,
    HOME: testFolder('aws-home'),
    // S3 as well: one address for all of it.
    AWS_ENDPOINT_URL: cloud.endpoint,
    AWS_ACCESS_KEY_ID: cloud.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: cloud.credentials.secretAccessKey,
    AWS_REGION: 'us-east-1',
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_MAX_ATTEMPTS: '1',
    AWS_PAGER: '',
    AWS_EC2_METADATA_DISABLED: 'true',
  }
}

/** Runs a program to its end; the cloud lives in this process, so it must not block. */
async function run(
  program: string,
  words: string[],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(program, words, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr]: [string[], string[]] = [[], []]
  child.stdout.on('data', (chunk) => stdout.push(String(chunk)))
  child.stderr.on('data', (chunk) => stderr.push(String(chunk)))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, stdout: stdout.join(''), stderr: stderr.join('') }
}

;(python === undefined ? describe.skip : describe)('boto3', () => {
  it('launches, waits, commands, reads and ends', async () => {
    const { code, stdout, stderr } = await run(python!, [join(__dirname, 'python', 'drive.py')])
    expect([code, stderr]).toEqual([0, ''])
    expect(JSON.parse(stdout)).toEqual({
      tags: {
        job: 'boto <&>',
        'aws:ec2:fleet-id': expect.any(String),
        'aws:ec2launchtemplate:id': expect.any(String),
        'aws:ec2launchtemplate:version': '1',
      },
      lifecycle: 'spot',
      agent: true,
      output: 'from boto\n',
      types: expect.any(Number),
      prices: 3,
      who: 'arn:aws:iam::111122223333:user/test',
      role: '2012-10-17',
      session: 'arn:aws:sts::111122223333:assumed-role/crucible-grant/boto',
      quota: 768,
      registry: ['AWS', 'https://111122223333.dkr.ecr.us-east-1.amazonaws.com', 12],
      products: 7,
      unknown: 'InvalidInstanceID.NotFound',
      stray: 'UnknownParameter',
      dry: 'DryRunOperation',
      spot: 'UnsupportedOperation',
      reserved: ['active', 2, 'targeted', 'InvalidParameterValue'],
      ssm: 'InvalidInstanceId',
    })
  }, 120_000)

  it('puts, gets, lists and deletes in the object store, in one piece, in pieces and in parts', async () => {
    const { code, stdout, stderr } = await run(python!, [join(__dirname, 'python', 'store.py')])
    expect([code, stderr]).toEqual([0, ''])
    expect(JSON.parse(stdout)).toEqual({
      stream: 'streamed',
      metadata: { who: 'boto' },
      range: 'mal',
      isSame: true,
      keys: ['a/b c+ü.txt', 'a/stream', 'large'],
      second: 'PreconditionFailed',
      none: 'NoSuchKey',
      elsewhere: 'NoSuchBucket',
      presigned: 'streamed',
      deleted: 2,
      federated: 'arn:aws:sts::111122223333:federated-user/boto',
    })
  }, 120_000)
})

;(cli === undefined ? describe.skip : describe)('the aws CLI', () => {
  async function aws(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(cli!, [...words, '--output', 'text'])
    if (code !== 0) throw new Error(stderr)
    return stdout.trim()
  }

  itInAll(
    'launches, waits, commands, reads and ends',
    async () => {
      const image = await aws('ssm', 'get-parameter', '--name', IMAGE_PARAMETER, '--query', 'Parameter.Value')
      const launch = [
        '--image-id',
        image,
        '--instance-type',
        'g5.xlarge',
        '--count',
        '1',
        '--iam-instance-profile',
        'Name=crucible-machine',
      ]
      const id = await aws('ec2', 'run-instances', ...launch, '--query', 'Instances[0].InstanceId')
      await aws('ec2', 'wait', 'instance-exists', '--instance-ids', id)
      const online = '[].[PingStatus]'
      for (let tries = 0; tries < 30; tries++)
        if (
          (await aws(
            'ssm',
            'describe-instance-information',
            '--query',
            `InstanceInformationList${online}`,
          )) === 'Online'
        )
          break
      const registry = '111122223333.dkr.ecr.us-east-1.amazonaws.com'
      const password = await aws('ecr', 'get-login-password')
      // The token opens Amazon's own registry for the engine of the machine, if it has one.
      const pull = HAS_NAMESPACES
        ? `docker login --username AWS --password ${password} ${registry} && docker pull ${registry}/team/train:1`
        : 'true'
      const parameters = `commands=["(${pull}) > /dev/null && echo pulled","nvidia-smi -L | cut -c1-18","echo cli >&2"]`
      const command = await aws(
        'ssm',
        'send-command',
        '--instance-ids',
        id,
        '--document-name',
        'AWS-RunShellScript',
        '--parameters',
        parameters,
        '--query',
        'Command.CommandId',
      )
      await aws('ssm', 'wait', 'command-executed', '--command-id', command, '--instance-id', id)
      const told = await aws(
        'ssm',
        'get-command-invocation',
        '--command-id',
        command,
        '--instance-id',
        id,
        '--query',
        '[Status,ResponseCode,StandardOutputContent,StandardErrorContent]',
      )
      expect(told.split(/\s*\t\s*/)).toEqual(['Success', '0', 'pulled\nGPU 0: NVIDIA A10G', 'cli'])
      expect(await aws('ec2', 'get-console-output', '--instance-id', id)).toContain('booted')
      const states = 'Instances[].[PreviousState.Name,CurrentState.Name]'
      const stopped = await aws('ec2', 'stop-instances', '--instance-ids', id, '--query', `Stopping${states}`)
      expect(stopped.split(/\s+/)).toEqual(['running', 'stopping'])
      await aws('ec2', 'wait', 'instance-stopped', '--instance-ids', id)
      const started = await aws(
        'ec2',
        'start-instances',
        '--instance-ids',
        id,
        '--query',
        `Starting${states}`,
      )
      expect(started.split(/\s+/)).toEqual(['stopped', 'pending'])
      await aws('ec2', 'wait', 'instance-running', '--instance-ids', id)
      expect(
        await aws(
          'ec2',
          'terminate-instances',
          '--instance-ids',
          id,
          '--query',
          'TerminatingInstances[].CurrentState.Name',
        ),
      ).toBe('shutting-down')
      const reason = ['--query', 'Reservations[].Instances[].StateReason.Code']
      expect(await aws('ec2', 'describe-instances', '--instance-ids', id, ...reason)).toBe(
        'Client.UserInitiatedShutdown',
      )
    },
    180_000,
  )

  itInAll(
    'reserves, launches into what is reserved, and gives it back',
    async () => {
      const image = await aws('ssm', 'get-parameter', '--name', IMAGE_PARAMETER, '--query', 'Parameter.Value')
      const made = [
        '--instance-type',
        'g5.xlarge',
        '--instance-platform',
        'Linux/UNIX',
        '--instance-count',
        '1',
      ]
      const where = ['--availability-zone', 'us-east-1a', '--instance-match-criteria', 'targeted']
      const answer = ['--query', 'CapacityReservation.CapacityReservationId']
      const id = await aws('ec2', 'create-capacity-reservation', ...made, ...where, ...answer)
      const target = `CapacityReservationTarget={CapacityReservationId=${id}}`
      const launch = ['--image-id', image, '--instance-type', 'g5.xlarge', '--count', '1']
      const into = [
        '--placement',
        'AvailabilityZone=us-east-1a',
        '--capacity-reservation-specification',
        target,
      ]
      const instance = await aws(
        'ec2',
        'run-instances',
        ...launch,
        ...into,
        '--query',
        'Instances[0].[InstanceId,CapacityReservationId]',
      )
      expect(instance.split(/\s+/)[1]).toBe(id)
      await expect(aws('ec2', 'run-instances', ...launch, ...into)).rejects.toThrow(
        '(ReservationCapacityExceeded)',
      )
      const free = 'CapacityReservations[].[AvailableInstanceCount,TotalInstanceCount,State]'
      const told = await aws(
        'ec2',
        'describe-capacity-reservations',
        '--capacity-reservation-ids',
        id,
        '--query',
        free,
      )
      expect(told.split(/\s+/)).toEqual(['0', '1', 'active'])
      await aws('ec2', 'terminate-instances', '--instance-ids', instance.split(/\s+/)[0]!)
      await aws('ec2', 'cancel-capacity-reservation', '--capacity-reservation-id', id)
      expect(await aws('ec2', 'describe-capacity-blocks', '--query', 'CapacityBlocks')).toBe('')
    },
    60_000,
  )

  it('shows errors as it does those of the real services', async () => {
    await expect(aws('ec2', 'describe-instances', '--instance-ids', 'i-00000000000000000')).rejects.toThrow(
      'An error occurred (InvalidInstanceID.NotFound) when calling the DescribeInstances operation',
    )
    await expect(aws('iam', 'get-role', '--role-name', 'none')).rejects.toThrow(
      '(NoSuchEntity) when calling the GetRole operation',
    )
    // In the language of that service this test could not express it.
    await expect(aws('lambda', 'list-functions')).rejects.toThrow(
      /This small cloud has no service lambda; it has ec2, /,
    )
  }, 60_000)

  itInAll(
    'copies, lists and removes in the object store, large files in parts',
    async () => {
      const folder = testFolder('files')
      writeFileSync(join(folder, 'large.bin'), randomBytes(9 * 1024 * 1024))
      writeFileSync(join(folder, 'small.txt'), 'small')
      const there = `s3://${BUCKET}/from-cli`
      await aws('s3', 'sync', folder, there, '--no-progress')
      expect(
        (await aws('s3', 'ls', `${there}/`)).split('\n').map((line) => line.split(/\s+/).at(-1)),
      ).toEqual(['large.bin', 'small.txt'])
      await aws('s3', 'cp', `${there}/large.bin`, join(folder, 'back.bin'), '--no-progress')
      const [large, back] = ['large.bin', 'back.bin'].map((name) => readFileSync(join(folder, name)))
      expect(back!.equals(large!)).toBe(true)
      const put = [
        's3api',
        'put-object',
        '--bucket',
        BUCKET,
        '--key',
        'from-cli/small.txt',
        '--if-none-match',
        '*',
      ]
      await expect(aws(...put, '--body', join(folder, 'small.txt'))).rejects.toThrow('(PreconditionFailed)')
      await aws('s3', 'rm', there, '--recursive', '--quiet')
      expect(await aws('s3', 'ls', `s3://${BUCKET}`)).toBe('')
      await expect(aws('s3', 'ls', 's3://none')).rejects.toThrow('(NoSuchBucket)')
    },
    180_000,
  )
})
