import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { create } from 'tar'
import { downloadRelease, type DownloadOptions } from '../../../../cli/dev/programs/download'
import { releaseFor } from '../../../../cli/dev/temporal/program'
import { VERSITYGW } from '../../../../cli/dev/versitygw/program'

const PROGRAM = `#!/bin/sh\n# ${'x'.repeat(200_000)}\n`

let folder: string
let into: string
let server: Server
let baseUrl: string
let archive: Buffer
let strange: Buffer
const updates: string[] = []
const progress = { note: () => {}, update: (line: string) => updates.push(line) }

/** What the server does with a request for each path. */
const answers: Record<string, (response: ServerResponse) => void> = {
  '/good': (response) => response.end(archive),
  '/strange': (response) => response.end(strange),
  '/moved': (response) => response.writeHead(302, { location: '/good' }).end(),
  '/missing': (response) => response.writeHead(404).end('no such release'),
  '/truncated': (response) => {
    response.writeHead(200, { 'content-length': archive.length })
    response.write(archive.subarray(0, archive.length / 2), () => response.destroy())
  },
  // In all longer than a connection may be silent, and never silent for long.
  '/slow': (response) => {
    const size = Math.ceil(archive.length / 15)
    let sent = 0
    const timer = setInterval(() => {
      response.write(archive.subarray(sent, (sent += size)))
      if (sent < archive.length) return
      clearInterval(timer)
      response.end()
    }, 100)
  },
  '/silent': (response) => {
    response.writeHead(200, { 'content-length': archive.length })
    response.write(archive.subarray(0, archive.length / 2))
  },
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'crucible download '))
  mkdirSync(join(folder, 'release'))
  writeFileSync(join(folder, 'release', 'temporal'), PROGRAM)
  writeFileSync(join(folder, 'release', 'LICENSE'), 'MIT')
  await create({ gzip: true, file: join(folder, 'release.tar.gz'), cwd: join(folder, 'release') }, [
    'LICENSE',
    'temporal',
  ])
  archive = readFileSync(join(folder, 'release.tar.gz'))
  await create({ gzip: true, file: join(folder, 'strange.tar.gz'), cwd: join(folder, 'release') }, [
    'LICENSE',
  ])
  strange = readFileSync(join(folder, 'strange.tar.gz'))
  server = createServer((request, response) => answers[request.url!]!(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  baseUrl = `http://127.0.0.1:${(server.address() as { port: number }).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

beforeEach(() => {
  into = mkdtempSync(join(folder, 'into '))
  updates.length = 0
})

function download(path: string, options: Partial<DownloadOptions> = {}): Promise<void> {
  const sha256 = createHash('sha256').update(archive).digest('hex')
  return downloadRelease({ url: baseUrl + path, sha256, file: 'temporal' }, join(into, 'temporal'), {
    title: 'server',
    progress,
    ...options,
  })
}

describe('downloadRelease', () => {
  it.each(['/good', '/moved'])('puts the executable in its place from %s, and nothing else', async (path) => {
    await download(path)
    expect(readdirSync(into)).toEqual(['temporal'])
    expect(readFileSync(join(into, 'temporal'), 'utf8')).toBe(PROGRAM)
    expect(statSync(join(into, 'temporal')).mode & 0o777).toBe(0o755)
  })

  it('reports its progress', async () => {
    await download('/good')
    expect(updates.at(-1)).toMatch(/^Downloading the server: \d+\.\d MB/)
  })

  it.each([
    ['/missing', /\/missing answered 404/],
    ['/truncated', /terminated/],
  ])('refuses what comes from %s and leaves nothing', async (path, message) => {
    await expect(download(path)).rejects.toThrow(message)
    expect(readdirSync(into)).toEqual([])
  })

  it('refuses an archive with another digest and leaves nothing', async () => {
    const release = { url: `${baseUrl}/good`, sha256: '0'.repeat(64), file: 'temporal' }
    await expect(
      downloadRelease(release, join(into, 'temporal'), { title: 'server', progress }),
    ).rejects.toThrow(/has SHA-256 [0-9a-f]{64}, but 0{64} was expected; it was not installed/)
    expect(readdirSync(into)).toEqual([])
  })

  it('refuses an archive without the executable', async () => {
    const sha256 = createHash('sha256').update(strange).digest('hex')
    const release = { url: `${baseUrl}/strange`, sha256, file: 'temporal' }
    await expect(
      downloadRelease(release, join(into, 'temporal'), { title: 'server', progress }),
    ).rejects.toThrow('does not contain a file "temporal"')
    expect(readdirSync(into)).toEqual([])
  })

  it('gives up on a connection that sends no data', async () => {
    await expect(download('/silent', { stallMs: 100 })).rejects.toThrow('sent no data for too long')
    expect(readdirSync(into)).toEqual([])
  })

  it('waits for a slow connection that still sends data', async () => {
    await download('/slow', { stallMs: 1_000 })
    expect(readFileSync(join(into, 'temporal'), 'utf8')).toBe(PROGRAM)
  })

  it('stops on request', async () => {
    const giveUp = new AbortController()
    const downloading = download('/silent', { signal: giveUp.signal })
    giveUp.abort(new Error('no longer wanted'))
    await expect(downloading).rejects.toThrow('no longer wanted')
    expect(readdirSync(into)).toEqual([])
  })

  it('reports a server that does not answer', async () => {
    const release = { url: 'http://127.0.0.1:1/temporal.tar.gz', sha256: '', file: 'temporal' }
    await expect(
      downloadRelease(release, join(into, 'temporal'), { title: 'server', progress }),
    ).rejects.toThrow('fetch failed')
  })
})

describe('releaseFor', () => {
  it.each([
    ['linux', 'x64', 'linux_amd64'],
    ['linux', 'arm64', 'linux_arm64'],
    ['darwin', 'x64', 'darwin_amd64'],
    ['darwin', 'arm64', 'darwin_arm64'],
  ])('names the official archive for %s on %s', (platform, arch, name) => {
    const release = releaseFor(platform, arch)!
    expect(release.url).toBe(
      `https://github.com/temporalio/cli/releases/download/v1.9.1/temporal_cli_1.9.1_${name}.tar.gz`,
    )
    expect(release.sha256).toMatch(/^[0-9a-f]{64}$/)
  })

  it.each([
    ['linux', 'x64', 'Linux_x86_64'],
    ['darwin', 'arm64', 'Darwin_arm64'],
  ])('names that of the S3 server for %s on %s', (platform, arch, name) => {
    const release = VERSITYGW.releaseFor(platform, arch)!
    expect(release.url).toBe(
      `https://github.com/versity/versitygw/releases/download/v1.8.0/versitygw_v1.8.0_${name}.tar.gz`,
    )
    expect(release.file).toBe(`versitygw_v1.8.0_${name}/versitygw`)
    expect(release.sha256).toMatch(/^[0-9a-f]{64}$/)
  })

  it.each([
    ['win32', 'x64'],
    ['linux', 'ppc64'],
  ])('knows none for %s on %s', (platform, arch) => {
    expect(releaseFor(platform, arch)).toBeUndefined()
    expect(VERSITYGW.releaseFor(platform, arch)).toBeUndefined()
  })
})
