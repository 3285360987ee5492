import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fs from 'node:fs/promises'
import timers from 'node:timers/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DAY_MS } from '../../core/time'
import { openStore } from '../../storage/open-store'
import { StoreError, type ObjectStore } from '../../storage/store'
import { testStoreContract } from './contract'

/** The contract's tests share a store; each test below has its own. */
let sharedRoot: string
let root: string
let store: ObjectStore

beforeAll(async () => {
  sharedRoot = await fs.mkdtemp(join(tmpdir(), 'crucible-store-'))
})
afterAll(() => fs.rm(sharedRoot, { recursive: true, force: true }))
beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), 'crucible-store-'))
  store = openStore(pathToFileURL(root).href)
})
afterEach(async () => {
  jest.restoreAllMocks()
  await fs.rm(root, { recursive: true, force: true })
})

function errno(code: string): Error {
  return Object.assign(new Error(`${code}: from the system`), { code })
}

async function keys(): Promise<string[]> {
  const found: string[] = []
  for await (const object of store.list('')) found.push(object.key)
  return found
}

testStoreContract('file://', () => openStore(pathToFileURL(sharedRoot).href))

describe('on a file system without hard links', () => {
  beforeEach(() => {
    jest.spyOn(fs, 'link').mockRejectedValue(errno('EPERM'))
  })
  testStoreContract('file:// without links', () => openStore(pathToFileURL(sharedRoot).href))

  it('gets past the claim of a process that was killed', async () => {
    await store.putIfAbsent('a', 'x')
    expect(fs.link).toHaveBeenCalled()
    await store.delete('a')
    const claims: string[] = []
    const realOpen = fs.open
    jest.spyOn(fs, 'open').mockImplementation((path, ...rest) => {
      if (String(path).endsWith('.claim')) claims.push(String(path))
      return realOpen(path, ...rest)
    })
    await store.putIfAbsent('a', 'x')
    await store.delete('a')
    await fs.writeFile(claims[0]!, '')
    jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined)
    expect(await store.putIfAbsent('a', 'y')).toBe(true)
    expect((await store.get('a'))?.toString()).toBe('y')
    expect(await fs.readdir(join(root, '.tmp'))).toEqual([])
  })
})

