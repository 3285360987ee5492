import { CloudFormationClient } from '@aws-sdk/client-cloudformation'
import { EC2Client } from '@aws-sdk/client-ec2'
import { IAMClient } from '@aws-sdk/client-iam'
import { S3Client } from '@aws-sdk/client-s3'
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas'
import { STSClient } from '@aws-sdk/client-sts'
import { requestHandler } from '../../../network/aws'
import { explainingSignIn } from '../../../network/sign-in'

export interface Clients {
  stacks: CloudFormationClient
  ec2: EC2Client
  iam: IAMClient
  s3: S3Client
  sts: STSClient
  quotas: ServiceQuotasClient
  /** A server that replaces AWS. */
  endpoint?: string
}

export interface Access {
  region: string
  profile?: string
  /** A server that replaces AWS. */
  endpoint?: string
  storeEndpoint?: string
}

const CONNECT_TIMEOUT_MS = 5_000
const ANSWER_TIMEOUT_MS = 20_000
/** CloudFormation throttles an account after a few requests per second; set-up has minutes. */
const TRIES_MAX = 8

export function createClients({ region, profile, endpoint, storeEndpoint = endpoint }: Access): Clients {
  const common = {
    region,
    profile,
    endpoint,
    maxAttempts: TRIES_MAX,
    requestHandler: requestHandler({ connectMs: CONNECT_TIMEOUT_MS, answerMs: ANSWER_TIMEOUT_MS }),
  }
  const signing = <C extends object>(client: C): C => explainingSignIn(client, profile)
  return {
    stacks: signing(new CloudFormationClient(common)),
    ec2: signing(new EC2Client(common)),
    iam: signing(new IAMClient(common)),
    s3: signing(
      new S3Client({ ...common, endpoint: storeEndpoint, forcePathStyle: storeEndpoint !== undefined }),
    ),
    sts: signing(new STSClient(common)),
    quotas: signing(new ServiceQuotasClient(common)),
    endpoint,
  }
}
