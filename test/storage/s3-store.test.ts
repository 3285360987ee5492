import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CODES } from '../../core/errors'
import { DAY_MS } from '../../core/time/time'
import { CHECKPOINT_PARSERS } from '../../intake/documents'
import { newestGoodCheckpoint, verifyCheckpoint, type BadFile } from '../../storage/checkpoints'
import { copyCheckpoint } from '../../storage/copy-checkpoint'
import { readDeployment } from '../../storage/deployment'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import { makeClient } from '../../storage/s3/client'
import { copyWithin } from '../../storage/s3/copy'
import { partBytesOf } from '../../storage/s3/parts'
import { S3Store, type Bucket } from '../../storage/s3/s3-store'
import { parsePlace } from '../../storage/s3/place'
import { FaultProxy, type Fault } from '../support/fault-proxy'
import { S3_ENVIRONMENT, S3_REGION, startTestS3, type TestS3 } from '../support/s3'
import { COMPLETE } from '../support/manifests'
import { patient } from '../support/patience'

const BUCKET = 'store-tests'
const START_MS = 240_000
let server: TestS3
let proxy: FaultProxy
let folder: string
const stores: S3Store[] = []
const before = { ...process.env }

beforeAll(async () => {
  Object.assign(process.env, S3_ENVIRONMENT)
  server = await startTestS3(BUCKET)
  proxy = await FaultProxy.open(server.url)
  folder = await mkdtemp(join(tmpdir(), 'crucible-s3-files-'))
}, START_MS)
afterAll(async () => {
  for (const store of stores) await store.close()
  await proxy.close()
  await server.close()
  await rm(folder, { recursive: true, force: true })
  process.env = before
})

function open(url: string, now?: () => number): S3Store {
  const store = openStore(url, now) as S3Store
  stores.push(store)
  return store
}

describe('an object of S3 that is copied in parts', () => {
  const MIB = 1024 * 1024
  const [from, to] = ['copies/from', 'copies/to']

  async function bucketOf(): Promise<Bucket> {
    const place = parsePlace(new URL(`s3://${BUCKET}?endpoint=${proxy.url}&region=${S3_REGION}`))
    return { ...(await makeClient(place)), name: BUCKET }
  }

  it('is the same, with a last part of any size, and leaves nothing unfinished', async () => {
    const store = open(`s3://${BUCKET}?endpoint=${server.url}`)
    const body = randomBytes(11 * MIB + 7)
    await store.put(from, body)
    await copyWithin(await bucketOf(), { from, to, metadata: { made: 'by-copy' } }, 5 * MIB)
    expect((await store.get(to))?.equals(body)).toBe(true)
    expect(await store.unfinished()).toEqual([])
    proxy.rules.push({
      match: '^PUT .*partNumber=2',
      times: 1,
      fault: { kind: 'answer', status: 403, code: 'AccessDenied' },
    })
    const other = { from, to: 'copies/other', metadata: {} }
    await expect(copyWithin(await bucketOf(), other, 5 * MIB)).rejects.toThrow()
    expect(await store.head('copies/other')).toBeUndefined()
    expect(await store.unfinished()).toEqual([])
  })
})

