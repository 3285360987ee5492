import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { HOUR_MS } from '../../core/time/time'
import { parseLease } from '../../intake/documents'
import { FileStore } from '../../storage/file-store'
import { openGrant, sealGrant } from '../../storage/grants'
import { openGranter } from '../../storage/open-granter'
import { openStore } from '../../storage/open-store'
import { grantPolicies } from '../../storage/s3/grant-policy'
import { S3_ENVIRONMENT } from '../support/s3'

const GOLDEN = join(__dirname, '..', 'runner', 'golden')
const GRANT = { keyId: 'ASIA', secret: 's', sessionToken: 't', expiresAtMs: 1_795_503_600_000 }
const WISH = { jobId: 'job-a', attempt: 1, durationMs: 12 * HOUR_MS }
/** What the token service lets a session last. */
let secondsMax = 43_200
/** How long a policy it takes. */
let policyCharsMax = 2_048
let asked: URLSearchParams[] = []
let server: Server
const before = { ...process.env }

/** A token service, as far as its answers go. */
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => {
      const form = new URLSearchParams(body)
      asked.push(form)
      const action = form.get('Action')!
      if (Number(form.get('DurationSeconds')) > secondsMax) {
        response.writeHead(400)
        response.end(
          '<ErrorResponse><Error><Code>ValidationError</Code><Message>The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.</Message></Error></ErrorResponse>',
        )
        return
      }
      if (form.get('Policy')!.length > policyCharsMax) {
        response.writeHead(400)
        response.end(
          '<ErrorResponse><Error><Code>PackedPolicyTooLarge</Code><Message>Packed size is 104%.</Message></Error></ErrorResponse>',
        )
        return
      }
      const credentials =
        '<Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>' +
        `<Expiration>${new Date(GRANT.expiresAtMs).toISOString()}</Expiration></Credentials>`
      response.end(
        `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result>${credentials}</${action}Result></${action}Response>`,
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  Object.assign(process.env, S3_ENVIRONMENT, {
    AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  })
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  process.env = before
})
beforeEach(() => {
  secondsMax = 43_200
  policyCharsMax = 2_048
  asked = []
})

const store = openStore('s3://bucket/team')

