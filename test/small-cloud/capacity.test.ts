/** The sale of reserved capacity, with boto3 as the buyer, and judged by botocore's model of EC2. Skipped without boto3. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { startCloud, type Cloud } from '#small-cloud'
import { awsClients, judgeWire } from '../support/aws-clients'
import { testFolder } from '../support/folders'
import { startRecordingProxy, type RecordingProxy } from '../support/recording-proxy'

const { python } = awsClients()

let cloud: Cloud | undefined
let proxy: RecordingProxy | undefined

afterEach(async () => {
  await proxy?.stop()
  await cloud?.stop()
})

function environmentAt({
  endpoint,
  credentials,
}: Pick<Cloud, 'endpoint' | 'credentials'>): NodeJS.ProcessEnv {
  const { PATH, LANG } = process.env
  return {
    PATH,
    LANG,
    HOME: testFolder('aws-home'),
    AWS_ENDPOINT_URL: endpoint,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_EC2_METADATA_DISABLED: 'true',
  }
}

/** Runs a Python program to its end; the cloud lives in this process, so it must not block. */
async function run(program: string, env: NodeJS.ProcessEnv): Promise<[number | null, string, string]> {
  const child = spawn(python!, [join(__dirname, 'python', program)], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'] as const,
  })
  const [stdout, stderr]: [string[], string[]] = [[], []]
  child.stdout.on('data', (chunk) => stdout.push(String(chunk)))
  child.stderr.on('data', (chunk) => stderr.push(String(chunk)))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return [code, stderr.join(''), stdout.join('')]
}

;(python === undefined ? describe.skip : describe)('boto3', () => {
  it('buys, extends, splits and is refused, by the model of botocore', async () => {
    const where = { type: 'p5.48xlarge', zone: 'us-east-1a' } as const
    cloud = await startCloud({
      world: {
        blockOfferings: [{ ...where, count: 8, usdPerInstanceHour: 31.464 }],
        reservations: [{ kind: 'capacity-block', ...where, count: 3, ends: '24h' }],
        faults: [
          {
            fault: 'lost-answer',
            instead: 'internal-error',
            skip: 1,
            times: 1,
            where: { action: 'PurchaseCapacityBlock' },
          },
        ],
      },
    })
    proxy = await startRecordingProxy(cloud.endpoint)
    const [code, stderr, stdout] = await run(
      'capacity.py',
      environmentAt({ endpoint: proxy.endpoint, credentials: cloud.credentials }),
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(JSON.parse(stdout)).toEqual({
      bought: {
        dry: ['DryRunOperation', 412],
        first: 'payment-pending',
        paid: 'scheduled',
        tags: [{ Key: 'intent', Value: 'boto <&>' }],
        is_as_offered: [true, true, true],
        fee: '3020.544000',
        belongs: true,
        cancel: ['OperationNotPermitted', 400],
        early: ['InvalidCapacityReservationState.PendingActivation', 400],
        malformed: ['InvalidCapacityBlockOfferingIdMalformed', 400],
        unknown: ['InvalidCapacityBlockOfferingIdNotFound', 400],
      },
      extended: {
        first: 'payment-pending',
        then: ['payment-succeeded'],
        moved: true,
        again: ['InvalidCapacityBlockExtensionOfferingIdExpired', 400],
      },
      on_demand: {
        first: ['assessing', 2, [{ AllocationType: 'future', Count: 2 }]],
        then: 'scheduled',
        cancel: ['OperationNotPermitted', 400],
        short: ['InvalidParameterValue', 400],
        split: [2, 1, 1],
      },
      statuses: [3],
      retried: 2,
    })
    const { judged, actions, problems } = await judgeWire(python!, proxy.calls)
    expect(problems).toEqual([])
    expect(judged).toBeGreaterThan(20)
    expect(actions).toEqual([
      'ec2:CancelCapacityReservation',
      'ec2:CreateCapacityReservation',
      'ec2:CreateCapacityReservationBySplitting',
      'ec2:DescribeCapacityBlockExtensionHistory',
      'ec2:DescribeCapacityBlockExtensionOfferings',
      'ec2:DescribeCapacityBlockOfferings',
      'ec2:DescribeCapacityBlockStatus',
      'ec2:DescribeCapacityBlocks',
      'ec2:DescribeCapacityReservations',
      'ec2:PurchaseCapacityBlock',
      'ec2:PurchaseCapacityBlockExtension',
    ])
  }, 120_000)
})