describe('a checkpoint that is copied in S3', () => {
  it('is good in its new place; one with a file of another size, or without it, is not copied', async () => {
    const store = open(`s3://${BUCKET}/${randomUUID()}?endpoint=${server.url}`)
    const files = { 'deep/a ü+.pt': randomBytes(70_000), empty: Buffer.alloc(0) }
    const sha256 = (body: Buffer): Buffer => createHash('sha256').update(body).digest()
    const at = 'jobs/job-old/checkpoints/000000000007-2/'
    for (const [path, body] of Object.entries(files)) await store.put(`${at}files/${path}`, body)
    const manifest = {
      ...COMPLETE,
      version: 1,
      jobId: 'job-old',
      attempt: 2,
      step: 7,
      isStepKnown: true,
      createdAtMs: 1,
      totalBytes: 70_000,
      resumePath: '.',
      files: Object.entries(files).map(([path, body]) => {
        const parts = body.length === 0 ? [] : [sha256(body)]
        const digest = sha256(Buffer.concat(parts)).toString('hex')
        return {
          path,
          sizeBytes: body.length,
          parts: parts.map((part) => part.toString('hex')),
          digest,
          mode: 420,
        }
      }),
    }
    await store.put(`${at}manifest.json`, JSON.stringify(manifest))
    const good = (await newestGoodCheckpoint(store, 'job-old', CHECKPOINT_PARSERS))!
    const copyTo = (toJobId: string): Promise<BadFile[]> =>
      copyCheckpoint(store, { from: { ...good, jobId: 'job-old' }, toJobId }, new AbortController().signal)
    expect(await copyTo('job-new')).toEqual([])
    const copy = (await newestGoodCheckpoint(store, 'job-new', CHECKPOINT_PARSERS))!
    expect(copy.checkpoint.id).toBe('000000000007-0')
    expect(await verifyCheckpoint(store, { jobId: 'job-new', ...copy }, folder)).toEqual([])
    await store.put(`${at}files/empty`, 'no longer')
    expect(await copyTo('job-b')).toEqual([{ path: 'empty', reason: 'has 9 bytes instead of 0' }])
    await store.delete(`${at}files/empty`)
    expect(await copyTo('job-c')).toEqual([{ path: 'empty', reason: 'is missing' }])
    expect(await newestGoodCheckpoint(store, 'job-b', CHECKPOINT_PARSERS)).toBeUndefined()
  })
})

