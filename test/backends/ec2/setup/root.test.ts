import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { createAccountSetup } from '../../../../backends/ec2/setup'
import { patiently } from '../../harness'

const before = { ...process.env }
let server: Server
let asked: string[]
let arn: string

/** An empty account that answers in the forms of AWS. */
const ANSWERS: Readonly<Record<string, () => [number, string]>> = {
  GetCallerIdentity: () => [
    200,
    `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>111122223333</Account><Arn>${arn}</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`,
  ],
  DescribeStacks: () => failed('ValidationError', 'Stack with id crucible does not exist'),
  GetEbsDefaultKmsKeyId: () => [
    200,
    '<GetEbsDefaultKmsKeyIdResponse><kmsKeyId>alias/aws/ebs</kmsKeyId></GetEbsDefaultKmsKeyIdResponse>',
  ],
  GetRole: () => failed('NoSuchEntity', 'no such role'),
  DescribeVpcs: () => [
    200,
    '<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-1</vpcId></item></vpcSet></DescribeVpcsResponse>',
  ],
}

function failed(code: string, message: string, status = 400): [number, string] {
  return [
    status,
    `<ErrorResponse><Error><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
  ]
}

beforeEach(async () => {
  asked = []
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const action = new URLSearchParams(body).get('Action') ?? `${request.method}`
      asked.push(action)
      const [status, text] = ANSWERS[action]?.() ?? [action === 'HEAD' ? 404 : 403, '']
      response.writeHead(status, { 'content-type': 'text/xml' }).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' })
})
afterEach(async () => {
  process.env = { ...before }
  await new Promise((resolve) => server.close(resolve))
})

describe('the root user of an account', () => {
  it.each(['arn:aws:iam::111122223333:root', 'arn:aws-cn:iam::111122223333:root'])(
    'is refused before anything is created, with what to make instead: %s',
    async (root) => {
      arn = root
      const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const setup = createAccountSetup({
        region: 'us-east-1',
        prefix: 'crucible',
        hasOwnNetwork: false,
        endpoint,
      })
      const { signal } = patiently()
      const refusal = {
        failure: {
          code: 'RootUser',
          message: expect.stringContaining('root user of the account 111122223333'),
          hint: expect.stringMatching(/AdministratorAccess.*`aws login`/),
        },
      }
      await expect(setup.survey(signal)).rejects.toMatchObject(refusal)
      await expect(setup.apply({ signal, onStep: () => undefined })).rejects.toMatchObject(refusal)
      expect(asked.filter((action) => !(action in ANSWERS) && action !== 'HEAD')).toEqual([])
    },
  )

  it('is no other person, who without a permission is sent to an administrator', async () => {
    arn = 'arn:aws:iam::111122223333:user/ada'
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const wish = { region: 'us-east-1', prefix: 'crucible', hasOwnNetwork: false, endpoint }
    const { DescribeStacks } = ANSWERS
    try {
      Object.assign(ANSWERS, { DescribeStacks: () => failed('AccessDenied', 'not authorized', 403) })
      await expect(createAccountSetup(wish).survey(patiently().signal)).rejects.toMatchObject({
        failure: { class: 'auth', hint: expect.stringContaining('crucible setup aws --terraform FOLDER') },
      })
    } finally {
      Object.assign(ANSWERS, { DescribeStacks })
    }
  })

  it.each([
    [{ boundary: 'limits' }, 'Invalid permissions boundary "limits"'],
    [
      { kmsKey: 'arn:aws:kms:us-east-1:111122223333:alias/store' },
      'Invalid KMS key "arn:aws:kms:us-east-1:111122223333:alias/store" for a store in us-east-1',
    ],
    [
      { kmsKey: 'arn:aws:kms:eu-west-1:111122223333:key/1234abcd' },
      'Invalid KMS key "arn:aws:kms:eu-west-1:111122223333:key/1234abcd" for a store in us-east-1',
    ],
    [{ rolePath: 'ml' }, 'Invalid path "ml" of roles'],
  ])(
    'is no other person, whose wrong choice is refused before anything is created: %j',
    async (choice, words) => {
      arn = 'arn:aws:iam::111122223333:user/ada'
      const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const wish = { region: 'us-east-1', prefix: 'crucible', hasOwnNetwork: false, ...choice, endpoint }
      const surveyed = (async () => createAccountSetup(wish).survey(patiently().signal))()
      await expect(surveyed).rejects.toThrow(words)
      expect(asked.filter((action) => !(action in ANSWERS) && action !== 'HEAD')).toEqual([])
    },
  )
})