describe('file store', () => {
  it('leaves no temporary file, neither after success nor after failure', async () => {
    await store.put('a/b', 'x')
    await store.putIfAbsent('a/b', 'y')
    await fs.writeFile(join(root, 'file'), '')
    await expect(store.put('file/below', 'x')).rejects.toMatchObject({ isTransient: false })
    expect(await fs.readdir(join(root, '.tmp'))).toEqual([])
  })

  it('keeps its own folder to itself: neither listed nor to be addressed', async () => {
    await fs.mkdir(join(root, '.tmp'))
    await fs.writeFile(join(root, '.tmp', 'left'), '')
    await store.put('.tmpl/x', '')
    await store.put('deep/.tmp/x', '')
    expect(await keys()).toEqual(['.tmpl/x', 'deep/.tmp/x'])
    expect(await store.listFolders('')).toEqual(['.tmpl', 'deep'])
    await expect(store.get('.tmp/left')).rejects.toMatchObject({ code: 'BAD_KEY' })
  })

  it('removes leftovers of killed processes after a day, and only those', async () => {
    let nowMs = Date.now()
    store = openStore(pathToFileURL(root).href, () => nowMs)
    await store.put('a', '')
    await fs.writeFile(join(root, '.tmp', 'old'), '')
    await fs.utimes(join(root, '.tmp', 'old'), nowMs / 1000 - 1, nowMs / 1000 - 1)
    await fs.writeFile(join(root, '.tmp', 'young'), '')
    await fs.utimes(join(root, '.tmp', 'young'), nowMs / 1000 + 1, nowMs / 1000 + 1)
    await store.put('a', '')
    expect(await fs.readdir(join(root, '.tmp'))).toEqual(['old', 'young'])
    nowMs += DAY_MS
    await store.put('a', '')
    expect(await fs.readdir(join(root, '.tmp'))).toEqual(['young'])
  })

  it('prunes folders that become empty, and never one that is used', async () => {
    await store.put('a/b/c/1', '')
    await store.put('a/2', '')
    await store.delete('a/b/c/1')
    expect(await fs.readdir(join(root, 'a'))).toEqual(['2'])
    await store.delete('a/2')
    expect(await fs.readdir(root)).toEqual(['.tmp'])
  })

  it('follows no link out of its folder when it lists', async () => {
    await store.put('a', '')
    await fs.symlink('/', join(root, 'everything'))
    expect(await keys()).toEqual(['a'])
    expect(await store.listFolders('')).toEqual([])
  })

  it('says that the store does not answer when its folder is gone, rather than that it is empty', async () => {
    await store.put('a', '')
    await fs.rename(root, `${root}-away`)
    try {
      const calls = [
        store.get('a'),
        store.head('a'),
        store.put('a', ''),
        store.putIfAbsent('a', ''),
        store.listFolders(''),
        keys(),
        store.delete('a'),
        store.getFile('a', join(tmpdir(), 'never')),
      ]
      for (const result of await Promise.allSettled(calls)) {
        expect(result).toMatchObject({ status: 'rejected', reason: { isTransient: true, code: 'ENOENT' } })
        expect(String((result as PromiseRejectedResult).reason)).toContain(
          `The folder ${root} of the object store is gone`,
        )
      }
      await expect(fs.stat(root)).rejects.toMatchObject({ code: 'ENOENT' })
    } finally {
      await fs.rename(`${root}-away`, root)
    }
  })

  it.each([
    ['ENOSPC', true, /disk is full: free some space/],
    ['EDQUOT', true, /quota/],
    ['EMFILE', true, /too many files/],
    ['EACCES', false, /permission denied: give this user/],
    ['EROFS', false, /read-only: mount it writable/],
    ['ENAMETOOLONG', false, /too long/],
    ['EWHATEVER', false, /from the system/],
  ])(
    'passes %s on as a store error (transient: %s) that names the path and the remedy',
    async (code, isTransient, words) => {
      await store.put('a', 'before')
      jest.spyOn(fs, 'rename').mockRejectedValue(errno(code))
      const failing = store.put('a', 'after')
      await expect(failing).rejects.toMatchObject({ name: 'StoreError', isTransient, code })
      await expect(failing).rejects.toThrow(words)
      await expect(failing).rejects.toThrow(join(root, 'a'))
      expect((await store.get('a'))?.toString()).toBe('before')
      expect(await fs.readdir(join(root, '.tmp'))).toEqual([])
    },
  )

  it('says the same of reading, deleting and listing', async () => {
    await store.put('a/b', '')
    jest.spyOn(fs, 'readFile').mockRejectedValue(errno('EACCES'))
    await expect(store.get('a/b')).rejects.toThrow(`Could not read ${join(root, 'a/b')}: permission denied`)
    jest.spyOn(fs, 'unlink').mockRejectedValue(errno('EROFS'))
    await expect(store.delete('a/b')).rejects.toThrow(
      `Could not delete ${join(root, 'a/b')}: the file system is read-only`,
    )
    jest.spyOn(fs, 'readdir').mockRejectedValue(errno('EIO'))
    await expect(keys()).rejects.toMatchObject({ isTransient: true, code: 'EIO' })
    await expect(store.listFolders('a/')).rejects.toMatchObject({ isTransient: true, code: 'EIO' })
  })
})

describe('openStore', () => {
  it('makes the folder, whatever is in its name', async () => {
    const path = join(root, 'new folder', 'with %, # and ü')
    const opened = openStore(pathToFileURL(`${path}/`).href)
    await opened.put('a', 'x')
    expect(await fs.readFile(join(path, 'a'), 'utf8')).toBe('x')
    expect(opened.url).toBe(pathToFileURL(path).href)
  })

  it.each([
    ['ftp://host/x', /must begin with one of file:\/\//],
    ['/srv/crucible', /for a folder write file:\/\/\/absolute\/path/],
    ['', /must begin with/],
    ['file://srv/crucible', /three slashes: file:\/\/\/srv\/crucible/],
    ['file:///', /a folder of its own/],
    ['file:///a?b', /%3F/],
    ['file:///a%2Fb', /%2F|encoded/],
  ])('says what to write instead of %j', (url, words) => {
    expect(() => openStore(url)).toThrow(StoreError)
    expect(() => openStore(url)).toThrow(words)
  })

  it('names the folder that it cannot make', async () => {
    await fs.writeFile(join(root, 'file'), '')
    expect(() => openStore(pathToFileURL(join(root, 'file', 'store')).href)).toThrow(
      join(root, 'file', 'store'),
    )
  })
})
