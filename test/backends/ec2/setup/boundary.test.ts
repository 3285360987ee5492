import { IAMClient } from '@aws-sdk/client-iam'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { checkBoundary } from '../../../../backends/ec2/setup/boundary'
import { createClients } from '../../../../backends/ec2/setup/clients'
import type { Place } from '../../../../backends/ec2/setup/site'

const BOUNDARY = 'arn:aws:iam::111122223333:policy/limits'
const DOCUMENT = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'

type Send = (command: { constructor: { name: string }; input: Record<string, unknown> }) => Promise<object>

let asked: { name: string; input: Record<string, unknown> }[]
let denied: string[]
let failing: Record<string, string>

/** IAM with a policy, in the answers that AWS documents. */
const send: Send = async (command) => {
  const name = command.constructor.name.replace(/Command$/, '')
  asked.push({ name, input: command.input })
  if (failing[name] !== undefined)
    throw Object.assign(new Error('refused'), {
      name: failing[name],
      $metadata: { httpStatusCode: 403 },
    })
  if (name === 'GetPolicy') return { Policy: { DefaultVersionId: 'v3' } }
  if (name === 'GetPolicyVersion') return { PolicyVersion: { Document: encodeURIComponent(DOCUMENT) } }
  const actions = command.input['ActionNames'] as string[]
  return {
    EvaluationResults: actions.map((EvalActionName) => ({
      EvalActionName,
      EvalDecision: denied.includes(EvalActionName) ? 'implicitDeny' : 'allowed',
    })),
  }
}

beforeEach(() => {
  ;[asked, denied, failing] = [[], [], {}]
  jest.spyOn(IAMClient.prototype, 'send').mockImplementation(send as never)
})
afterEach(() => void jest.restoreAllMocks())

function check(
  boundary: string | undefined,
  letsWorkersBuy = false,
  keys: Record<string, string> = {},
): Promise<string[]> {
  const site = {
    clients: createClients({ region: 'us-east-1', endpoint: 'http://127.0.0.1:9' }),
    signal: new AbortController().signal,
    account: '111122223333',
    region: 'us-east-1',
    bucket: 'store',
    prefix: 'crucible',
    parameters: boundary === undefined ? {} : { PermissionsBoundary: boundary, ...keys },
  }
  return checkBoundary({ sites: [site], identity: '', letsWorkersBuy } as unknown as Place)
}

describe('the permissions boundary of a set-up', () => {
  it('is not asked about where none is set', async () => {
    expect(await check(undefined)).toEqual([])
    expect(asked).toEqual([])
  })

  it('is simulated alone, in its default version, for each resource that the roles use', async () => {
    expect(await check(BOUNDARY)).toEqual([])
    expect(asked[1]).toEqual({ name: 'GetPolicyVersion', input: { PolicyArn: BOUNDARY, VersionId: 'v3' } })
    const simulated = asked.slice(2)
    for (const { name, input } of simulated) {
      expect(name).toBe('SimulateCustomPolicy')
      expect(input).toMatchObject({
        PermissionsBoundaryPolicyInputList: [DOCUMENT],
        PolicyInputList: [expect.stringContaining('"Action":"*"')],
      })
    }
    const actions = simulated.flatMap(({ input }) => input['ActionNames'] as string[])
    expect(actions).toEqual(expect.arrayContaining(['ec2:RunInstances', 's3:PutObject', 'iam:PassRole']))
    // Rights that only improve something do not keep an account from its set-up.
    expect(actions).not.toContain('pricing:GetProducts')
    expect(actions).not.toContain('ec2:PurchaseCapacityBlock')
  })

  it('is refused with each needed right that it takes away', async () => {
    denied = ['iam:PassRole', 'ec2:CreateFleet', 'ec2:PurchaseCapacityBlock']
    const words = 'does not allow what the roles need: ec2:CreateFleet, iam:PassRole'
    await expect(check(BOUNDARY)).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringMatching(new RegExp(`${words}$`)) },
    })
    await expect(check(BOUNDARY, true)).rejects.toThrow('ec2:PurchaseCapacityBlock')
    denied = ['kms:GenerateDataKey', 'kms:CreateGrant']
    expect(await check(BOUNDARY)).toEqual([])
    const keys = { KmsKeyArn: 'arn:aws:kms:::key/a', DiskKeyArns: 'arn:aws:kms:::key/b,arn:aws:kms:::key/c' }
    await expect(check(BOUNDARY, false, keys)).rejects.toThrow(
      /roles need: kms:GenerateDataKey, kms:CreateGrant$/,
    )
  })

  it.each([
    ['limits', {}, /^Invalid permissions boundary "limits"/],
    ['arn:aws:iam::111122223333:role/admin', {}, /^Invalid permissions boundary/],
    [BOUNDARY, { GetPolicy: 'NoSuchEntityException' }, /^There is no policy arn/],
    [BOUNDARY, { SimulateCustomPolicy: 'Throttling' }, /^refused$/],
  ])('is refused: %s %j', async (boundary, failures, message) => {
    failing = failures
    await expect(check(boundary)).rejects.toThrow(message)
  })

  it.each(['GetPolicy', 'GetPolicyVersion', 'SimulateCustomPolicy'])(
    'is taken, with a remark, from a person without the right to %s',
    async (action) => {
      failing = { [action]: 'AccessDenied' }
      expect(await check(BOUNDARY)).toEqual([expect.stringContaining('was not checked')])
    },
  )
})