describe('a grant', () => {
  it('comes from a role, for one attempt', async () => {
    const granter = openGranter(store, { roleArn: 'arn:aws:iam::1:role/machines' })!
    expect(await granter.grant(WISH)).toEqual(GRANT)
    expect(asked[0]!.get('Action')).toBe('AssumeRole')
    expect(asked[0]!.get('RoleSessionName')).toBe('crucible-job-a-1')
    expect(asked[0]!.get('DurationSeconds')).toBe('43200')
  })

  it('is shorter where the token service allows no more, and asked for so from then on', async () => {
    secondsMax = 3_600
    const granter = openGranter(store, { roleArn: 'arn:aws:iam::1:role/machines' })!
    expect(granter.durationMsMax).toBe(12 * HOUR_MS)
    await granter.grant(WISH)
    expect(granter.durationMsMax).toBe(HOUR_MS)
    await granter.grant(WISH)
    expect(asked.map((form) => form.get('DurationSeconds'))).toEqual(['43200', '3600', '3600'])
    secondsMax = 100
    await expect(granter.grant(WISH)).rejects.toThrow(/Let Crucible take on arn:aws:iam::1:role\/machines/)
  })

  it('is for the whole folder of its attempt if the token service takes no narrower policy', async () => {
    const granter = openGranter(store, { roleArn: 'arn:aws:iam::1:role/machines' })!
    await granter.grant(WISH)
    expect(asked[0]!.get('Policy')).not.toContain('attempts/1/*"')
    policyCharsMax = asked[0]!.get('Policy')!.length - 1
    expect(await granter.grant(WISH)).toEqual(GRANT)
    expect(asked[2]!.get('Policy')).toContain('attempts/1/*"')
  })

  it('comes from the keys of a user if there is no role', async () => {
    expect(await openGranter(store, {})!.grant(WISH)).toEqual(GRANT)
    expect(asked[0]!.get('Action')).toBe('GetFederationToken')
    expect(asked[0]!.get('Name')!.length).toBeLessThanOrEqual(32)
  })

  it('is what the operator made if there is no token service, and nothing if the store needs none', async () => {
    const keys = { keyId: 'AKIA', secret: 's' }
    const made = await openGranter(store, { keys })!.grant(WISH)
    expect(made).toEqual({ ...keys, sessionToken: null, expiresAtMs: null })
    expect(asked).toEqual([])
    expect(openGranter(new FileStore('/tmp', Date.now), {})).toBeUndefined()
  })

  it('travels sealed, as the other side expects it', () => {
    const key = Buffer.alloc(32, 7)
    expect(openGrant(key, sealGrant(key, GRANT))).toEqual(GRANT)
    expect(() => openGrant(Buffer.alloc(32, 8), sealGrant(key, GRANT))).toThrow(/another key/)
    const lease = parseLease(readFileSync(join(GOLDEN, 'lease-with-grant.json'), 'utf8'))
    const golden: unknown = JSON.parse(readFileSync(join(GOLDEN, 'grant-of-a-session.json'), 'utf8'))
    expect(openGrant(key, lease.grant!)).toEqual(golden)
  })

  it('has a policy that the token service takes, however long the names are', () => {
    const place = { bucket: 'b'.repeat(63), prefix: `${'p'.repeat(60)}/`, region: 'us-gov-west-1' }
    const [policy] = grantPolicies(place, { jobId: 'j'.repeat(60), attempt: 100 })
    expect(policy!.length).toBeLessThan(2_048)
    const usual = { bucket: 'b'.repeat(40), prefix: `${'p'.repeat(20)}/` }
    const [narrow, wide] = grantPolicies(usual, { jobId: 'j'.repeat(40), attempt: 100 })
    expect(narrow!.length).toBeLessThan(2_048)
    expect(narrow).not.toContain('attempts/100/*"')
    expect(wide).toContain('attempts/100/*"')
    expect(policy).toContain('arn:aws-us-gov:s3:::')
  })

  it('has a policy that lets machines use keys through S3 alone, and for their own bucket', () => {
    const [policy] = grantPolicies({ bucket: 'b', prefix: 'team/', region: 'us-east-1' }, WISH)
    const { Statement } = JSON.parse(policy!) as { Statement: object[] }
    const ofKeys = Statement.filter((each) => JSON.stringify(each).includes('kms:'))
    const Condition = {
      StringLike: {
        'kms:ViaService': 's3.*',
        'kms:EncryptionContext:aws:s3:arn': ['arn:aws:s3:::b', 'arn:aws:s3:::b/team/*'],
      },
    }
    expect(ofKeys).toMatchObject([{ Condition }])
  })

  it('has a policy that lets machines use the key of an encrypted bucket in AWS', () => {
    const policyOf = (place: object) => grantPolicies({ bucket: 'b', prefix: '', ...place }, WISH)[0]
    expect(policyOf({ region: 'us-east-1' })).toContain('"kms:GenerateDataKey"')
    const endpoint = 'https://bucket.vpce-1a-2b.s3.eusc-de-east-1.vpce.amazonaws.eu'
    const inPrivate = policyOf({ region: 'eusc-de-east-1', endpoint })
    expect(inPrivate).toContain('"kms:GenerateDataKey"')
    expect(inPrivate).toContain('arn:aws-eusc:s3:::b')
    const roleArn = 'arn:aws:iam::111122223333:role/ml/machine'
    const behindProxy = { bucket: 'b', prefix: '', region: 'us-east-1', endpoint: 'https://s3.proxy.corp' }
    expect(grantPolicies(behindProxy, { ...WISH, roleArn })[0]).toContain('"kms:GenerateDataKey"')
    for (const host of ['127.0.0.1:7070', 'minio-1.elb.us-east-1.amazonaws.com', 's3.amazonaws.com.evil.org'])
      expect(policyOf({ region: 'us-east-1', endpoint: `http://${host}` })).not.toContain('kms:')
  })
})
