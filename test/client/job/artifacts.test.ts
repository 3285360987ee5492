import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { downloadArtifacts, listArtifacts, pageOfArtifacts } from '../../../client/job/artifacts'
import { layout } from '../../../storage/layout'
import type { StoredObject } from '../../../storage/store'
import { ClientWorld, JOB, NOW } from '../world'

let world: ClientWorld
let toFolder: string

const FILES = { 'a/deep.txt': 'deep', 'weights.json': '{}' }
/** A user without any rights. */
const NOBODY = 65_534
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

beforeEach(async () => {
  world = await ClientWorld.make()
  toFolder = join(world.folder, 'results')
  await world.submitted()
  for (const [path, text] of Object.entries(FILES))
    await world.store.put(`${layout.artifactsOf(JOB, 2)}${path}`, text)
})

afterEach(() => world.remove())

async function finish(digests: Record<string, string> = {}): Promise<void> {
  const artifacts = Object.entries(FILES).map(([path, text]) => ({
    path,
    sizeBytes: text.length,
    sha256: digests[path] ?? sha256(text),
  }))
  // An attempt before has left another file under the name; the result has only the first of a long list.
  const [first] = artifacts
  await world.settled(1, { artifacts: [{ path: 'weights.json', sizeBytes: 3, sha256: sha256('old') }] })
  await world.settled(2, { artifacts })
  await world.record('finished', { status: {}, result: { finishedAtMs: NOW, artifacts: [first] } })
}

