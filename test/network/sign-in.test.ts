import { createHash, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { startCloud, type Cloud } from '#small-cloud'
import { ec2Error } from '../../backends/ec2/errors'
import { awsError } from '../../backends/ec2/sdk/errors'
import { explainingSignIn, readSignInEnd } from '../../network/sign-in'
import { s3ErrorOf } from '../../storage/s3/errors'

jest.setTimeout(30_000)

const SESSION = 'arn:aws:iam::111122223333:user/ada'
const LOGIN = `login_session = ${SESSION}\n`
const CENTER =
  'sso_session = corp\nsso_account_id = 111122223333\nsso_role_name = ml\n[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://corp.awsapps.com/start\n'
const KEYS = 'aws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = secret\n'
const ENDED = '2026-01-02T03:04:05Z'

let home: string
const before = { ...process.env }

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'sign-in-'))
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  Object.assign(process.env, {
    HOME: home,
    AWS_CONFIG_FILE: join(home, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: join(home, 'credentials'),
    AWS_LOGIN_CACHE_DIRECTORY: join(home, 'login'),
    AWS_EC2_METADATA_DISABLED: 'true',
  })
})
afterEach(() => {
  process.env = { ...before }
  rmSync(home, { recursive: true, force: true })
})

const sha = (kind: string, text: string): string => createHash(kind).update(text).digest('hex')

/** Writes the files that the AWS CLI keeps after `aws sso login` and `aws login`. */
function signedInUntil(expiresAt: string, more: object = {}): void {
  const folders = [join(home, '.aws', 'sso', 'cache'), join(home, 'login')]
  for (const folder of folders) mkdirSync(folder, { recursive: true })
  const token = { accessToken: 'token', expiresAt, ...more }
  writeFileSync(join(folders[0]!, `${sha('sha1', 'corp')}.json`), JSON.stringify(token))
}

const loginFile = (): string => join(home, 'login', `${sha('sha256', SESSION)}.json`)

/** Writes the file that `aws login` keeps, with keys until an instant. */
function loggedInUntil(expiresAt: string): void {
  mkdirSync(join(home, 'login'), { recursive: true })
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = { accessKeyId: 'ASIAOLD', secretAccessKey: 's', sessionToken: 't', accountId: '111122223333' }
  const token = {
    accessToken: { ...keys, expiresAt },
    clientId: 'arn:aws:signin:::devtools/same-device',
    refreshToken: 'first',
    dpopKey: privateKey.export({ format: 'pem', type: 'sec1' }),
  }
  writeFileSync(loginFile(), JSON.stringify(token))
}

/** How the SDK's own providers fail with this configuration, as backends and stores report it. */
async function failureOf(
  config: string,
  { profile, endpoint }: { profile?: string; endpoint?: string } = {},
) {
  writeFileSync(join(home, 'config'), config)
  const client = explainingSignIn(
    new STSClient({ region: 'us-east-1', maxAttempts: 1, profile, endpoint }),
    profile,
  )
  const error = await client.send(new GetCallerIdentityCommand({})).then(
    () => new Error('signed in'),
    (thrown: unknown) => thrown,
  )
  const { class: failureClass, message, hint } = ec2Error(awsError(error)).failure
  return { failureClass, message, hint, stored: s3ErrorOf(error, 'read a') }
}

describe('without a valid sign-in, the SDK names what has ended and the command that renews it:', () => {
  it.each<[string, string, { class?: string; message: string; hint: string }]>([
    [
      'IAM Identity Center, whose session has ended',
      `[profile ml]\n${CENTER}`,
      {
        message: `The session of the AWS profile ml (IAM Identity Center) has ended at ${ENDED}.`,
        hint: 'Run `aws sso login --profile ml`.',
      },
    ],
    [
      'a role taken with that session, two profiles further',
      `[profile ml]\nrole_arn = arn:aws:iam::1:role/a\nsource_profile = middle\n[profile middle]\nrole_arn = arn:aws:iam::1:role/b\nsource_profile = base\n[profile base]\n${CENTER}`,
      {
        message: `The session of the AWS profile base (IAM Identity Center), with which ml takes its role, has ended at ${ENDED}.`,
        hint: 'Run `aws sso login --profile base`.',
      },
    ],
    [
      '`aws login`, never done here',
      `[profile ml]\n${LOGIN}`,
      {
        message: 'The session of the AWS profile ml (aws login) does not exist.',
        hint: 'Run `aws login --profile ml`.',
      },
    ],
    [
      'a role taken with `aws login`',
      `[profile ml]\nrole_arn = arn:aws:iam::1:role/a\nsource_profile = default\n[default]\n${LOGIN}`,
      {
        message:
          'The session of the AWS profile default (aws login), with which ml takes its role, does not exist.',
        hint: 'Run `aws login`.',
      },
    ],
    [
      'a program that gives no keys',
      '[profile ml]\ncredential_process = false\n',
      {
        message: 'The credential_process of the AWS profile ml gives no valid keys.',
        hint: 'Sign in with the program that it runs; `aws sts get-caller-identity --profile ml` shows its error.',
      },
    ],
    [
      'a program that gives old keys',
      `[profile ml]\ncredential_process = echo '{"Version":1,"AccessKeyId":"a","SecretAccessKey":"b","Expiration":"${ENDED}"}'\n`,
      {
        message: 'The credential_process of the AWS profile ml gives no valid keys.',
        hint: 'Sign in with the program that it runs; `aws sts get-caller-identity --profile ml` shows its error.',
      },
    ],
    [
      'a role that needs an MFA code',
      `[profile ml]\nrole_arn = arn:aws:iam::1:role/a\nmfa_serial = arn:aws:iam::1:mfa/ada\nsource_profile = base\n[profile base]\n${KEYS}`,
      {
        class: 'auth',
        message: 'The AWS profile ml needs a code of its MFA device.',
        hint: 'Run `eval "$(aws configure export-credentials --profile ml --format env)"`, which asks for it.',
      },
    ],
    [
      'a profile that does not exist',
      '[profile other]\n',
      {
        class: 'auth',
        message: 'The AWS profile ml has no usable credentials.',
        hint: 'Run `aws configure --profile ml`; `aws configure list-profiles` shows the profiles that exist.',
      },
    ],
  ])('%s', async (_, config, { class: failureClass = 'transient', message, hint }) => {
    signedInUntil(ENDED)
    const found = await failureOf(config, { profile: 'ml' })
    expect(found).toMatchObject({ failureClass, message, hint })
    expect(found.stored.message).toContain(hint.replace(/^R/, 'r').replace(/^S/, 'S').replace(/\.$/, ''))
    expect(found.stored.isTransient).toBe(true)
  })

  it('the profile of AWS_PROFILE', async () => {
    process.env['AWS_PROFILE'] = 'ml'
    expect(await failureOf(`[profile ml]\n${LOGIN}`)).toMatchObject({ hint: 'Run `aws login --profile ml`.' })
  })

  it('a profile without access, whose session is valid, in the words of the SDK', async () => {
    const found = await failureOf('[profile ml]\nsso_start_url = https://corp.awsapps.com/start\n', {
      profile: 'ml',
    })
    expect(found.message).toMatch(/invalid SSO credentials/)
    expect(found.hint).not.toMatch(/aws sso login/)
  })
})

