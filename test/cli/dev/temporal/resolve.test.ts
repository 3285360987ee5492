import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { installIntoCache } from '../../../../cli/dev/temporal/cache'
import { resolveExecutable, resolveTemporal, type Probes } from '../../../../cli/dev/temporal/resolve'
import { writeFakeCli } from './fake-cli'

let home: string
const notes: string[] = []
const progress = { note: (line: string) => notes.push(line), update: () => {} }

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'crucible resolve '))
  notes.length = 0
})

afterEach(() => {
  rmSync(home, { recursive: true, force: true })
})

const WAYS = ['address', 'environment', 'path', 'cache', 'download', 'build'] as const
type Way = (typeof WAYS)[number]

const old = { version: '1.8.2', serverVersion: '1.31.2' }
const good = { version: '1.9.1', serverVersion: '1.32.0' }
const address = {
  kind: 'address',
  address: 'there:7233',
  namespace: 'default',
  connectionOptions: {},
} as const

/** A world in which only some ways lead to a server, and which writes down every way that was tried. */
function world(open: readonly Way[]) {
  const tried: string[] = []
  const isOpen = (way: Way): boolean => {
    tried.push(way)
    return open.includes(way)
  }
  const probes: Partial<Probes> = {
    address: () => (isOpen('address') ? address : undefined),
    checkAnswers: async () => {},
    onPath: () => (isOpen('path') ? ['/bin/temporal'] : []),
    version: async (path) => {
      if (path === '/named') tried.push('environment')
      return good
    },
    cached: () =>
      isOpen('cache') ? { executable: { path: '/cache/temporal', origin: 'release', ...good } } : {},
    install: async (_home, produce) => ({
      path: '/cache/temporal',
      origin: await produce('/staging'),
      ...good,
    }),
    download: async () => {
      if (!isOpen('download')) throw new Error('no network')
    },
    build: async () => {
      if (!isOpen('build')) throw new Error('no go')
    },
  }
  const env = open.includes('environment') ? { CRUCIBLE_TEMPORAL_CLI: '/named' } : {}
  return { tried, options: { home, env, progress, probes } }
}

describe('resolveTemporal', () => {
  it.each(WAYS.map((way, index) => [way, WAYS.slice(index)] as const))(
    'takes the first way that leads somewhere: %s',
    async (first, open) => {
      const { tried, options } = world(open)
      const found = await resolveTemporal(options)
      expect(found.kind === 'address' ? 'address' : found.source).toBe(first)
      expect(tried.at(-1)).toBe(first)
      const before = WAYS.slice(0, WAYS.indexOf(first)).filter((way) => way !== 'environment')
      expect(tried.slice(0, -1)).toEqual(before)
    },
  )

  it('reports each attempted source and the remedies when all fail', async () => {
    const error: unknown = await resolveTemporal(world([]).options).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'not-found' })
    const { message } = error as Error
    for (const part of [
      'temporal is not on PATH',
      `cache at ${home}`,
      'no network',
      'no go',
      'TEMPORAL_ADDRESS',
      'brew install',
    ]) {
      expect(message).toContain(part)
    }
  })

  it('does not fall back from an address that does not answer', async () => {
    const { options, tried } = world(WAYS)
    options.probes.checkAnswers = () => Promise.reject(new Error('no server there'))
    await expect(resolveTemporal(options)).rejects.toThrow('no server there')
    expect(tried).toEqual(['address'])
  })

  it('says what an address that does not answer is, and what to do', async () => {
    const env = { TEMPORAL_ADDRESS: '127.0.0.1:1', TEMPORAL_CONFIG_FILE: join(home, 'none.toml') }
    await expect(resolveTemporal({ home, env, progress })).rejects.toMatchObject({
      code: 'no-answer',
      message: expect.stringMatching(/127\.0\.0\.1:1, but it does not answer .*correct TEMPORAL_ADDRESS/),
    })
  })
})

describe('resolveExecutable', () => {
  it('finds its own server even if the environment has an address', async () => {
    const { options } = world(['address', 'cache'])
    expect(await resolveExecutable(options)).toMatchObject({ kind: 'executable', source: 'cache', ...good })
  })

  it.each([
    ['is too old', () => Promise.resolve(old), /too old: its server is 1\.31\.2 .*unset/],
    ['was not found', () => Promise.reject(new Error('ENOENT')), /cannot be used: ENOENT.*unset/],
  ])('does not fall back from CRUCIBLE_TEMPORAL_CLI that %s', async (_what, version, message) => {
    const { options } = world(['environment', 'cache'])
    options.probes.version = version
    await expect(resolveExecutable(options)).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(message),
    })
  })

  it('fixes a relative CRUCIBLE_TEMPORAL_CLI, because the server is started with another PATH', async () => {
    const { options } = world(['environment'])
    const env = { CRUCIBLE_TEMPORAL_CLI: 'bin/temporal' }
    expect(await resolveExecutable({ ...options, env })).toMatchObject({ path: resolve('bin/temporal') })
  })

  it('skips programs on PATH that are too old or do not run, and reports them', async () => {
    const { options } = world(['cache'])
    options.probes.onPath = () => ['/old/temporal', '/broken/temporal']
    options.probes.version = async (path) => {
      if (path === '/old/temporal') return old
      throw new Error('Exec format error')
    }
    expect(await resolveExecutable(options)).toMatchObject({ source: 'cache' })
    expect(notes).toEqual([
      expect.stringMatching(/\/old\/temporal is too old: its server is 1\.31\.2/),
      expect.stringMatching(/\/broken\/temporal cannot be used: Exec format error/),
    ])
  })

  it('reports nothing when a usual source works', async () => {
    await resolveExecutable(world(['cache']).options)
    expect(notes).toEqual([])
  })

  it('reports a damaged cache and a failed download before it builds', async () => {
    const { options } = world(['build'])
    options.probes.cached = () => ({ remark: 'the cached one was exchanged' })
    expect(await resolveExecutable(options)).toMatchObject({ source: 'build' })
    expect(notes).toEqual([
      expect.stringContaining('was exchanged'),
      expect.stringContaining('download failed: no network'),
      expect.stringContaining('is ready'),
    ])
  })

  it('stops on request, and tries nothing more', async () => {
    const { options, tried } = world(['build'])
    const giveUp = new AbortController()
    options.probes.download = async () => {
      giveUp.abort(new Error('no longer wanted'))
      throw new Error('aborted')
    }
    await expect(resolveExecutable({ ...options, signal: giveUp.signal })).rejects.toThrow('no longer wanted')
    expect(tried).not.toContain('build')
  })

  it('takes the first good executable of a real PATH, and then that of a real cache', async () => {
    const tooOld = writeFakeCli(join(home, 'one', 'temporal'), { server: '1.31.0' })
    mkdirSync(join(home, 'two', 'temporal'), { recursive: true })
    mkdirSync(join(home, 'three'))
    writeFileSync(join(home, 'three', 'temporal'), 'not executable')
    const found = writeFakeCli(join(home, 'four', 'temporal'))
    const path = ['one', 'two', 'three', 'four'].map((name) => join(home, name)).join(':')
    expect(await resolveExecutable({ home, env: { PATH: path }, progress })).toMatchObject({
      path: found,
      source: 'path',
    })
    expect(notes).toEqual([expect.stringContaining(tooOld)])
    const produce = async (target: string): Promise<'release'> => {
      writeFakeCli(target)
      return 'release'
    }
    const installed = await installIntoCache(home, produce, { progress })
    expect(await resolveExecutable({ home, env: { PATH: '' }, progress })).toMatchObject({
      path: installed.path,
      source: 'cache',
    })
  })
})
