/** Other people's clients find their credentials in a machine's metadata. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from '@jest/globals'
import { credentialsDocument, instanceProfileDocument, metadataOf } from '#small-cloud/machines/metadata'
import { MetadataService } from '#small-cloud/machines/metadata-service'
import { awsClients } from '../support/aws-clients'

const run = promisify(execFile)
const ROOT = join(__dirname, '../..')
const services: MetadataService[] = []

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()))
})

const FACTS = {
  instanceId: 'i-0123456789abcdef0',
  instanceType: 'g5.xlarge',
  imageId: 'ami-0123456789abcdef0',
  accountId: '123456789012',
  region: 'eu-west-1',
  zone: 'eu-west-1b',
  zoneId: 'euw1-az2',
  privateIp: '10.0.3.7',
  architecture: 'x86_64',
  capacityType: 'spot',
  launchedAt: new Date('2026-11-21T10:00:00.500Z'),
  tags: {},
} as const

describe('credentials from the metadata service', () => {
  let keys = 0

  async function serveCredentials() {
    const service = new MetadataService(
      {
        ...metadataOf(FACTS),
        'iam/info': instanceProfileDocument({
          arn: 'arn:aws:iam::123456789012:instance-profile/crucible',
          id: 'AIPAEXAMPLE',
          updatedAt: new Date(),
        }),
        'iam/security-credentials/crucible-node': () =>
          credentialsDocument({
            accessKeyId: `ASIAEXAMPLE${++keys}`,
            secretAccessKey: 'secret/key',
            sessionToken: 'session//token==',
            updatedAt: new Date(),
            expiresAt: new Date(Date.now() + 3_600_000),
          }),
      },
      '',
      { isOwn: () => true },
    )
    services.push(service)
    const endpoint = await service.listen()
    return {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: endpoint,
      AWS_CONFIG_FILE: '/nonexistent/config',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent/credentials',
    } as Record<string, string>
  }

  it('are found by the SDK for JavaScript without configuration, with its Region', async () => {
    const program = `
      const { STSClient } = require('@aws-sdk/client-sts')
      const client = new STSClient({ region: 'eu-west-1' })
      client.config.credentials().then((found) => console.log(JSON.stringify(found)))`
    const { stdout } = await run(process.execPath, ['-e', program], {
      cwd: ROOT,
      env: await serveCredentials(),
    })
    expect(JSON.parse(stdout)).toMatchObject({
      accessKeyId: expect.stringMatching(/^ASIAEXAMPLE\d+$/),
      secretAccessKey: 'secret/key',
      sessionToken: 'session//token==',
      expiration: expect.any(String),
    })
  })

  const { python, aws } = awsClients()
  const withBoto = python === undefined ? it.skip : it

  withBoto('are found by boto3 without configuration, with its Region', async () => {
    const program = `
import json, boto3, botocore.utils
found = boto3.Session().get_credentials()
frozen = found.get_frozen_credentials()
region = botocore.utils.IMDSRegionProvider(botocore.session.get_session()).provide()
print(json.dumps([found.method, frozen.access_key, frozen.token, region]))`
    const { stdout } = await run(python!, ['-c', program], { env: await serveCredentials() })
    expect(JSON.parse(stdout)).toEqual([
      'iam-role',
      expect.stringMatching(/^ASIAEXAMPLE\d+$/),
      'session//token==',
      'eu-west-1',
    ])
  })

  const withCli = aws === undefined ? it.skip : it

  withCli('are found by the aws CLI without configuration', async () => {
    const { stdout } = await run(aws!, ['configure', 'list'], {
      env: { ...process.env, ...(await serveCredentials()), HOME: process.env['HOME']! },
    })
    expect(stdout).toMatch(/access_key\s.*iam-role/)
  })
})
