/** Compares names that Crucible derives from a Region with the SDK's endpoint rules, and with the partitions of botocore where it is installed. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { S3Client } from '@aws-sdk/client-s3'
import { describe, expect, it } from '@jest/globals'
import { parseEc2Config } from '../../backends/ec2/config'
import { regionOfPlace } from '../../backends/ec2/market/region-names'
import { WORKER_PERMISSIONS, probesOf } from '../../backends/ec2/setup/permissions'
import { arnIn, partitionOf } from '../../network/partitions'
import { grantPolicies } from '../../storage/s3/grant-policy'
import { awsClients } from '../support/aws-clients'

interface Partition {
  id: string
  outputs: { dnsSuffix: string }
  regions: Record<string, unknown>
}

const READ = `
import json, os, botocore
print(open(os.path.join(os.path.dirname(botocore.__file__), 'data', 'partitions.json')).read())`

const USUAL: Partition[] = [
  ['aws', 'amazonaws.com', 'us-east-1'],
  ['aws-cn', 'amazonaws.com.cn', 'cn-north-1'],
  ['aws-us-gov', 'amazonaws.com', 'us-gov-west-1'],
  ['aws-eusc', 'amazonaws.eu', 'eusc-de-east-1'],
].map(([id = '', dnsSuffix = '', region = '']) => ({ id, outputs: { dnsSuffix }, regions: { [region]: {} } }))

const { python } = awsClients()
const partitions: Partition[] =
  python === undefined
    ? USUAL
    : (JSON.parse(execFileSync(python, ['-c', READ], { encoding: 'utf8' })) as { partitions: Partition[] })
        .partitions
/** Each Region that has its name in the form of one; botocore lists one global place for each partition too. */
const regions = [...partitions, ...USUAL].flatMap(({ id, regions: named }) =>
  Object.keys(named)
    .filter((region) => /-\d$/.test(region))
    .map((region) => ({ id, region })),
)

describe('every Region', () => {
  it('has the partition of botocore in ARNs, in grants and in the questions of doctor', () => {
    const found = regions.map(({ region }) => ({ id: partitionOf(region).name, region }))
    expect(found).toEqual(regions)
    for (const { id, region } of regions) {
      const facts = {
        account: '1',
        region,
        machineRoleArn: arnIn(region, 'iam::1:role/m'),
        machineProfile: 'm',
        bucket: 'b',
      }
      const arns = [
        grantPolicies({ bucket: 'b', prefix: '', region }, { jobId: 'j', attempt: 1 })[0]!,
        ...probesOf(WORKER_PERMISSIONS, facts).map(({ probe }) => probe.resource),
      ].flatMap((text) => text.match(/arn:[\w-]+:/g) ?? [])
      expect(new Set(arns)).toEqual(new Set([`arn:${id}:`]))
    }
  })

  it('is a Region in settings and in places', () => {
    for (const { region } of regions) {
      expect(parseEc2Config({ CRUCIBLE_EC2_REGION: region })).toHaveProperty('config.region', region)
      expect(regionOfPlace(`${region}a`)).toBe(region)
    }
  })

  it('has its store on a machine at the host that the SDK uses, unless it is cut off from the Internet', () => {
    const open = partitions.filter(({ outputs }) => outputs.dnsSuffix.startsWith('amazonaws.'))
    const named = regions.filter(({ id }) => open.some((one) => one.id === id)).map(({ region }) => region)
    const program = `import json, sys
from crucible_runner.store.s3.place import base_of
print(json.dumps([base_of("data", region, None).host for region in sys.argv[1:]]))`
    const hosts = JSON.parse(
      execFileSync('python3', ['-c', program, ...named], {
        encoding: 'utf8',
        env: { ...process.env, PYTHONPATH: join(__dirname, '../../runner') },
      }),
    ) as string[]
    const { endpointProvider } = new S3Client({ region: 'us-east-1' }).config as unknown as {
      endpointProvider: (wish: object) => { url: URL }
    }
    expect(hosts).toEqual(named.map((Region) => endpointProvider({ Bucket: 'data', Region }).url.host))
    expect(named).toContain('eusc-de-east-1')
  })
})