async function filesThere(): Promise<string[]> {
  const entries = await readdir(toFolder, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()
}

describe('artifacts', () => {
  it('are listed with their digests once the job is over', async () => {
    expect(await listArtifacts(world.context, JOB)).toEqual([
      { path: 'a/deep.txt', sizeBytes: 4, sha256: null, attempt: 2, olderAttempts: [] },
      { path: 'weights.json', sizeBytes: 2, sha256: null, attempt: 2, olderAttempts: [] },
    ])
    await finish()
    expect((await listArtifacts(world.context, JOB))[1]).toMatchObject({ sha256: sha256('{}') })
    await expect(listArtifacts(world.context, 'job-other')).rejects.toMatchObject({ kind: 'not-found' })
  })

  it('are listed in pages that together are all of them', async () => {
    await world.store.put(`${layout.artifactsOf(JOB, 1)}z`, 'older')
    await world.store.put(`${layout.artifactsOf(JOB, 2)}z`, 'newer')
    const first = await pageOfArtifacts(world.context, JOB, { limit: 1 })
    expect(first).toMatchObject({ artifacts: [{ path: 'a/deep.txt' }], total: 3, next: 'a/deep.txt' })
    const rest = await pageOfArtifacts(world.context, JOB, { limit: 10, after: first.next! })
    expect(rest).toMatchObject({ total: 3, next: null })
    expect(rest.artifacts.map(({ path, olderAttempts }) => [path, olderAttempts])).toEqual([
      ['weights.json', []],
      ['z', [1]],
    ])
  })

  it('are copied under their own paths', async () => {
    await finish()
    await downloadArtifacts(world.context, JOB, { toFolder })
    expect(await readFile(join(toFolder, 'a', 'deep.txt'), 'utf8')).toBe('deep')
    expect(await filesThere()).toEqual(['deep.txt', 'weights.json'])
    // Once more finds them there, the same.
    await downloadArtifacts(world.context, JOB, { toFolder })
  })

  it.each<[string, (outside: string) => Promise<unknown>, string[]]>([
    [
      'a link',
      (outside) => symlink(join(outside, 'weights.json'), join(toFolder, 'weights.json')),
      ['weights.json'],
    ],
    ['a folder that is a link', (outside) => symlink(outside, join(toFolder, 'a')), ['a/deep.txt']],
    [
      'a folder that is a link to nothing',
      (outside) => symlink(join(outside, 'new'), join(toFolder, 'a')),
      ['a/deep.txt'],
    ],
    ['a file in place of a folder', () => writeFile(join(toFolder, 'a'), 'mine'), ['a/deep.txt']],
    ['a named pipe', () => promisify(execFile)('mkfifo', [join(toFolder, 'weights.json')]), []],
  ])('are never written through %s that stands in the folder', async (_what, stand, refused) => {
    await finish()
    const outside = join(world.folder, 'outside')
    await mkdir(outside)
    await mkdir(toFolder)
    await writeFile(join(outside, 'weights.json'), 'mine')
    await stand(outside)
    for (const isForced of [false, true]) {
      const done = downloadArtifacts(world.context, JOB, { toFolder, isForced })
      await done.catch(({ message }: Error) => {
        if (isForced)
          for (const path of refused) expect(message).toMatch(`${path}: a is a link or a file there`)
      })
    }
    expect(await readdir(outside)).toEqual(['weights.json'])
    expect(await readFile(join(outside, 'weights.json'), 'utf8')).toBe('mine')
    // What is not behind a link is there, in place of a link or a pipe too.
    expect((await lstat(join(toFolder, 'weights.json'))).isFile()).toBe(true)
  })

  it('are never written through a link that another program makes meanwhile', async () => {
    await finish()
    const outside = join(world.folder, 'outside')
    await mkdir(outside)
    const getFile = world.store.getFile.bind(world.store)
    world.context.store.getFile = async (key, path) => {
      const isThere = await getFile(key, path)
      if (!key.endsWith('deep.txt')) return isThere
      // The folder is exchanged for a link while its file is being written.
      await rename(join(toFolder, 'a'), join(toFolder, 'b'))
      await symlink(outside, join(toFolder, 'a'))
      return isThere
    }
    await downloadArtifacts(world.context, JOB, { toFolder })
    expect(await readdir(outside)).toEqual([])
    expect(await readFile(join(toFolder, 'b', 'deep.txt'), 'utf8')).toBe('deep')
  })

  it('have no link that leads out of the folder, also by way of another', async () => {
    await finish()
    const links = [
      { path: 'a/b/up', target: '../..' },
      { path: 'a/b/out', target: 'up/../x' },
      { path: 'a/good', target: 'b' },
    ]
    const outputs = { version: 1, files: [], folders: [{ path: 'a/b', mode: 0o755 }], links }
    await world.store.put(layout.outputs(JOB, 2), JSON.stringify(outputs))
    await mkdir(join(world.folder, 'x'))
    await downloadArtifacts(world.context, JOB, { toFolder })
    expect((await readdir(join(toFolder, 'a', 'b'))).sort()).toEqual(['up'])
    expect((await lstat(join(toFolder, 'a', 'good'))).isSymbolicLink()).toBe(true)
  })

  it.each<[string, object]>([
    ['a link in the place of an artifact', { links: [{ path: 'weights.json', target: 'a' }] }],
    ['a folder in the place of an artifact', { folders: [{ path: 'weights.json', mode: 0o700 }] }],
    ['a folder below an artifact', { folders: [{ path: 'weights.json/x', mode: 0o700 }] }],
    ['a folder with a name of 4,000 bytes', { folders: [{ path: 'n'.repeat(4_000), mode: 0o700 }] }],
    ['a link with a name of 4,000 bytes', { links: [{ path: 'n'.repeat(4_000), target: 'a' }] }],
    ['a link with a target of 10,000 bytes', { links: [{ path: 'l', target: 'n/'.repeat(5_000) }] }],
    ['a folder a thousand levels deep', { folders: [{ path: 'n/'.repeat(1_000) + 'n', mode: 0o700 }] }],
    ['paths that lead out', { folders: [{ path: '../x', mode: 0o700 }] }],
    ['a file that is not an artifact', { files: [{ path: 'absent', mode: 0o700 }] }],
    ['a mode of every bit', { files: [{ path: 'a/deep.txt', mode: 2 ** 53 - 1 }] }],
    [
      'a time at the end of numbers',
      { files: [{ path: 'a/deep.txt', mode: 0o600, modifiedAtMs: 2 ** 53 - 1 }] },
    ],
  ])('arrive whole when the list of the tree has %s', async (_, changes) => {
    await finish()
    const outputs = { version: 1, files: [], folders: [], links: [], ...changes }
    await world.store.put(layout.outputs(JOB, 2), JSON.stringify(outputs))
    await downloadArtifacts(world.context, JOB, { toFolder })
    expect(await filesThere()).toEqual(['deep.txt', 'weights.json'])
    expect((await readdir(world.folder)).filter((name) => name === 'x')).toEqual([])
    expect((await stat(join(toFolder, 'a/deep.txt'))).mode & 0o7000).toBe(0)
  })

  it('have the permissions, times, empty folders and links to folders that the program left', async () => {
    await finish()
    const at = { modifiedAtMs: 1_600_000_000_123, modifiedNs: 456_000 }
    const outputs = {
      version: 1,
      files: [{ path: 'a/deep.txt', mode: 0o750, ...at }],
      folders: [
        { path: 'a', mode: 0o755, ...at },
        { path: 'plots/empty', mode: 0o550 },
      ],
      links: [{ path: 'plots/latest', target: 'empty' }],
    }
    await world.store.put(layout.outputs(JOB, 2), JSON.stringify(outputs))
    // An older attempt changes nothing that a newer one has.
    const older = { ...outputs, files: [{ path: 'a/deep.txt', mode: 0o600 }], folders: [], links: [] }
    await world.store.put(layout.outputs(JOB, 1), JSON.stringify(older))
    await downloadArtifacts(world.context, JOB, { toFolder })
    const deep = await stat(join(toFolder, 'a/deep.txt'))
    expect([deep.mode & 0o777, deep.mtimeMs]).toEqual([0o750, expect.closeTo(1_600_000_000_123.456, 2)])
    expect((await stat(join(toFolder, 'a'))).mtimeMs).toBeCloseTo(1_600_000_000_123.456, 2)
    expect(await readdir(join(toFolder, 'plots/latest'))).toEqual([])
    expect((await stat(join(toFolder, 'plots/empty'))).mode & 0o777).toBe(0o750)
    await downloadArtifacts(world.context, JOB, { toFolder, only: ['weights.json'] })
  })

  it('replace no other file, and then nothing is copied at all', async () => {
    await finish()
    await mkdir(toFolder)
    const mine = join(toFolder, 'weights.json')
    await writeFile(mine, 'mine')
    await expect(downloadArtifacts(world.context, JOB, { toFolder })).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining(mine),
      hint: expect.stringContaining('--force'),
    })
    expect(await filesThere()).toEqual(['weights.json'])
    expect(await readFile(mine, 'utf8')).toBe('mine')
    await downloadArtifacts(world.context, JOB, { toFolder, isForced: true })
    expect(await readFile(mine, 'utf8')).toBe('{}')
  })

  it('that arrive damaged are reported, and not left behind', async () => {
    await finish({ 'weights.json': sha256('other') })
    await expect(downloadArtifacts(world.context, JOB, { toFolder })).rejects.toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('weights.json'),
    })
    expect(await filesThere()).not.toContain('weights.json')
  })

  it('are all copied but the bad one, which is named at the end', async () => {
    await finish({ 'a/deep.txt': sha256('other') })
    await expect(downloadArtifacts(world.context, JOB, { toFolder })).rejects.toMatchObject({
      kind: 'failed',
      message: `1 of 2 files could not be downloaded; 1 is in ${toFolder}.\n  a/deep.txt: The artifact a/deep.txt differs from the job's file.`,
      details: { failed: [{ path: 'a/deep.txt', reason: expect.any(String) }], copied: 1, folder: toFolder },
    })
    expect(await filesThere()).toEqual(['weights.json'])
  })

  it.each([[''], ['/deeper/still']])('are not copied into a file%s', async (below) => {
    await finish()
    await writeFile(toFolder, '')
    await expect(downloadArtifacts(world.context, JOB, { toFolder: toFolder + below })).rejects.toMatchObject(
      {
        kind: 'usage',
        message: `${toFolder} is a file, not a folder.`,
      },
    )
  })

  it('are not copied where the user may not write, which is said before anything is read', async () => {
    await mkdir(toFolder)
    await chmod(world.folder, 0o755)
    await chmod(toFolder, 0o555)
    const isRoot = process.geteuid!() === 0
    try {
      if (isRoot) process.seteuid!(NOBODY)
      await expect(downloadArtifacts(world.context, 'job-none', { toFolder })).rejects.toMatchObject({
        kind: 'permission',
        message: `No permission to write to ${toFolder}.`,
      })
    } finally {
      if (isRoot) process.seteuid!(0)
    }
  })

  it('are copied under names as long as a file system allows', async () => {
    const name = 'n'.repeat(255)
    await world.store.put(`${layout.artifactsOf(JOB, 2)}${name}`, 'long')
    await finish()
    await downloadArtifacts(world.context, JOB, { toFolder })
    expect(await readFile(join(toFolder, name), 'utf8')).toBe('long')
  })

  it('lead nowhere outside the folder, whatever a store lists', async () => {
    const { store } = world
    const list = store.list.bind(store)
    const stray = { key: `${layout.artifactsOf(JOB, 2)}../outside/escaped`, sizeBytes: 1, modifiedAtMs: NOW }
    store.list = (prefix) => (prefix === layout.artifactsOf(JOB, 2) ? listOf(stray) : list(prefix))
    await expect(downloadArtifacts(world.context, JOB, { toFolder })).rejects.toMatchObject({
      code: 'BAD_KEY',
    })
    expect(await readdir(world.folder)).not.toContain('outside')
  })
})

