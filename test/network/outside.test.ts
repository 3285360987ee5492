/** The proxy of a company, with a certificate authority of its own, is the only way to servers whose names only it resolves. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { z } from 'zod'
import { awsError } from '../../backends/ec2/sdk/errors'
import { createHttpClient } from '../../backends/http'
import { requestHandler } from '../../network/aws'
import { isDirect } from '../../network/config'
import { leadFetchOutside } from '../../network/fetch'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import { S3_ENVIRONMENT, startTestS3, type TestS3 } from '../support/s3'
import { patient } from '../support/patience'

const BUCKET = 'company'
const FAR_MS = patient(30_000)
const STS_ANSWER = (key: string, secret: string): string => `
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>${key}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey>
<SessionToken></SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`

const before = { ...process.env }
let folder: string
let s3: TestS3
let company: Server
let proxy: Server
let asked: string[]
let refusal: number | undefined
const stores: S3Store[] = []
const portOf = (server: Server): number => (server.address() as AddressInfo).port

beforeAll(async () => {
  Object.assign(process.env, S3_ENVIRONMENT)
  folder = mkdtempSync(join(tmpdir(), 'crucible-company-'))
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'ca.pem')]
  const about = ['-subj', '/CN=company.test', '-addext', 'subjectAltName=DNS:*.company.test']
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', [...made, '-keyout', key, '-out', certificate, ...about], { stdio: 'ignore' })
  s3 = await startTestS3(BUCKET)
  company = createTlsServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (asking, answer) => {
    const { host = '' } = asking.headers
    if (host.startsWith('web.')) return void answer.end('{"from":"the web"}')
    if (host.startsWith('sts.'))
      return void answer.end(
        STS_ANSWER(S3_ENVIRONMENT.AWS_ACCESS_KEY_ID, S3_ENVIRONMENT.AWS_SECRET_ACCESS_KEY),
      )
    const { method, url, headers } = asking
    const passed = request(s3.url + url!, { method, headers }, (given) => {
      answer.writeHead(given.statusCode!, given.headers)
      given.pipe(answer)
    })
    asking.pipe(passed)
  })
  proxy = createServer((_, answer) => void answer.writeHead(418).end())
  proxy.on('connect', ({ url = '' }, socket: Socket) => {
    asked.push(url)
    if (refusal !== undefined) return void socket.end(`HTTP/1.1 ${refusal} No\r\n\r\n`)
    const through = connect(portOf(company), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      through.pipe(socket).pipe(through)
    })
    for (const end of [socket, through]) end.on('error', () => undefined)
  })
  for (const server of [company, proxy]) await once(server.listen(0, '127.0.0.1'), 'listening')
}, 240_000)
afterAll(async () => {
  for (const server of [company, proxy]) server.close()
  await s3.close()
  rmSync(folder, { recursive: true })
  process.env = before
})

beforeEach(() => {
  asked = []
  refusal = undefined
  process.env = {
    ...before,
    ...S3_ENVIRONMENT,
    HTTPS_PROXY: `http://127.0.0.1:${portOf(proxy)}`,
    AWS_CA_BUNDLE: join(folder, 'ca.pem'),
    AWS_ENDPOINT_URL: 'https://s3.company.test',
  }
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
})

function opened(): S3Store {
  const store = openStore(`s3://${BUCKET}/at`) as S3Store
  stores.push(store)
  return store
}

describe('a store behind the proxy', () => {
  it(
    'is written in parts, listed and read',
    async () => {
      const store = opened()
      const [file, bytes] = [join(folder, 'big'), randomBytes(20 * 1024 * 1024)]
      writeFileSync(file, bytes)
      await store.putFile('some (odd) name!*1', file)
      await store.put('small', Buffer.from('text'))
      const keys = []
      for await (const { key } of store.list('')) keys.push(key)
      expect(keys).toEqual(['small', 'some (odd) name!*1'])
      const copy = join(folder, 'copy')
      await store.getFile('some (odd) name!*1', copy)
      expect(readFileSync(copy).equals(bytes)).toBe(true)
      expect(new Set(asked)).toEqual(new Set(['s3.company.test:443']))
    },
    FAR_MS,
  )

  it(
    'is not trusted without the authority of the company',
    async () => {
      delete process.env['AWS_CA_BUNDLE']
      await expect(opened().get('small')).rejects.toThrow(
        /: set AWS_CA_BUNDLE or SSL_CERT_FILE to the file with the certificate/,
      )
    },
    FAR_MS,
  )

  it(
    'names the proxy that refuses, without its password',
    async () => {
      refusal = 403
      process.env['HTTPS_PROXY'] = `http://me:hidden@127.0.0.1:${portOf(proxy)}`
      await expect(opened().get('small')).rejects.toThrow(
        /the proxy refuses connections to s3\.company\.test \(HTTP 403\)/,
      )
    },
    FAR_MS,
  )

  it(
    'is opened with the role of a profile',
    async () => {
      const config = join(folder, 'config')
      writeFileSync(
        config,
        `[profile base]\naws_access_key_id = a\naws_secret_access_key = b\n
[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = base\n`,
      )
      for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) delete process.env[name]
      Object.assign(process.env, {
        AWS_PROFILE: 'role',
        AWS_CONFIG_FILE: config,
        AWS_ENDPOINT_URL_STS: 'https://sts.company.test',
      })
      await opened().put('by-role', Buffer.from('text'))
      expect(asked).toEqual(expect.arrayContaining(['sts.company.test:443', 's3.company.test:443']))
    },
    FAR_MS,
  )
})

describe('a server of this machine', () => {
  it(
    'is reached without the proxy',
    async () => {
      process.env['AWS_ENDPOINT_URL'] = s3.url
      process.env['HTTP_PROXY'] = process.env['HTTPS_PROXY']
      delete process.env['NO_PROXY']
      delete process.env['no_proxy']
      await opened().put('near', Buffer.from('text'))
      expect(asked).toEqual([])
    },
    FAR_MS,
  )
})

function askWeb(): Promise<unknown> {
  const client = createHttpClient({
    name: 'Web',
    baseUrl: 'https://web.company.test',
    userAgent: 'test',
    headers: () => ({}),
  })
  const answer = z.object({ from: z.string() })
  const call = { method: 'GET', path: '/', answer, timeoutMs: FAR_MS } as const
  return client.call(call, new AbortController().signal)
}

describe('other servers behind the proxy', () => {
  it(
    'are reached by backends',
    async () => {
      expect(await askWeb()).toEqual({ from: 'the web' })
    },
    FAR_MS,
  )

  it(
    'are refused with the setting that names the authority',
    async () => {
      delete process.env['AWS_CA_BUNDLE']
      const words = 'DEPTH_ZERO_SELF_SIGNED_CERT. Set AWS_CA_BUNDLE or SSL_CERT_FILE'
      await expect(askWeb()).rejects.toThrow(words)
      const sts = new STSClient({
        region: 'us-east-1',
        endpoint: 'https://sts.company.test',
        requestHandler: requestHandler({ connectMs: FAR_MS }),
      })
      const failing = sts.send(new GetCallerIdentityCommand({})).catch((error: unknown) => awsError(error))
      expect(await failing).toMatchObject({ reach: 'unsent', remedy: expect.stringMatching(/AWS_CA_BUNDLE/) })
    },
    FAR_MS,
  )

  it(
    'are reached by fetch',
    async () => {
      const former = { dispatcher: getGlobalDispatcher(), fetch: globalThis.fetch }
      try {
        leadFetchOutside(process.env)
        expect(await (await fetch('https://web.company.test/')).json()).toEqual({ from: 'the web' })
      } finally {
        setGlobalDispatcher(former.dispatcher)
        globalThis.fetch = former.fetch
      }
      expect(asked).toEqual(['web.company.test:443'])
    },
    FAR_MS,
  )

  it('need a file of authorities that can be read', async () => {
    const former = globalThis.fetch
    process.env['AWS_CA_BUNDLE'] = '/nothing/here.pem'
    leadFetchOutside(process.env)
    await expect(fetch('https://web.company.test/')).rejects.toThrow(
      'AWS_CA_BUNDLE names /nothing/here.pem, which cannot be read (ENOENT).',
    )
    globalThis.fetch = former
  })
})

describe('the file of authorities that Node reads', () => {
  it.each([
    [{ SSL_CERT_FILE: '/a' }, false],
    [{ SSL_CERT_FILE: '/a', NODE_EXTRA_CA_CERTS: '/a', AWS_CA_BUNDLE: '/a' }, true],
    [{ SSL_CERT_FILE: '/a', NODE_EXTRA_CA_CERTS: '/b' }, false],
    [{ NODE_EXTRA_CA_CERTS: '/b' }, true],
  ])('needs no other way: %j', (environment, isEnough) => {
    expect(isDirect(environment)).toBe(isEnough)
  })
})
