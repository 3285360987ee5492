/** The permissions boundary of the roles, checked before anything is created: with a wrong one, the roles are useless and hard to explain. */
import { GetPolicyCommand, GetPolicyVersionCommand, paginateSimulateCustomPolicy } from '@aws-sdk/client-iam'
import { arnIn, partitionOf } from '../../../network/partitions'
import { listOf } from '../../settings'
import { hasCode, invalid } from '../errors'
import { call } from '../sdk/errors'
import { contextOf } from '../sdk/simulation'
import {
  BUYER_PERMISSIONS,
  DISK_KEY_ACTIONS,
  probesOf,
  STORE_KEY_ACTIONS,
  STORE_PERMISSIONS,
  WORKER_PERMISSIONS,
} from './permissions'
import { roleName, type Place, type RegionSetup } from './site'

const POLICY = /^arn:[\w-]+:iam::(?:\d{12}|aws):policy\/[\w+=,.@/-]+$/
/** Stands for the policies of the roles, so that only the boundary can deny an action. */
const EVERYTHING = JSON.stringify({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }],
})
const DENIED_CODES = ['AccessDenied', 'AccessDeniedException']

/** Throws for a boundary with which the roles could not work. Returns remarks about what the caller may not check; none without a boundary. */
export async function checkBoundary({ sites: [home], letsWorkersBuy }: Place): Promise<string[]> {
  const { PermissionsBoundary: arn = '' } = home.parameters
  if (arn === '') return []
  if (!POLICY.test(arn))
    throw invalid(
      `Invalid permissions boundary "${arn}"`,
      `Write the ARN of a policy, such as ${arnIn(home.region, `iam::${home.account}:policy/NAME`)}.`,
    )
  let denied: string[]
  try {
    denied = await deniedBy(home, await documentOf(home, arn), letsWorkersBuy)
  } catch (error) {
    if (hasCode(error, 'NoSuchEntity', 'NoSuchEntityException'))
      throw invalid(`There is no policy ${arn}`, 'Create it, or give another one with --boundary.')
    if (!hasCode(error, ...DENIED_CODES)) throw error
    return [
      `Whether the permissions boundary ${arn} allows what the roles need was not checked: that needs iam:GetPolicy, iam:GetPolicyVersion and iam:SimulateCustomPolicy.`,
    ]
  }
  if (denied.length === 0) return []
  throw invalid(
    `The permissions boundary ${arn} does not allow what the roles need: ${denied.join(', ')}`,
    'Allow it in the boundary, or give another one with --boundary.',
  )
}

async function documentOf({ clients, signal }: RegionSetup, PolicyArn: string): Promise<string> {
  const options = { abortSignal: signal }
  return call(signal, async () => {
    const { Policy } = await clients.iam.send(new GetPolicyCommand({ PolicyArn }), options)
    const VersionId = Policy?.DefaultVersionId ?? 'v1'
    const version = new GetPolicyVersionCommand({ PolicyArn, VersionId })
    const { PolicyVersion } = await clients.iam.send(version, options)
    // IAM answers with the document in the encoding of URLs.
    return decodeURIComponent(PolicyVersion?.Document ?? '')
  })
}

/** The needed actions that a boundary does not allow. */
async function deniedBy(site: RegionSetup, boundary: string, letsWorkersBuy: boolean): Promise<string[]> {
  const { clients, signal, account, region, bucket, prefix, parameters } = site
  const machine = roleName(prefix, 'machine')
  const facts = {
    account,
    region,
    bucket,
    machineRoleArn: arnIn(region, `iam::${account}:role${parameters['RolePath'] ?? '/'}${machine}`),
    machineProfile: machine,
  }
  const wanted = [...WORKER_PERMISSIONS, ...STORE_PERMISSIONS, ...(letsWorkersBuy ? BUYER_PERMISSIONS : [])]
  const needed = wanted.filter(({ isOptional }) => isOptional !== true)
  const keys = { KmsKeyArn: STORE_KEY_ACTIONS, DiskKeyArns: DISK_KEY_ACTIONS }
  const ofKeys = Object.entries(keys).flatMap(([name, actions]) =>
    listOf(parameters[name] ?? '').map((resource) => ({
      actions,
      probe: {
        resource,
        context: {
          'kms:GrantIsForAWSResource': 'true',
          'kms:ViaService': `${name === 'KmsKeyArn' ? 's3' : 'ec2'}.${region}.${partitionOf(region).dnsSuffix}`,
        },
      },
    })),
  )
  const found = await Promise.all(
    [...probesOf(needed, facts), ...ofKeys].map(({ actions, probe: { resource, context } }) =>
      call(signal, async () => {
        const denied: string[] = []
        const pages = paginateSimulateCustomPolicy(
          { client: clients.iam },
          {
            PolicyInputList: [EVERYTHING],
            PermissionsBoundaryPolicyInputList: [boundary],
            ActionNames: actions,
            ResourceArns: [resource],
            ContextEntries: contextOf(context),
          },
          { abortSignal: signal },
        )
        for await (const { EvaluationResults = [] } of pages)
          for (const { EvalActionName = '', EvalDecision } of EvaluationResults)
            if (EvalDecision !== 'allowed') denied.push(EvalActionName)
        return denied
      }),
    ),
  )
  return [...new Set(found.flat())]
}
