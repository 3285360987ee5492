import { afterEach, describe, expect, it } from '@jest/globals'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { layout } from '../../storage/layout'
import { formatKey, sealSecrets } from '../../storage/secrets'
import { S3Server, type S3Options } from './s3-server'
import { JOB, useWorlds, type Machine, type Wanted, type World } from './world'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()
const KEYS: NonNullable<S3Options['keys']> = {
  id: 'AKIDEXAMPLE',
  secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const OBJECTS = {
  'sets/words and ümläuts.txt': 'some words',
  'sets/deep/er+.txt': 'more words',
  'sets/deep/': '',
  'sets/last.txt': 'last words',
  'settings.txt': 'none of it',
}
const servers: S3Server[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function serve(options: Partial<S3Options> = {}): Promise<S3Server> {
  const server = await S3Server.open({
    bucket: 'data',
    region: 'eu-west-1',
    keys: KEYS,
    objects: OBJECTS,
    ...options,
  })
  servers.push(server)
  return server
}

/** The environment that a job names its server and its keys in. */
function environment(server: S3Server, keys = KEYS): Record<string, string> {
  return {
    AWS_ENDPOINT_URL_S3: server.url,
    AWS_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: keys.id,
    AWS_SECRET_ACCESS_KEY: keys.secret,
    ...(keys.token === undefined ? {} : { AWS_SESSION_TOKEN: keys.token }),
  }
}

async function launch(world: World, source: string, wanted: Wanted): Promise<Machine> {
  world.environment['no_proxy'] = '127.0.0.1'
  return world.launch({ inputs: [{ source, path: 'data/in' }], run: 'cat data/in', ...wanted })
}

describe('an input in S3', () => {
  it('is brought with the keys of the job’s environment, and asked for no second time', async () => {
    const world = createWorld()
    const server = await serve()
    const source = 's3://data/sets/words and ümläuts.txt'
    const first = await launch(world, source, { env: environment(server) })
    expect(await first.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await first.output()).toEqual(['some words'])
    const second = await launch(world, source, { attempt: 2, env: environment(server) })
    await second.end()
    expect(await second.output()).toEqual(['some words'])
    expect(server.requests.map(({ status }) => status)).toEqual([200, 304])
  })

  itInAll('is brought with keys that are secrets, those of a session too', async () => {
    const world = createWorld()
    const keys = { ...KEYS, token: 'a/session+token==' }
    const server = await serve({ keys })
    const { AWS_ENDPOINT_URL_S3, ...secrets } = environment(server, keys)
    const key = Buffer.alloc(32, 7)
    await world.store.put(layout.attemptSecrets(JOB, 1), sealSecrets(key, secrets, Buffer.alloc(16, 1)))
    writeFileSync(join(world.folder, 'key'), formatKey(key))
    await world.order({
      inputs: [{ source: 's3://data/settings.txt', path: 'data/in' }],
      secrets: Object.keys(secrets),
      env: { AWS_ENDPOINT_URL: AWS_ENDPOINT_URL_S3! },
      run: 'cat data/in',
    })
    const machine = world.start({ arguments: ['--secret-key-file', join(world.folder, 'key')] })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await machine.output()).toEqual(['none of it'])
  })

  it('is brought with the profile of the machine’s user, or without any keys from a public bucket', async () => {
    const world = createWorld()
    const isPublic = await serve({ keys: undefined })
    const isPrivate = await serve()
    const open = await launch(world, 's3://data/settings.txt', { env: { AWS_ENDPOINT_URL: isPublic.url } })
    expect(await open.end()).toMatchObject({ outcome: 'succeeded' })
    mkdirSync(join(world.folder, '.aws'))
    const profile = `aws_access_key_id=${KEYS.id}\naws_secret_access_key=${KEYS.secret}\n`
    writeFileSync(join(world.folder, '.aws/credentials'), `[team]\n${profile}`)
    writeFileSync(join(world.folder, '.aws/config'), '[profile team]\nregion=eu-west-1\n')
    const env = { AWS_ENDPOINT_URL: isPrivate.url, AWS_PROFILE: 'team' }
    const closed = await launch(world, 's3://data/settings.txt', { attempt: 2, env })
    expect(await closed.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await closed.output()).toEqual(['none of it'])
  })

  it('is a folder when its URL ends with a slash: everything under the prefix, over several pages', async () => {
    const world = createWorld()
    const server = await serve()
    const run = 'cd data/in; find . -type f | sort; cat "deep/er+.txt"'
    const machine = await launch(world, 's3://data/sets/', { env: environment(server), run })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await machine.output()).toEqual([
      './deep/er+.txt',
      './last.txt',
      './words and ümläuts.txt',
      'more words',
    ])
  })

  it.each(['header', 'document'] as const)('is asked for again in the region named in the %s', async (by) => {
    const world = createWorld()
    const server = await serve({ region: 'ap-south-1', tellsRegionBy: by })
    const machine = await launch(world, 's3://data/settings.txt', { env: environment(server) })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    expect(server.requests.map(({ status }) => status)).toEqual([400, 200])
    const again = { attempt: 2, env: environment(server) }
    expect(await (await launch(world, 's3://data/settings.txt', again)).end()).toMatchObject({ exitCode: 0 })
    expect(server.requests.map(({ status }) => status)).toEqual([400, 200, 400, 304])
  })

  it('continues where the connection was cut', async () => {
    const world = createWorld()
    const body = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => at % 251))
    const server = await serve({ objects: { big: body } })
    server.cuts.push(1_200_000)
    const run = 'sha256sum < data/in'
    const machine = await launch(world, 's3://data/big', { env: environment(server), run })
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await machine.output()).toEqual([`${createHash('sha256').update(body).digest('hex')}  -`])
    expect(server.requests).toHaveLength(2)
    expect(server.requests[1]).toMatchObject({ range: expect.stringMatching(/^bytes=\d+-$/), status: 206 })
  })

  const refusals: [string, string, (server: S3Server) => Record<string, string>, RegExp][] = [
    [
      'without keys',
      's3://data/settings.txt',
      ({ url }) => ({ AWS_ENDPOINT_URL: url }),
      /403 AccessDenied .*without credentials.*Give the job AWS_ACCESS_KEY_ID/,
    ],
    [
      'with a wrong key',
      's3://data/settings.txt',
      (server) => environment(server, { ...KEYS, secret: 'wrong' }),
      /403 SignatureDoesNotMatch .*signed with AWS_ACCESS_KEY_ID from the job's env or secrets/,
    ],
    [
      'with an unknown key',
      's3://data/settings.txt',
      (server) => environment(server, { ...KEYS, id: 'NOBODY' }),
      /404 InvalidAccessKeyId .*Give the job AWS_ACCESS_KEY_ID/,
    ],
    [
      'that is not there',
      's3://data/sets',
      environment,
      /the bucket data has no object 'sets'.*ends with a slash/,
    ],
    ['in no bucket', 's3://nowhere/a', environment, /the bucket nowhere does not exist at http:/],
    ['with nothing under it', 's3://data/none/', environment, /no object has this prefix/],
  ]
  it.each(refusals)('%s ends the attempt with words that say what to do', async (_, source, env, words) => {
    const world = createWorld()
    const server = await serve()
    const machine = await launch(world, source, { env: env(server) })
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'failed', reason: 'no-input' })
    expect(result.message).toMatch(words)
    expect(server.requests).toHaveLength(1)
  })
})