describe('a session of `aws login` whose keys must be renewed', () => {
  const REFUSED = (error: string) => ({ status: 403, type: 'AccessDeniedException', body: { error } })
  const ENDS = { hint: 'Run `aws login`.', message: expect.stringContaining(`has ended at ${ENDED}`) }

  it.each<[string, { status: number; type?: string; body: object }, object]>([
    ['has ended', REFUSED('TOKEN_EXPIRED'), ENDS],
    ['belongs to an old password', REFUSED('USER_CREDENTIALS_CHANGED'), ENDS],
    [
      'may not renew them',
      REFUSED('INSUFFICIENT_PERMISSIONS'),
      {
        message: 'AWS does not let the session of the profile default renew its keys.',
        hint: 'Have the policy SignInLocalDevelopmentAccess attached to this identity, then run `aws login`.',
      },
    ],
    [
      'renews them without a person',
      {
        status: 200,
        body: {
          accessToken: { accessKeyId: 'ASIANEW', secretAccessKey: 's', sessionToken: 't' },
          tokenType: 'aws_sigv4',
          expiresIn: 900,
          refreshToken: 'second',
        },
      },
      { message: 'signed in' },
    ],
  ])('%s', async (_, { status, type = '', body }, found) => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url!)
      const isRenewal = request.url === '/v1/token'
      response.writeHead(isRenewal ? status : 200, { 'x-amzn-errortype': type })
      response.end(isRenewal ? JSON.stringify(body) : '<GetCallerIdentityResponse/>')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    try {
      const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      process.env['AWS_ENDPOINT_URL'] = endpoint
      loggedInUntil(ENDED)
      const config = `[default]\nregion = us-east-1\n${LOGIN}`
      expect(await failureOf(config, { endpoint })).toMatchObject(found)
      expect(asked[0]).toBe('/v1/token')
      if (status === 200) expect(readFileSync(loginFile(), 'utf8')).toMatch(/ASIANEW[^]*second/)
    } finally {
      server.close()
    }
  })
})

describe('keys that AWS refuses', () => {
  let cloud: Cloud

  beforeEach(async () => {
    cloud = await startCloud({ world: { throttling: 'off' } })
  })
  afterEach(() => cloud.stop())

  it.each([
    ['ExpiredTokenException', `The AWS session in AWS_SESSION_TOKEN has ended at ${ENDED}.`, 'transient'],
    [
      'InvalidClientTokenId',
      'AWS refuses the credentials in AWS_ACCESS_KEY_ID (InvalidClientTokenId).',
      'auth',
    ],
    ['Throttling', 'injected', 'throttled'],
  ])('are named: %s', async (code, message, failureClass) => {
    Object.assign(process.env, {
      AWS_ACCESS_KEY_ID: cloud.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: cloud.credentials.secretAccessKey,
      AWS_CREDENTIAL_EXPIRATION: ENDED,
    })
    cloud.addFault({ fault: 'error', code, message: 'injected', where: { service: 'sts' } })
    expect(await failureOf('', { endpoint: cloud.endpoint })).toMatchObject({ message, failureClass })
  })
})

describe('the latest end of a sign-in', () => {
  const now = Date.parse('2026-11-29T10:00:00Z')
  const later = '2026-11-29T14:00:00Z'

  it.each<[string, string, object, number | undefined]>([
    ['is twelve hours away for `aws login`', LOGIN, {}, now + 12 * 3_600_000],
    ['is that of the token for IAM Identity Center', CENTER, {}, Date.parse(later)],
    ['is unknown for a token that the SDK renews', CENTER, { refreshToken: 'more' }, undefined],
    ['never comes for keys', KEYS, {}, undefined],
  ])('%s', async (_, config, token, end) => {
    signedInUntil(later, token)
    writeFileSync(join(home, 'config'), `[profile ml]\n${config}`)
    expect(await readSignInEnd(now, 'ml')).toBe(end)
  })
})