describe('an S3 store on a bad way', () => {
  let store: S3Store
  beforeEach(() => {
    proxy.rules.length = 0
    proxy.seen.length = 0
    store = open(`s3://${BUCKET}/${randomUUID()}?endpoint=${proxy.url}`)
  })

  const wrong = (match: string, fault: Fault, times = 1): number => proxy.rules.push({ match, fault, times })
  const lost: Fault = { kind: 'lost-answer' }

  it('knows its own put-if-absent though the answer was lost, and no one else’s', async () => {
    wrong('^PUT', lost, 2)
    expect(await store.putIfAbsent('a', 'same')).toBe(true)
    wrong('^PUT', lost)
    expect(await store.putIfAbsent('a', 'same')).toBe(false)
  })

  it('puts again after a conflict', async () => {
    wrong('^PUT', { kind: 'answer', status: 409, code: 'ConditionalRequestConflict' }, 2)
    expect(await store.putIfAbsent('a', '1')).toBe(true)
    expect((await store.get('a'))?.toString()).toBe('1')
  })

  it.each<[string, Fault]>([
    ['is busy', { kind: 'answer', status: 503, code: 'SlowDown' }],
    ['fails', { kind: 'answer', status: 500, code: 'InternalError' }],
    ['loses its answer', lost],
    ['closes', { kind: 'cut-request', afterBytes: 0 }],
  ])('bears a server that %s', async (_, fault) => {
    wrong('^PUT', fault, 2)
    await store.put('a', '1')
    expect((await store.get('a'))?.toString()).toBe('1')
    expect(proxy.seen.filter((line) => line.startsWith('PUT'))).toHaveLength(3)
  })

  it('uploads and downloads big files in parts, though parts are lost and cut', async () => {
    const [from, to] = [join(folder, 'from'), join(folder, 'to')]
    const body = randomBytes(21 * 1024 * 1024 + 5)
    await writeFile(from, body)
    wrong('^PUT .*partNumber=2', { kind: 'cut-request', afterBytes: 1_000_000 })
    wrong('^PUT .*partNumber=3', lost)
    wrong('^POST .*uploadId', lost)
    await store.putFile('big', from)
    wrong('^GET', { kind: 'cut-answer', afterBytes: 3_000_000 }, 3)
    expect(await store.getFile('big', to)).toBe(true)
    expect(
      createHash('sha256')
        .update(await readFile(to))
        .digest('hex'),
    ).toBe(createHash('sha256').update(body).digest('hex'))
    expect(proxy.seen.filter((line) => line.startsWith('GET')).length).toBeGreaterThanOrEqual(6)
  })

  it('leaves neither parts nor files behind when a transfer fails', async () => {
    const from = join(folder, 'failing')
    await writeFile(from, randomBytes(17 * 1024 * 1024))
    wrong('^PUT .*partNumber=2', { kind: 'answer', status: 403, code: 'AccessDenied' })
    await expect(store.putFile('big', from)).rejects.toMatchObject({
      isTransient: false,
      code: 'AccessDenied',
    })
    expect(await store.unfinished()).toEqual([])
    await store.put('small', randomBytes(100))
    const empty = await mkdtemp(join(folder, 'empty-'))
    wrong('^GET', { kind: 'answer', status: 403, code: 'AccessDenied' })
    await expect(store.getFile('small', join(empty, 'to'))).rejects.toThrow(
      /permission denied: allow s3:GetObject/,
    )
    expect(await readdir(empty)).toEqual([])
  })

  it('says of a refused HEAD, whose answer has no body, what is missing', async () => {
    wrong('^HEAD', { kind: 'answer', status: 403, code: 'AccessDenied' })
    await expect(store.head('small')).rejects.toThrow(/permission denied: allow s3:GetObject/)
    proxy.rules.length = 0
    wrong('^HEAD', { kind: 'answer', status: 501, code: 'NotImplemented' })
    await expect(store.head('small')).rejects.toThrow(/the store answered with status 501\.$/)
  })

  it('lists unfinished uploads below its prefix, and ends the one that is named, once and for all', async () => {
    await begin('jobs/job-a/bundle/left', randomBytes(1_000))
    await begin('under-way')
    await begin(`../elsewhere-${randomUUID()}`)
    const uploads = await store.unfinished()
    expect(uploads).toMatchObject([
      { key: 'jobs/job-a/bundle/left', sizeBytes: 1_000, beganAtMs: expect.any(Number) },
      { key: 'under-way', sizeBytes: 0 },
    ])
    expect(Date.now() - uploads[0]!.beganAtMs).toBeLessThan(patient(60_000))
    await store.abandon(uploads[0]!)
    await store.abandon(uploads[0]!)
    expect(await store.unfinished()).toMatchObject([{ key: 'under-way' }])
  })

  it('names the permission that listing unfinished uploads needs', async () => {
    wrong('^GET .*uploads', { kind: 'answer', status: 403, code: 'AccessDenied' })
    await expect(store.unfinished()).rejects.toMatchObject({
      isTransient: false,
      message: expect.stringContaining('list the unfinished uploads'),
    })
  })

  it.each<[string, Fault, object]>([
    [
      'keeps failing',
      { kind: 'answer', status: 503, code: 'SlowDown' },
      { isTransient: true, code: 'SlowDown' },
    ],
    [
      'refuses',
      { kind: 'answer', status: 403, code: 'AccessDenied' },
      { isTransient: false, code: 'AccessDenied' },
    ],
    [
      'says that the credentials have ended',
      { kind: 'answer', status: 400, code: 'ExpiredToken' },
      { isTransient: true, code: 'ExpiredToken' },
    ],
  ])('tells whether it may pass when a server %s, and what to do', async (_, fault, expected) => {
    wrong('^GET', fault, 100)
    await expect(store.get('a')).rejects.toMatchObject({ name: 'StoreError', ...expected })
    await expect(store.get('a')).rejects.toThrow(`s3://${BUCKET}/`)
  })

  it('reports an unreachable server as transient', async () => {
    const away = open(`s3://${BUCKET}?endpoint=http://127.0.0.1:1`)
    await expect(away.get('a')).rejects.toMatchObject({ isTransient: true })
    await expect(away.get('a')).rejects.toThrow(
      /no server listens there: .*AWS_ENDPOINT_URL.*\(ECONNREFUSED\)/,
    )
  })

  it('never treats a missing bucket as empty', async () => {
    const none = open(`s3://not-there?endpoint=${server.url}`)
    const asks = [none.get('a'), none.put('a', ''), none.putIfAbsent('a', ''), none.listFolders('')]
    for (const result of await Promise.allSettled(asks))
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { isTransient: false, code: 'NoSuchBucket' },
      })
  })

  it('writes nothing into a bucket that was emptied, and reports nothing in it as absent', async () => {
    const prefix = randomUUID()
    const [own, other] = [0, 1].map(() => open(`s3://${BUCKET}/${prefix}?endpoint=${server.url}`))
    await other!.put(layout.deployment(), '{"id":"dep-0000000000"}')
    expect(await readDeployment(own!)).toBe('dep-0000000000')
    await own!.put('jobs/a', 'a')
    await other!.delete(layout.deployment())
    const late = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 31_000)
    try {
      for (const ask of [
        () => own!.put('jobs/b', 'b'),
        () => own!.putIfAbsent('jobs/b', 'b'),
        () => own!.get('jobs/c'),
      ])
        await expect(ask()).rejects.toMatchObject({ isTransient: true, code: CODES.noMark })
      await other!.put(layout.deployment(), '{"id":"dep-1111111111"}')
      await expect(own!.get('jobs/c')).rejects.toMatchObject({ code: CODES.foreignStore })
    } finally {
      late.mockRestore()
    }
    expect(await other!.head('jobs/b')).toBeUndefined()
  })

  async function begin(key: string, part?: Buffer): Promise<void> {
    const { CreateMultipartUploadCommand, S3Client, UploadPartCommand } = await import('@aws-sdk/client-s3')
    const client = new S3Client({ endpoint: server.url, forcePathStyle: true })
    const at = { Bucket: BUCKET, Key: join(store.place.prefix, key) }
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(at))
    if (part !== undefined)
      await client.send(new UploadPartCommand({ ...at, UploadId, PartNumber: 1, Body: part }))
    client.destroy()
  }
})

