import { GetEbsDefaultKmsKeyIdCommand, type EC2Client } from '@aws-sdk/client-ec2'
import {
  GetInstanceProfileCommand,
  GetRoleCommand,
  paginateListAttachedRolePolicies,
  paginateSimulatePrincipalPolicy,
  type IAMClient,
} from '@aws-sdk/client-iam'
import { DeleteObjectCommand, HeadBucketCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas'
import { GetParameterCommand, type SSMClient } from '@aws-sdk/client-ssm'
import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts'
import type { AccountApi, Bucket, DeniedAction } from './api'
import { call } from './errors'
import { readPlan } from './plan'
import { readQuota, readQuotaRequests } from './quota-calls'
import { contextOf } from './simulation'

interface AccountClients {
  ec2: EC2Client
  sts: STSClient
  iam: IAMClient
  quotas: ServiceQuotasClient
  ssm: SSMClient
  s3Of: (bucket: Bucket) => S3Client
  /** A server that replaces AWS. */
  endpoint?: string | undefined
}

export function createAccountApi({ ec2, sts, iam, quotas, ssm, s3Of, endpoint }: AccountClients): AccountApi {
  return {
    identity: (signal) => call(signal, () => identity(sts, signal)),
    plan: (signal) => readPlan(sts, { endpoint, signal }),
    quota: (code, signal) => readQuota(code, { client: quotas, signal }),
    quotaRequests: (signal) => readQuotaRequests({ client: quotas, signal }),
    deniedActions: (arn, { actions, probe: { resource, context } }, signal) =>
      call(signal, async () => {
        const denied: DeniedAction[] = []
        const pages = paginateSimulatePrincipalPolicy(
          { client: iam },
          {
            PolicySourceArn: arn,
            ActionNames: actions,
            ResourceArns: [resource],
            ContextEntries: contextOf(context),
          },
          { abortSignal: signal },
        )
        for await (const { EvaluationResults } of pages) {
          for (const {
            EvalActionName: action = '',
            EvalDecision,
            PermissionsBoundaryDecisionDetail: boundary,
          } of EvaluationResults ?? [])
            if (EvalDecision !== 'allowed')
              denied.push({ action, isOfBoundary: boundary?.AllowedByPermissionsBoundary === false })
        }
        return denied
      }),
    hasRole: (name, signal) => call(signal, async () => (await roleArn(iam, name, signal)) !== undefined),
    roleArn: (name, signal) => call(signal, () => roleArn(iam, name, signal)),
    profile: (name, signal) => call(signal, () => profileOf(iam, name, signal)),
    parameter: (name, signal) =>
      call(signal, async () => {
        const { Parameter } = await ssm.send(new GetParameterCommand({ Name: name }), { abortSignal: signal })
        return Parameter?.Value ?? ''
      }),
    diskKey: (signal) => call(signal, () => diskKey(ec2, signal)),
    bucketRegion: (bucket, signal) => call(signal, () => bucketRegion(s3Of(bucket), bucket.name, signal)),
    putIfAbsent: (bucket, key, signal) =>
      call(signal, async () => {
        try {
          await s3Of(bucket).send(
            new PutObjectCommand({ Bucket: bucket.name, Key: key, Body: 'probe', IfNoneMatch: '*' }),
            {
              abortSignal: signal,
            },
          )
          return true
        } catch (error) {
          if ((error as { name?: string }).name === 'PreconditionFailed') return false
          throw error
        }
      }),
    deleteObject: (bucket, key, signal) =>
      call(signal, async () => {
        await s3Of(bucket).send(new DeleteObjectCommand({ Bucket: bucket.name, Key: key }), {
          abortSignal: signal,
        })
      }),
  }
}

/** The KMS key that encrypts disks in a Region; `undefined` for AWS's own. */
export async function diskKey(ec2: EC2Client, signal: AbortSignal): Promise<string | undefined> {
  const { KmsKeyId } = await ec2.send(new GetEbsDefaultKmsKeyIdCommand({}), { abortSignal: signal })
  return KmsKeyId === undefined || KmsKeyId.endsWith('alias/aws/ebs') ? undefined : KmsKeyId
}

async function identity(sts: STSClient, signal: AbortSignal): ReturnType<AccountApi['identity']> {
  const { Account, Arn } = await sts.send(new GetCallerIdentityCommand({}), { abortSignal: signal })
  // The offset comes from the `Date` header of the answer; the SDK signs with it.
  const { systemClockOffset = 0 } = sts.config as { systemClockOffset?: number }
  return { account: Account ?? '', arn: Arn ?? '', clockAheadMs: systemClockOffset }
}

async function roleArn(iam: IAMClient, name: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { Role } = await iam.send(new GetRoleCommand({ RoleName: name }), { abortSignal: signal })
    return Role?.Arn ?? name
  } catch (error) {
    if (isNoSuch(error)) return undefined
    throw error
  }
}

async function profileOf(
  iam: IAMClient,
  name: string,
  signal: AbortSignal,
): ReturnType<AccountApi['profile']> {
  try {
    const { InstanceProfile } = await iam.send(new GetInstanceProfileCommand({ InstanceProfileName: name }), {
      abortSignal: signal,
    })
    const { RoleName: roleName, Arn } = InstanceProfile?.Roles?.[0] ?? {}
    if (roleName === undefined) return { policies: [] }
    const policies: string[] = []
    const pages = paginateListAttachedRolePolicies(
      { client: iam },
      { RoleName: roleName },
      { abortSignal: signal },
    )
    for await (const { AttachedPolicies } of pages)
      policies.push(...(AttachedPolicies ?? []).map(({ PolicyName }) => PolicyName ?? ''))
    return { roleName, roleArn: Arn, policies }
  } catch (error) {
    if (isNoSuch(error)) return undefined
    throw error
  }
}

function isNoSuch(error: unknown): boolean {
  return /NoSuchEntity/.test((error as { name?: string }).name ?? '')
}

/** A bucket of another Region answers with a redirect that names its Region. */
async function bucketRegion(s3: S3Client, bucket: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { BucketRegion } = await s3.send(new HeadBucketCommand({ Bucket: bucket }), { abortSignal: signal })
    return BucketRegion ?? (await s3.config.region())
  } catch (error) {
    const { name, $response } = error as { name?: string; $response?: { headers?: Record<string, string> } }
    if (name === 'NotFound' || name === 'NoSuchBucket') return undefined
    const elsewhere = $response?.headers?.['x-amz-bucket-region']
    if (elsewhere !== undefined) return elsewhere
    throw error
  }
}
