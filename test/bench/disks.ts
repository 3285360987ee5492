import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EC2Client, RunInstancesCommand, type _InstanceType } from '@aws-sdk/client-ec2'
import {
  DescribeInstanceInformationCommand,
  GetCommandInvocationCommand,
  SendCommandCommand,
  SSMClient,
} from '@aws-sdk/client-ssm'
import { SECOND_MS } from '../../core/time/time'
import { partsOf } from '../../planner/forecast/parts'
import { CAPABILITIES, offer, request, SPEC } from '../planner/wishes'
import { CloudDeployment } from '../recovery/deployment'
import { startTestCloud, type TestCloud } from '../support/cloud'
import type { TestConnection } from '../support/temporal'
import { until } from '../support/until'
import type { Measure } from './measure'

const BUCKET = 'disks'
const MIB = 2 ** 20
/** The small cloud's machines have this share of their speed, so that this host is never the slower one. */
const SHARE = 0.05
/** A forecast that is off by more is wrong. */
const OFF_MAX = 0.25
const RUNNER = join(__dirname, 'checkpoint_runner.py')

/** Machines whose root disk, network or connections are the limit. Types with local disks have none with a known speed. */
const MACHINES = [
  { type: 'c7i.large', mibPerSecond: 125 },
  { type: 'c7i.large', mibPerSecond: 250 },
  { type: 'm7i.large', mibPerSecond: 500 },
  { type: 'm7i.large', mibPerSecond: 1_000 },
] as const

type Direction = 'up' | 'down'

/** Saves one checkpoint and waits; the machine that resumes it is done. */
const TRAINING = `import os, time
if not os.environ.get("CRUCIBLE_RESUME_FROM"):
    path = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "step-1.bin")
    with open(path + ".tmp", "wb") as file:
        for _ in range(int(os.environ["MIB"])):
            file.write(os.urandom(2**20))
    os.rename(path + ".tmp", path)
    time.sleep(600)
`

/**
 * A checkpoint to the store and back on machines with a throughput, by the runner alone and in a recovery: the seconds it takes, and those of
 * the forecast.
 */
export async function disks(at: TestConnection, sizeMiB: number): Promise<Measure[]> {
  return [...(await transfers(sizeMiB)), await restored(at, sizeMiB / 2)]
}

async function restored(at: TestConnection, sizeMiB: number): Promise<Measure> {
  const [{ type, mibPerSecond }] = MACHINES
  const deployment = await CloudDeployment.start(at, {
    world: { throughput: SHARE },
    settings: { CRUCIBLE_EC2_TYPES: type },
  })
  try {
    const run = `exec python3 -c '${TRAINING}'`
    const resources = { diskMibPerSecond: mibPerSecond }
    const job = await deployment.submit({
      run,
      resources,
      checkpoint: { complete: ['step-1.bin'] },
      env: { MIB: String(sizeMiB) },
    })
    await deployment.see(job, ({ attempts }) => attempts.at(-1)?.checkpointState === 'complete')
    deployment.cloud.interrupt(deployment.machineOf(job), { isSilent: true })
    const { recoveries } = await deployment.ended(job)
    const measuredS = (recoveries[0]?.restoreMs ?? NaN) / SECOND_MS
    const expectedS = forecastOf((sizeMiB * MIB) / SHARE, mibPerSecond).down
    return measureOf(`restored by a job, ${type} with ${mibPerSecond} MiB/s`, {
      sizeMiB,
      measuredS,
      expectedS,
    })
  } finally {
    await deployment.stop()
  }
}

async function transfers(sizeMiB: number): Promise<Measure[]> {
  const s3 = { managed: ['AmazonSSMManagedInstanceCore', 'AmazonS3FullAccess'], hasProfile: true }
  const role = { ...s3, trusts: ['ec2.amazonaws.com'] }
  const cloud = await startTestCloud(BUCKET, {
    throughput: SHARE,
    throttling: 'off',
    roles: { 'crucible-machine': role },
  })
  try {
    const measures: Measure[] = []
    for (const machine of MACHINES)
      // Every machine is measured for some seconds, and a fast one with all of its connections.
      measures.push(...(await measured(cloud, machine, machine.mibPerSecond < 500 ? sizeMiB / 2 : sizeMiB)))
    return measures
  } finally {
    await cloud.stop()
  }
}