describe('the parts of an object', () => {
  const MIB = 1024 * 1024

  it.each([
    [80_000 * MIB, 8 * MIB],
    [80_000 * MIB + 1, 8 * MIB + 1],
    [5 * 1024 * 1024 * MIB, Math.ceil((5 * 1024 * 1024 * MIB) / 10_000)],
  ])('of %d bytes have %d bytes, so that S3 takes their number', (sizeBytes, partBytes) => {
    expect(partBytesOf(sizeBytes, 8 * MIB)).toBe(partBytes)
    expect(Math.ceil(sizeBytes / partBytes)).toBeLessThanOrEqual(10_000)
  })
})

describe('the URL of an S3 store', () => {
  it.each([
    ['s3://data', { bucket: 'data', prefix: '' }],
    ['s3://data/team%20a/b/?region=eu-west-1', { bucket: 'data', prefix: 'team a/b/', region: 'eu-west-1' }],
    [
      's3://data/x?endpoint=http://127.0.0.1:9000/&region=r',
      { bucket: 'data', prefix: 'x/', region: 'r', endpoint: 'http://127.0.0.1:9000' },
    ],
  ])('%s is understood, and written the same by everybody', (url, place) => {
    expect(parsePlace(new URL(url))).toEqual(place)
    const written = new S3Store(place).url
    expect(parsePlace(new URL(written))).toEqual(place)
  })

  it('says what the environment said, so that a machine opens the same store', () => {
    process.env['AWS_ENDPOINT_URL_S3'] = 'http://127.0.0.1:9000/'
    try {
      expect(openStore('s3://data/x').url).toBe(
        `s3://data/x?endpoint=http%3A%2F%2F127.0.0.1%3A9000&region=${S3_REGION}`,
      )
    } finally {
      delete process.env['AWS_ENDPOINT_URL_S3']
    }
  })

  it.each([
    [1_000, '1'],
    [59_001, '60'],
    [30 * DAY_MS, String((7 * DAY_MS) / 1_000)],
  ])('is signed for %d ms, rounded up to seconds, and for a week at most', async (forMs, seconds) => {
    const { read, write, delete: end } = await open('s3://data').signUrls('a', forMs)
    const validities = [read, write, end].map((url) => new URL(url).searchParams.get('X-Amz-Expires'))
    expect(validities).toEqual([seconds, seconds, seconds])
  })

  it.each([
    ['s3://', /names no bucket/],
    ['s3://a', /"a" is not a valid bucket name/],
    ['s3://key:secret@data', /it must not contain keys/],
    ['s3://data?regoin=x', /no parameter "regoin"/],
    ['s3://data?region=x&region=y', /may occur once/],
    ['s3://data?endpoint=127.0.0.1:9000', /must begin with http/],
    ['s3://data/a/%2e%2e/../b//c', /is not a plain path/],
  ])('says what to write instead of %s', (url, words) => {
    expect(() => openStore(url)).toThrow(words)
    expect(() => openStore(url)).not.toThrow(/secret@/)
  })
})
