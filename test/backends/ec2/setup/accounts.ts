/** Accounts of the small cloud that have nothing yet, and the set-up of them. */
import { S3Client, ListBucketsCommand } from '@aws-sdk/client-s3'
import { createAccountSetup, type SetupOptions } from '../../../../backends/ec2/setup'
import type { AccountSetup, Step } from '../../../../backends/account'
import { storeFrontOver } from '../../../../cli/dev/versitygw/front'
import { startCloud, type Cloud, type WorldText } from '#small-cloud'
import { testFolder } from '../../../support/folders'
import { testVersitygw } from '../../../support/s3'
import { patient } from '../../../support/patience'

/** An account without any earlier use. */
export const EMPTY: WorldText = {
  regions: { 'us-east-1': { zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'], hasDefaultVpc: false } },
  roles: {},
  linkedRoles: [],
  throttling: 'off',
}

export async function emptyAccount(world: WorldText = {}): Promise<Cloud> {
  const folder = testFolder('account')
  const executable = await testVersitygw()
  return startCloud({
    world: { ...EMPTY, ...world },
    startFront: storeFrontOver({ executable, directory: folder }),
  })
}

export function setupOf(cloud: Cloud, options: Partial<SetupOptions> = {}): Required<AccountSetup> {
  process.env['AWS_ACCESS_KEY_ID'] = cloud.credentials.accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = cloud.credentials.secretAccessKey
  return createAccountSetup({
    ...{ prefix: 'crucible', hasOwnNetwork: false, region: 'us-east-1' },
    ...{ endpoint: cloud.endpoint, storeEndpoint: cloud.storeEndpoint! },
    ...options,
  })
}

export const ignoring = () => AbortSignal.timeout(patient(120_000))

export async function applied(setup: AccountSetup, signal = ignoring()): Promise<Step[]> {
  return setup.apply({ signal, onStep: () => {} })
}

export async function removed(setup: AccountSetup, hasData = false): Promise<Step[]> {
  return setup.remove({ signal: ignoring(), hasData, onStep: () => {} })
}

/** All that an account has, buckets included. */
export async function everythingOf(cloud: Cloud): Promise<object> {
  const client = storeClient(cloud)
  const { Buckets = [] } = await client.send(new ListBucketsCommand({}))
  client.destroy()
  return { ...cloud.account(), buckets: Buckets.map(({ Name }) => Name) }
}

export function storeClient(cloud: Cloud): S3Client {
  const { accessKeyId, secretAccessKey } = cloud.credentials
  return new S3Client({
    ...{ endpoint: cloud.storeEndpoint!, region: cloud.region, forcePathStyle: true },
    credentials: { accessKeyId, secretAccessKey },
  })
}
