import { EC2Client } from '@aws-sdk/client-ec2'
import { IAMClient } from '@aws-sdk/client-iam'
import { PricingClient } from '@aws-sdk/client-pricing'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas'
import { SSMClient } from '@aws-sdk/client-ssm'
import { STSClient } from '@aws-sdk/client-sts'
import type { Bucket, Ec2Api } from './api'
import { requestHandler } from '../../../network/aws'
import { explainingSignIn } from '../../../network/sign-in'
import { createAccountApi } from './account'
import { refusingStrangers } from './answers'
import { createCommandsApi } from './commands'
import { createLeftoversApi } from './leftovers'
import { createMachinesApi } from './machines'
import { createMarketApi } from './market'
import { createNetworkApi } from './network'
import { createReservingApi } from './reserving'
import { roleCredentials } from './role-credentials'
import { pricingRegionOf } from './prices'

/** Options for reaching AWS; credentials come from the SDK's default chain. */
export interface SdkOptions {
  region: string
  /** A server that replaces AWS. */
  endpoint?: string
  /** ARN of the role that buys capacity in advance; the common credentials if missing. */
  buyerRole?: string
  /** Timeout of one call; suitable for AWS if missing. */
  patience?: Patience
}

interface Patience {
  readMs: number
  changeMs: number
}

const CONNECT_TIMEOUT_MS = 3_000
/** An instant fleet tries one pool after the other before it answers. */
const PATIENCE: Patience = { readMs: 15_000, changeMs: 90_000 }
/** Reads have no effect: three tries within the call. Mutating calls are sent once; the caller decides about retries. */
const READ_ATTEMPTS = 3

export interface Clients {
  reading: { ec2: EC2Client; ssm: SSMClient }
  changing: { ec2: EC2Client; ssm: SSMClient }
}

export function createSdkApi({ region, endpoint, buyerRole, patience = PATIENCE }: SdkOptions): Ec2Api {
  const common = { region, endpoint }
  const reading = { ...common, maxAttempts: READ_ATTEMPTS, requestHandler: handlerWithin(patience.readMs) }
  const changing = { ...common, maxAttempts: 1, requestHandler: handlerWithin(patience.changeMs) }
  const clients: Clients = {
    reading: {
      ec2: refusingStrangers(explainingSignIn(new EC2Client(reading))),
      ssm: explainingSignIn(new SSMClient(reading)),
    },
    changing: {
      ec2: refusingStrangers(explainingSignIn(new EC2Client(changing))),
      ssm: explainingSignIn(new SSMClient(changing)),
    },
  }
  const sts = explainingSignIn(new STSClient(reading))
  const buyer = buyerRole === undefined ? {} : { credentials: roleCredentials(sts, buyerRole) }
  return {
    account: createAccountApi({
      ec2: clients.reading.ec2,
      sts,
      iam: explainingSignIn(new IAMClient(reading)),
      quotas: explainingSignIn(new ServiceQuotasClient(reading)),
      ssm: clients.reading.ssm,
      s3Of: s3ClientsWith(reading),
      endpoint,
    }),
    market: createMarketApi(
      clients.reading.ec2,
      explainingSignIn(new PricingClient({ ...reading, region: pricingRegionOf(region) })),
    ),
    network: createNetworkApi(clients.reading.ec2),
    machines: createMachinesApi(clients),
    commands: createCommandsApi(clients),
    leftovers: createLeftoversApi(clients),
    reserving: createReservingApi({
      reading: refusingStrangers(new EC2Client({ ...reading, ...buyer })),
      changing: refusingStrangers(new EC2Client({ ...changing, ...buyer })),
    }),
  }
}

/** Creates one client for each bucket location; a non-AWS store has a separate endpoint. */
function s3ClientsWith(reading: S3ClientConfig & { region: string }): (bucket: Bucket) => S3Client {
  const clients = new Map<string, S3Client>()
  return ({ region = reading.region, endpoint = reading.endpoint }) => {
    const key = `${region} ${typeof endpoint === 'string' ? endpoint : ''}`
    const client =
      clients.get(key) ??
      explainingSignIn(
        new S3Client({
          ...reading,
          ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
          region,
        }),
      )
    clients.set(key, client)
    return client
  }
}

function handlerWithin(answerMs: number): object {
  return requestHandler({ connectMs: CONNECT_TIMEOUT_MS, answerMs })
}
