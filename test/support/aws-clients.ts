import type { InstanceTypeInfo } from '@aws-sdk/client-ec2'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pythonClients } from './python-clients'

/** Other people's clients: those that set-up got (`tools/aws-clients.mjs`), else those that are installed on this host. */
export interface AwsClients {
  /** A Python that has boto3, if one is installed. */
  python: string | undefined
  aws: string | undefined
}

export function awsClients(): AwsClients {
  const bin = pythonClients('aws-clients')
  if (bin !== undefined) return { python: join(bin, 'python3'), aws: join(bin, 'aws') }
  return {
    python: works('python3', ['-c', 'import boto3']) ? 'python3' : undefined,
    aws: works('aws', ['--version']) ? 'aws' : undefined,
  }
}

function works(program: string, args: string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0
}

const DESCRIBED_TYPES = `
import gzip, importlib.util, json, os, sys
spec = importlib.util.find_spec("moto")
if spec is None: sys.exit(3)
path = os.path.join(os.path.dirname(spec.origin), "ec2", "resources", "instance_types.json.gz")
json.dump(list(json.load(gzip.open(path)).values()), sys.stdout)
`

/** Answers of the real `DescribeInstanceTypes` that moto brings along; `undefined` without moto. */
export function describedTypes(python: string): InstanceTypeInfo[] | undefined {
  const { status, stdout } = spawnSync(python, ['-c', DESCRIBED_TYPES], { maxBuffer: 2 ** 28 })
  return status === 0 ? (JSON.parse(String(stdout)) as InstanceTypeInfo[]) : undefined
}

const JUDGE = join(__dirname, 'python', 'judge_wire.py')

export interface WireVerdict {
  judged: number
  actions: string[]
  problems: string[]
}

/** The operations (`ec2:RunInstances`) that this Python's botocore is too old to judge. */
export function unknownOperations(python: string, operations: readonly string[]): string[] {
  const { stdout } = spawnSync(python, [JUDGE, ...operations], { encoding: 'utf8' })
  return JSON.parse(stdout) as string[]
}

/** What botocore's models of the services say of recorded calls. */
export async function judgeWire(python: string, calls: readonly object[]): Promise<WireVerdict> {
  const child = spawn(python, [JUDGE])
  const [stdout, stderr]: [string[], string[]] = [[], []]
  child.stdout.on('data', (chunk) => stdout.push(String(chunk)))
  child.stderr.on('data', (chunk) => stderr.push(String(chunk)))
  child.stdin.end(JSON.stringify(calls))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the judge failed: ${stderr.join('')}`)
  return JSON.parse(stdout.join('')) as WireVerdict
}
