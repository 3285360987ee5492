import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  cachedPath,
  findCached,
  installIntoCache,
  isCacheIntact,
  type CachedExecutable,
} from '../../../../cli/dev/temporal/cache'
import { TEMPORAL_CLI_VERSION } from '../../../../cli/dev/temporal/version'
import { writeFakeCli } from './fake-cli'

let home: string
const progress = { note: () => {}, update: () => {} }

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'crucible home '))
})

afterEach(() => {
  rmSync(home, { recursive: true, force: true })
})

function install(): Promise<CachedExecutable> {
  return installIntoCache(
    home,
    async (path) => {
      writeFakeCli(path)
      return 'release'
    },
    { progress },
  )
}

describe('the cache', () => {
  it('is empty at first', async () => {
    expect(findCached(home)).toEqual({})
    expect(await isCacheIntact(home)).toBeUndefined()
  })

  it('finds again what was installed, with its own versions', async () => {
    const installed = await install()
    expect(installed).toEqual({
      path: cachedPath(home),
      origin: 'release',
      version: '9.9.9',
      serverVersion: '1.32.0',
    })
    expect(findCached(home)).toEqual({ executable: installed })
    expect(await isCacheIntact(home)).toBe(true)
    expect(readdirSync(join(home, 'cache', 'temporal')).sort()).toEqual([TEMPORAL_CLI_VERSION, 'lock'])
  })

  it.each([
    ['grew', () => appendFileSync(cachedPath(home), '#')],
    ['has no record', () => rmSync(join(cachedPath(home), '..', 'temporal.json'))],
    ['has a damaged record', () => writeFileSync(join(cachedPath(home), '..', 'temporal.json'), '{"ver')],
  ])('passes over an executable that %s, saying so, and replaces it', async (_what, damage) => {
    await install()
    damage()
    const { executable, remark } = findCached(home)
    expect(executable).toBeUndefined()
    expect(remark).toContain(cachedPath(home))
    expect(await isCacheIntact(home)).toBe(false)
    await install()
    expect(await isCacheIntact(home)).toBe(true)
  })

  it('detects a replaced executable of the same size and time', async () => {
    await install()
    const path = cachedPath(home)
    const { mtimeMs } = statSync(path)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace('exit 1', 'exit 2'))
    utimesSync(path, mtimeMs / 1_000, mtimeMs / 1_000)
    expect(findCached(home).executable).toBeUndefined()
    expect(await isCacheIntact(home)).toBe(false)
  })

  it('stays valid when its timestamps change, as in a copied home', async () => {
    await install()
    utimesSync(cachedPath(home), 1_000_000, 1_000_000)
    expect(findCached(home)).toEqual({ executable: expect.objectContaining({ path: cachedPath(home) }) })
  })

  it('is filled once by concurrent processes', async () => {
    let produced = 0
    const runs = Array.from({ length: 4 }, () =>
      installIntoCache(
        home,
        async (path) => {
          produced += 1
          writeFakeCli(path)
          return 'go-build'
        },
        { progress },
      ),
    )
    const installed = await Promise.all(runs)
    expect(produced).toBe(1)
    expect(new Set(installed.map(({ path }) => path))).toEqual(new Set([cachedPath(home)]))
  })

  it.each([
    ['cannot be got', () => Promise.reject(new Error('no network'))],
    [
      'does not run here',
      async (path: string) => {
        writeFileSync(path, 'not for this machine', { mode: 0o755 })
        return 'release' as const
      },
    ],
  ])('stays empty when the executable %s, and lets the next one try', async (_what, produce) => {
    await expect(installIntoCache(home, produce, { progress })).rejects.toThrow()
    expect(readdirSync(join(home, 'cache', 'temporal'))).toEqual(['lock'])
    await install()
    expect(findCached(home).executable).toBeDefined()
  })
})
