import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { lstat, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { downloadCheckpoint, type DownloadedCheckpoint } from '../../../client/job/download-checkpoint'
import type { ManifestLink } from '../../../core/job/checkpoint'
import { filesFolder, layout, manifestName } from '../../../storage/layout'
import { manifestOf } from '../../support/manifests'
import { until } from '../../support/until'
import { ClientWorld, JOB, NOW } from '../world'

interface HostileCase {
  name: string
  /** Whether an older checkpoint is downloaded instead. */
  isRefused: boolean
  files?: ({ path: string; isStored?: boolean } & Record<string, unknown>)[]
  links?: ManifestLink[]
  folders?: object[]
  fields?: object
}

/** Manifests made to harm the machine that reads them, for the runner (test/runner/python/test_hostile_checkpoints.py) and for downloads. */
const HOSTILE = JSON.parse(
  readFileSync(join(__dirname, '..', '..', 'runner', 'hostile-checkpoints.json'), 'utf8'),
) as HostileCase[]

let world: ClientWorld
let toFolder: string

beforeEach(async () => {
  world = await ClientWorld.make()
  toFolder = join(world.folder, 'here', 'model')
  await world.submitted()
})
afterEach(() => world.remove())

const digestOf = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
const FILES = { 'checkpoint-9/model.pt': 'weights', 'checkpoint-9/run.sh': 'exit 0', empty: '' }
const LINKS = [{ path: 'latest', target: 'checkpoint-9' }]

async function save(
  step: number,
  { files = FILES, links = LINKS }: { files?: Record<string, string>; links?: ManifestLink[] } = {},
): Promise<void> {
  const folder = layout.checkpoint(JOB, step, 1)
  for (const [path, text] of Object.entries(files))
    await world.store.put(`${folder}${filesFolder()}${path}`, text)
  const manifest = manifestOf({
    jobId: JOB,
    step,
    createdAtMs: NOW,
    totalBytes: 13,
    resumePath: 'checkpoint-9',
    links,
    files: Object.entries(files).map(([path, text]) => {
      const parts = text === '' ? [] : [digestOf(Buffer.from(text))]
      return {
        path,
        sizeBytes: text.length,
        parts: parts.map((part) => part.toString('hex')),
        digest: digestOf(Buffer.concat(parts)).toString('hex'),
        mode: path.endsWith('.sh') ? 0o4755 : 0o444,
      }
    }),
  })
  await world.store.put(`${folder}${manifestName()}`, JSON.stringify(manifest))
}

const fileKey = (step: number, path: string): string =>
  `${layout.checkpoint(JOB, step, 1)}${filesFolder()}${path}`
const download = (wanted?: string): Promise<DownloadedCheckpoint> =>
  downloadCheckpoint(world.context, JOB, { toFolder, wanted })
const around = async (): Promise<string[]> => readdir(join(world.folder, 'here')).catch(() => [])

describe('a downloaded checkpoint', () => {
  it('has files with names as long as a file system allows', async () => {
    const name = 'n'.repeat(255)
    await save(9, { files: { [name]: 'long' }, links: [] })
    await download()
    expect(await readFile(join(toFolder, name), 'utf8')).toBe('long')
  })

  it('is the newest one, as the program wrote it', async () => {
    await save(5, { files: { old: 'x' }, links: [] })
    await save(9)
    expect(await download()).toEqual({
      checkpoint: { id: '000000000009-1', step: 9, attempt: 1 },
      folder: toFolder,
      files: 3,
      sizeBytes: 13,
      resumePath: 'checkpoint-9',
      damaged: [],
    })
    expect(await readFile(join(toFolder, 'latest', 'model.pt'), 'utf8')).toBe('weights')
    expect(await readlink(join(toFolder, 'latest'))).toBe('checkpoint-9')
    expect((await stat(join(toFolder, 'empty'))).size).toBe(0)
    // Runs as it did, without more rights than that, and can be deleted.
    expect((await stat(join(toFolder, 'latest', 'run.sh'))).mode & 0o7777).toBe(0o755)
    expect((await stat(join(toFolder, 'empty'))).mode & 0o7777).toBe(0o644)
    expect(await around()).toEqual(['model'])
  })

  it('is that of a step or an id where one is named', async () => {
    await save(5, { files: { old: 'x' }, links: [] })
    await save(9)
    expect((await download('5')).checkpoint.step).toBe(5)
    toFolder += '-2'
    expect((await download('000000000005-1')).checkpoint.step).toBe(5)
    toFolder += '-3'
    await expect(download('6')).rejects.toMatchObject({ kind: 'not-found', hint: 'It has step 9, 5.' })
    await expect(downloadCheckpoint(world.context, 'job-none', { toFolder })).rejects.toMatchObject({
      kind: 'not-found',
    })
  })

  it('is the one before where the newest is damaged, and says so', async () => {
    await save(5, { files: { old: 'x' }, links: [] })
    await save(9)
    await world.store.put(fileKey(9, 'checkpoint-9/model.pt'), 'WEIGHTS')
    const { checkpoint, damaged } = await download()
    expect(checkpoint.step).toBe(5)
    expect(damaged).toMatchObject([
      { checkpoint: { step: 9 }, badFiles: [{ path: 'checkpoint-9/model.pt', reason: expect.any(String) }] },
    ])
    toFolder += '-2'
    await expect(download('9')).rejects.toMatchObject({ kind: 'failed', message: /model.pt/ })
    expect(await around()).toEqual(['model'])
  })

  it('continues where a broken download stopped', async () => {
    await save(9)
    const getFile = world.store.getFile.bind(world.store)
    const fetched: string[] = []
    let isCut = true
    let others: Promise<boolean>[] = []
    world.store.getFile = async (key, path) => {
      fetched.push(key.slice(key.lastIndexOf('/') + 1))
      if (!key.endsWith('empty') || !isCut) {
        const got = getFile(key, path)
        others.push(got)
        return got
      }
      await until(() => others.length === Object.keys(FILES).length - 1)
      await Promise.all(others)
      throw new Error('cut')
    }
    await expect(download()).rejects.toThrow('cut')
    expect(await around()).not.toContain('model')
    // A link of a try before must lead nowhere now.
    const part = join(world.folder, 'here', (await around())[0]!)
    await symlink('/etc', join(part, 'stray'))
    isCut = false
    others = []
    fetched.length = 0
    await download()
    expect(fetched).toEqual(['empty'])
    expect(await readdir(toFolder)).toEqual(['checkpoint-9', 'empty', 'latest'])
    expect(await around()).toEqual(['model'])
  })

  it.each([
    ['a file', async () => writeFile(toFolder, 'mine'), /is a file/],
    ['a link', async () => symlink(world.folder, toFolder), /is a link/],
    [
      'a folder with something in it',
      async () => mkdir(join(toFolder, 'mine'), { recursive: true }),
      /not empty/,
    ],
    ['below a file', async () => writeFile(join(world.folder, 'here', 'file'), ''), /is not a folder/],
  ])(
    'is not put where there is %s, which is said before anything is asked for',
    async (what, make, message) => {
      await save(9)
      await mkdir(join(world.folder, 'here'))
      await make()
      if (what === 'below a file') toFolder = join(world.folder, 'here', 'file', 'model')
      const before = await around()
      world.store.get = () => Promise.reject(new Error('the store was asked'))
      await expect(download()).rejects.toMatchObject({ kind: 'usage', message })
      expect(await around()).toEqual(before)
    },
  )

  it('may go into an empty folder', async () => {
    await save(9)
    await mkdir(toFolder, { recursive: true })
    await download()
    expect((await lstat(join(toFolder, 'empty'))).isFile()).toBe(true)
  })

  it.each([
    ['a file below a link', { 'out/evil': 'x' }, [{ path: 'out', target: 'deep' }]],
    [
      'a link below a link',
      { 'deep/x': 'x' },
      [
        { path: 'out', target: 'deep' },
        { path: 'out/evil', target: 'x' },
      ],
    ],
    [
      'a link that leads out by way of another',
      { 'deep/x': 'x' },
      [
        { path: 'deep/up', target: '..' },
        { path: 'out', target: 'deep/up/..' },
      ],
    ],
  ])('never has %s, and nothing is left behind', async (_, files, links) => {
    await save(9, { files: files as unknown as Record<string, string>, links })
    await expect(download('9')).rejects.toMatchObject({ kind: 'failed' })
    expect(await around()).toEqual([])
  })

  it('whose manifest has paths that lead out does not count as one', async () => {
    await save(9)
    const key = `${layout.checkpoint(JOB, 9, 1)}${manifestName()}`
    const text = (await world.store.get(key))!.toString()
    await world.store.put(key, text.replace('"path":"empty"', '"path":"../evil"'))
    await expect(download()).rejects.toMatchObject({ kind: 'not-found' })
  })

  it.each(HOSTILE)(
    'gives way to an older one when it has $name, unless that is harmless',
    async (hostile) => {
      const { isRefused, files = [], links, folders, fields } = hostile
      await save(5, { files: { old: 'x' }, links: [] })
      await save(9, { files: { x: 'x' }, links: [] })
      await writeFile(join(world.folder, 'evil'), 'untouched')
      const key = `${layout.checkpoint(JOB, 9, 1)}${manifestName()}`
      const written = JSON.parse((await world.store.get(key))!.toString()) as { files: object[] }
      const entries = files.map(({ isStored = true, ...file }) => ({
        ...written.files[0],
        storedAt: `000000000009-1/files/${isStored ? 'x' : 'absent'}`,
        ...file,
      }))
      await world.store.put(key, JSON.stringify({ ...written, links, folders, files: entries, ...fields }))
      expect((await download()).checkpoint.step).toBe(isRefused ? 5 : 9)
      expect(await around()).toEqual(['model'])
      if (isRefused) expect(await readdir(toFolder)).toEqual(['old'])
      expect(await readFile(join(world.folder, 'evil'), 'utf8')).toBe('untouched')
    },
  )
})
