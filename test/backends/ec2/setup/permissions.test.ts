/** The permissions of workers are one list, and none of it can be missed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  DeleteRolePolicyCommand,
  GetRolePolicyCommand,
  PutRolePolicyCommand,
  SimulatePrincipalPolicyCommand,
} from '@aws-sdk/client-iam'
import { AssumeRoleCommand } from '@aws-sdk/client-sts'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { IMAGE_DEFAULT } from '../../../../backends/ec2/config'
import { createEc2Backend } from '../../../../backends/ec2'
import { STORE_PERMISSIONS, WORKER_PERMISSIONS } from '../../../../backends/ec2/setup/permissions'
import type { Cloud } from '#small-cloud'
import { clientsOf } from '../../../../packages/small-cloud/test/support'
import { CONFIG } from '../harness'
import { applied, emptyAccount, ignoring, setupOf } from './accounts'

jest.setTimeout(120_000)

const WORKER = 'crucible-worker'
const ALL = [...WORKER_PERMISSIONS, ...STORE_PERMISSIONS].map(({ action }) => action)

let cloud: Cloud
let settings: Record<string, string>
beforeAll(async () => {
  cloud = await emptyAccount({ linkedRoles: ['spot.amazonaws.com'] })
  await applied(setupOf(cloud))
  settings = (await setupOf(cloud).survey(ignoring())).settings
})
afterAll(() => cloud.stop())

/** What the check finds, in the name of the worker's role and nobody else. */
async function checked(): Promise<string[]> {
  const { sts } = clientsOf(cloud.endpoint)
  const RoleArn = `arn:aws:iam::111122223333:role/${WORKER}`
  const { Credentials: given } = await sts.send(new AssumeRoleCommand({ RoleArn, RoleSessionName: 'worker' }))
  const before = { ...process.env }
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: given!.AccessKeyId,
    AWS_SECRET_ACCESS_KEY: given!.SecretAccessKey,
    AWS_SESSION_TOKEN: given!.SessionToken,
  })
  try {
    const endpoint = new URLSearchParams({ endpoint: cloud.storeEndpoint! }).toString()
    const backend = await createEc2Backend(
      {
        ...{ ...CONFIG, image: IMAGE_DEFAULT },
        ...{ region: 'us-east-1', endpoint: cloud.endpoint, profile: settings['CRUCIBLE_EC2_PROFILE']! },
        subnets: settings['CRUCIBLE_EC2_SUBNETS']!.split(','),
        securityGroups: { ids: settings['CRUCIBLE_EC2_SECURITY_GROUPS']!.split(',') },
      },
      {
        ...{ clock: Date.now, runnerUrl: async () => '' },
        storeUrl: `${settings['CRUCIBLE_STORE']!}&${endpoint}`,
      },
    )
    const problems = await backend.check({ signal: ignoring() })
    return problems.map(({ message, remedy }) => `${message} ${remedy}`)
  } finally {
    process.env = before
  }
}

it('are those that the documentation prints', () => {
  const page = readFileSync(join(__dirname, '../../../../docs/reference/aws-account.md'), 'utf8')
  const [needed, useful] = JSON.parse(/```json\n([^]*?)```/.exec(page)![1]!) as { Action: string[] }[]
  const listed = (isOptional: boolean) =>
    WORKER_PERMISSIONS.filter((each) => (each.isOptional ?? false) === isOptional).map(({ action }) => action)
  expect([needed!.Action, useful!.Action]).toEqual([listed(false), listed(true)])
})

describe('the role of machines', () => {
  it.each(STORE_PERMISSIONS.map(({ action }) => action))('may not do %s', async (action) => {
    const { iam } = clientsOf(cloud.endpoint)
    const Bucket = new URL(settings['CRUCIBLE_STORE']!).host
    const ask = async (role: string): Promise<string[]> => {
      const { EvaluationResults } = await iam.send(
        new SimulatePrincipalPolicyCommand({
          PolicySourceArn: `arn:aws:iam::111122223333:role/${role}`,
          ActionNames: [action],
          ResourceArns: [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/jobs/any`],
        }),
      )
      return EvaluationResults!.map(({ EvalDecision }) => EvalDecision!)
    }
    expect(await ask('crucible-machine')).toEqual(['implicitDeny', 'implicitDeny'])
    expect(await ask('crucible-grant')).toContain('allowed')
  })
})

describe('the role of workers', () => {
  it('is enough', async () => {
    expect(await checked()).toEqual([])
  })

  it.each(ALL)('cannot do without %s: the check names it', async (action) => {
    const { iam } = clientsOf(cloud.endpoint)
    const PolicyName = action.startsWith('s3:') ? 'store' : 'machines'
    const at = { RoleName: WORKER, PolicyName }
    const { PolicyDocument = '' } = await iam.send(new GetRolePolicyCommand(at))
    const whole = decodeURIComponent(PolicyDocument)
    const less = JSON.parse(whole) as { Statement: { Action: string[] }[] }
    for (const statement of less.Statement)
      statement.Action = statement.Action.filter((each) => each !== action)
    await iam.send(new DeleteRolePolicyCommand(at))
    await iam.send(new PutRolePolicyCommand({ ...at, PolicyDocument: JSON.stringify(less) }))
    try {
      expect((await checked()).join('; ')).toContain(action)
    } finally {
      await iam.send(new PutRolePolicyCommand({ ...at, PolicyDocument: whole }))
    }
  })
})
