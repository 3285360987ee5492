import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fs from 'node:fs/promises'
import timers from 'node:timers/promises'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DAY_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import { StoreError, type ObjectStore } from '../../storage/store'
import { SmallDisk } from '../chaos/disk'
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

  it('lists half-written objects, and removes the one that is named', async () => {
    await fs.mkdir(join(root, '.tmp'))
    await fs.writeFile(join(root, '.tmp', 'left'), 'half')
    await fs.writeFile(join(root, '.tmp', 'other'), '')
    const [left, other] = await store.unfinished!()
    expect([left, other]).toMatchObject([{ id: 'left', sizeBytes: 4 }, { id: 'other' }])
    await store.abandon!(left!)
    await store.abandon!({ ...left!, id: '../a' })
    expect(await fs.readdir(join(root, '.tmp'))).toEqual(['other'])
  })

  it('prunes folders that become empty, and never one that is used', async () => {
    await store.put('a/b/c/1', '')
    await store.put('a/2', '')
    await store.delete('a/b/c/1')
    expect(await fs.readdir(join(root, 'a'))).toEqual(['2'])
    await store.delete('a/2')
    expect(await fs.readdir(root)).toEqual(['.tmp'])
  })

  it('writes in place of an empty folder, and names one with content', async () => {
    for (const key of ['jobs/a/put', 'jobs/a/once', 'jobs/a/full'])
      await fs.mkdir(join(root, key), { recursive: true })
    await store.put('jobs/a/put', '1')
    expect(await store.putIfAbsent('jobs/a/once', '1')).toBe(true)
    expect(await store.putIfAbsent('jobs/a/once', '2')).toBe(false)
    await fs.writeFile(join(root, 'jobs/a/full/other'), '')
    const refusal = /jobs\/a\/full: a folder exists where a file is needed: move it/
    await expect(store.put('jobs/a/full', '1')).rejects.toThrow(refusal)
    await expect(store.putIfAbsent('jobs/a/full', '1')).rejects.toThrow(refusal)
  })

  it('follows no link out of its folder when it lists', async () => {
    await store.put('a', '')
    await fs.symlink('/', join(root, 'everything'))
    expect(await keys()).toEqual(['a'])
    expect(await store.listFolders('')).toEqual([])
  })

  it('writes nothing into an empty mount point, or into the store of another deployment', async () => {
    await store.put(layout.deployment(), '{"id":"dep-0123456789"}')
    store.belongTo!('dep-0123456789')
    await store.put('a', '')
    await fs.rename(root, `${root}-away`)
    await fs.mkdir(root)
    try {
      const writes = (): Promise<unknown>[] => [
        store.put('b', ''),
        store.putIfAbsent('b', ''),
        store.delete('a'),
      ]
      await Promise.all(
        [...writes(), store.get('a'), keys()].map((call) =>
          expect(call).rejects.toMatchObject({ isTransient: true, code: 'NO_MARK' }),
        ),
      )
      expect(await fs.readdir(root)).toEqual([])
      await fs.writeFile(join(root, layout.deployment()), '{"id":"dep-zzzzzzzzzz"}')
      const strange = /belongs to another deployment \(dep-zzzzzzzzzz, expected dep-0123456789\)/
      await Promise.all(writes().map((call) => expect(call).rejects.toThrow(strange)))
      expect(await fs.readdir(root)).toEqual([layout.deployment()])
    } finally {
      await fs.rm(root, { recursive: true })
      await fs.rename(`${root}-away`, root)
    }
    await store.put('b', '')
    expect(await keys()).toEqual(['a', 'b', layout.deployment()])
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
        expect(result).toMatchObject({ status: 'rejected', reason: { isTransient: true, code: 'NO_ROOT' } })
        expect(String((result as PromiseRejectedResult).reason)).toContain(
          `The folder ${root} of the object store is missing`,
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

describe('a download', () => {
  const SIZE = 64 * 1024 * 1024

  it('reports a full disk for its target, not for its source', async () => {
    const folder = await fs.mkdtemp(join(root, 'target-'))
    const disk = SmallDisk.mount(folder)
    // Only who may mount can have a disk that is really full.
    if (disk === undefined) return
    try {
      await store.put('a', Buffer.alloc(SIZE))
      const target = join(folder, 'copy')
      await expect(store.getFile('a', target)).rejects.toMatchObject({
        message: `Could not write ${target}: the disk is full: free some space there (ENOSPC).`,
        isTransient: true,
        code: 'ENOSPC',
      })
      expect(await fs.readdir(folder)).toEqual([])
    } finally {
      disk.unmount()
    }
  })

  it('names what it cannot write, and does not take it for an object that is missing', async () => {
    await store.put('a', 'x')
    const target = join(root, 'missing', 'copy')
    await expect(store.getFile('a', target)).rejects.toThrow(`Could not write ${target}: `)
    expect(await store.getFile('b', target)).toBe(false)
  })

  it('names what it cannot read', async () => {
    await store.put('a', 'x')
    jest.spyOn(fs, 'copyFile').mockRejectedValue(errno('EIO'))
    await expect(store.getFile('a', join(root, 'copy'))).rejects.toThrow(
      `Could not read ${join(root, 'a')}: `,
    )
    expect(await fs.readdir(root)).toEqual(['.tmp', 'a'])
  })
})

describe('openStore', () => {
  it('makes the folder only when asked to, whatever is in its name', async () => {
    const path = join(root, 'new folder', 'with %, # and ü')
    const opened = openStore(pathToFileURL(`${path}/`).href)
    await expect(opened.put('a', 'x')).rejects.toMatchObject({ code: 'NO_ROOT' })
    expect(await fs.readdir(root)).toEqual([])
    await opened.make!()
    await opened.put('a', 'x')
    expect(await fs.readFile(join(path, 'a'), 'utf8')).toBe('x')
    expect(opened.url).toBe(pathToFileURL(path).href)
  })

  it.each([
    ['ftp://host/x', 'the store is a folder or a bucket: write file:///srv/crucible or s3://bucket/prefix.'],
    ['/srv/my store', 'write file:///srv/my%20store or '],
    ['~/store', `write ${pathToFileURL(join(homedir(), 'store')).href} or `],
    ['store', `write ${pathToFileURL(resolve('store')).href} or `],
    ['', 'write file:///srv/crucible or '],
    ['file://srv/crucible', 'a folder has three slashes: write file:///srv/crucible.'],
    ['file:///', 'name a separate folder, such as file:///srv/crucible.'],
    ['file:///a?b', 'write ? as %3F and # as %23.'],
    ['file:///a%2Fb', 'write a URL such as file:///srv/crucible.'],
  ])('names the variable and says what to write instead of %j', (url, words) => {
    expect(() => openStore(url)).toThrow(StoreError)
    expect(() => openStore(url)).toThrow(`CRUCIBLE_STORE is "${url}": `)
    expect(() => openStore(url)).toThrow(words)
  })

  it('names the folder that it cannot make', async () => {
    await fs.writeFile(join(root, 'file'), '')
    await expect(openStore(pathToFileURL(join(root, 'file', 'store')).href).make!()).rejects.toThrow(
      join(root, 'file', 'store'),
    )
  })
})