describe('artifacts of several attempts', () => {
  const texts = { 'log.txt': 'first', 'only-1': '1', 'x/y': 'deep' }

  async function leave(attempt: number, files: Record<string, string>): Promise<void> {
    for (const [path, text] of Object.entries(files))
      await world.store.put(`${layout.artifactsOf(JOB, attempt)}${path}`, text)
    const artifacts = Object.entries(files).map(([path, text]) => ({
      path,
      sizeBytes: text.length,
      sha256: sha256(text),
    }))
    await world.settled(attempt, { artifacts })
  }

  beforeEach(async () => {
    await leave(1, texts)
    await leave(2, { 'log.txt': 'second', x: 'a file now', 'weights.json': 'new' })
    // Its machine was lost before it could tell what it had sent.
    await world.store.put(`${layout.artifactsOf(JOB, 10)}log.txt`, 'tenth')
  })

  it('are one list with the newest of each path, digests of settled attempts, and what is older', async () => {
    expect(await listArtifacts(world.context, JOB)).toEqual([
      { path: 'a/deep.txt', sizeBytes: 4, sha256: null, attempt: 2, olderAttempts: [] },
      { path: 'log.txt', sizeBytes: 5, sha256: null, attempt: 10, olderAttempts: [2, 1] },
      { path: 'only-1', sizeBytes: 1, sha256: sha256('1'), attempt: 1, olderAttempts: [] },
      { path: 'weights.json', sizeBytes: 3, sha256: sha256('new'), attempt: 2, olderAttempts: [] },
      // Of a file and a folder at one place the newer is there: both could not be copied.
      { path: 'x', sizeBytes: 10, sha256: sha256('a file now'), attempt: 2, olderAttempts: [] },
    ])
    await downloadArtifacts(world.context, JOB, { toFolder })
    expect(await readFile(join(toFolder, 'log.txt'), 'utf8')).toBe('tenth')
    expect(await readFile(join(toFolder, 'x'), 'utf8')).toBe('a file now')
  })

  it('are reached by the number of the attempt', async () => {
    const paths = (await listArtifacts(world.context, JOB, { attempt: 1 })).map(({ path }) => path)
    expect(paths).toEqual(['log.txt', 'only-1', 'x/y'])
    await downloadArtifacts(world.context, JOB, { toFolder, attempt: 1 })
    expect(await readFile(join(toFolder, 'log.txt'), 'utf8')).toBe('first')
    expect(await readFile(join(toFolder, 'x', 'y'), 'utf8')).toBe('deep')
    await expect(listArtifacts(world.context, JOB, { attempt: 3 })).rejects.toMatchObject({
      kind: 'not-found',
      hint: 'Attempts with artifacts: 10, 2, 1.',
    })
  })

  it('are chosen by path or folder, and a path without any is an error', async () => {
    const paths = (await listArtifacts(world.context, JOB, { only: ['a/', 'x'] })).map(({ path }) => path)
    expect(paths).toEqual(['a/deep.txt', 'x'])
    await downloadArtifacts(world.context, JOB, { toFolder, only: ['log.txt'] })
    expect(await readdir(toFolder)).toEqual(['log.txt'])
    // A file whose name begins like it is another one.
    await expect(listArtifacts(world.context, JOB, { only: ['log'] })).rejects.toMatchObject({
      kind: 'not-found',
      message: expect.stringContaining('has no artifact log.'),
    })
  })
})

async function* listOf(...objects: StoredObject[]): AsyncGenerator<StoredObject> {
  yield* objects
}