async function measured(
  cloud: TestCloud,
  { type, mibPerSecond }: (typeof MACHINES)[number],
  sizeMiB: number,
): Promise<Measure[]> {
  const machine = await launched(type, mibPerSecond)
  const file = '/tmp/checkpoint.bin'
  await shell(machine, `head -c ${sizeMiB * MIB} /dev/urandom >${file}`)
  const move = (direction: Direction, path: string): Promise<number> =>
    seconds(
      machine,
      `python3 -B ${RUNNER} ${direction} s3://${BUCKET}/${machine}?endpoint=${cloud.storeEndpoint} checkpoint.bin ${path} /tmp/entry.json`,
    )
  const took = { up: await move('up', file), down: await move('down', '/tmp/back.bin') }
  const expected = forecastOf((sizeMiB * MIB) / SHARE, mibPerSecond)
  return (['up', 'down'] as const).map((direction) =>
    measureOf(`${direction}, ${type} with ${mibPerSecond} MiB/s`, {
      sizeMiB,
      measuredS: took[direction],
      expectedS: expected[direction],
    }),
  )
}

function measureOf(
  name: string,
  { sizeMiB, measuredS, expectedS }: { sizeMiB: number; measuredS: number; expectedS: number },
): Measure {
  return {
    bench: 'disks',
    name: `${name}: off by`,
    value: Math.abs(expectedS / measuredS - 1),
    unit: 'x',
    goal: { is: 'at most', value: OFF_MAX },
    remark: `${sizeMiB / SHARE / 1_024} GiB in ${measuredS.toFixed(1)} s, the forecast ${expectedS.toFixed(1)} s`,
  }
}

/** Seconds that the forecast counts for the last upload and for a restore. */
function forecastOf(sizeBytes: number, diskMibPerSecond: number): Record<Direction, number> {
  const shape = { cpus: 2, memoryGiB: 4, gpus: 0, diskMibPerSecond }
  const one = offer({ shape })
  const of = (bytes: number) => {
    const spec = { ...SPEC, checkpoint: { directory: 'c', sizeBytes: bytes } }
    return partsOf(one, CAPABILITIES, { request: request([one], { spec }), isShaky: false })
  }
  const [whole, none] = [of(sizeBytes), of(0)]
  return {
    up: (whole.stop.middle - none.stop.middle) / SECOND_MS,
    down: whole.restore.middle / SECOND_MS,
  }
}

async function launched(type: _InstanceType, mibPerSecond: number): Promise<string> {
  const client = new EC2Client({})
  const { Instances = [] } = await client.send(
    new RunInstancesCommand({
      InstanceType: type,
      ImageId: 'resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64',
      MinCount: 1,
      MaxCount: 1,
      IamInstanceProfile: { Name: 'crucible-machine' },
      BlockDeviceMappings: [
        {
          DeviceName: '/dev/xvda',
          Ebs: {
            VolumeType: 'gp3',
            VolumeSize: 100,
            Throughput: mibPerSecond,
            Iops: Math.max(3_000, mibPerSecond * 4),
          },
        },
      ],
    }),
  )
  client.destroy()
  const [{ InstanceId: id = '' } = {}] = Instances
  const ssm = new SSMClient({})
  await until(async () => {
    const { InstanceInformationList: list = [] } = await ssm.send(new DescribeInstanceInformationCommand({}))
    return list.some((one) => one.InstanceId === id && one.PingStatus === 'Online')
  }, 60_000)
  ssm.destroy()
  return id
}

async function seconds(machine: string, command: string): Promise<number> {
  const clock = `python3 -c 'import time; print(time.monotonic())'`
  const [from, to] = (await shell(machine, `${clock}; ${command} >&2; ${clock}`))
    .trim()
    .split('\n')
    .map(Number)
  return to! - from!
}

async function shell(machine: string, command: string): Promise<string> {
  const ssm = new SSMClient({})
  try {
    const { Command } = await ssm.send(
      new SendCommandCommand({
        InstanceIds: [machine],
        DocumentName: 'AWS-RunShellScript',
        Parameters: { commands: ['set -e', command] },
      }),
    )
    for (;;) {
      await sleep(200)
      const answer = await ssm.send(
        new GetCommandInvocationCommand({ InstanceId: machine, CommandId: Command!.CommandId }),
      )
      if (answer.Status === 'Success') return answer.StandardOutputContent ?? ''
      if (answer.Status !== 'Pending' && answer.Status !== 'InProgress')
        throw new Error(`${command}: ${answer.Status}: ${answer.StandardErrorContent}`)
    }
  } finally {
    ssm.destroy()
  }
}
