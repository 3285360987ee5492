import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startDevServer } from '../../../../cli/dev/temporal/dev-server'
import { serverArguments } from '../../../../cli/dev/temporal/launch'
import { writeFakeCli } from './fake-cli'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible-start-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** The error of a start whose server is a shell script. */
function failure(script: string, options: { dataFile?: string } = {}): Promise<unknown> {
  const path = writeFakeCli(join(folder, 'temporal'), { script })
  const executable = { path, version: '1.9.1', serverVersion: '1.32.0' }
  return startDevServer({ executable, ...options }).then(
    () => 'it started',
    (error: unknown) => error,
  )
}

describe('startDevServer', () => {
  it('reports the last output of a server that ends immediately', async () => {
    expect(await failure('echo "Error: no such flag" >&2; exit 3')).toMatchObject({
      code: 'start-failed',
      message: expect.stringMatching(/temporal ended with exit code 3; last output:\nError: no such flag/),
    })
  })

  it('tries other free ports when the server finds its own taken, but not forever', async () => {
    const tries = join(folder, 'tries')
    const error = await failure(`echo "$*" >>'${tries}'; echo 'bind: address already in use' >&2; exit 1`)
    expect(error).toMatchObject({ code: 'port-taken' })
    const ports = readFileSync(tries, 'utf8').match(/--port \d+/g)!
    expect(ports).toHaveLength(3)
  })

  it.each(['file is not a database (26)', 'SQL logic error: no such table: namespaces (1)'])(
    'says that the data file is of no use and what to do when the server says "%s"',
    async (words) => {
      const dataFile = join(folder, 'data', 'temporal.db')
      expect(await failure(`echo 'Error: ${words}' >&2; exit 1`, { dataFile })).toMatchObject({
        code: 'data-file',
        message: expect.stringMatching(/temporal\.db cannot be used\. To start over, move .*temporal\.db/),
      })
      expect(readdirSync(`${dataFile}.lock`)).toEqual([])
    },
  )
})

describe('serverArguments', () => {
  const ports = { grpc: 7233, ui: 8233 }
  const args = (options: Parameters<typeof serverArguments>[1]): string =>
    serverArguments(ports, options).join(' ')

  it('keeps to this machine and does not call out', () => {
    expect(args({})).toMatch(
      /^server start-dev --ip 127\.0\.0\.1 .*--port 7233 --ui-port 8233 .*--ui-disable-news-fetch/,
    )
    expect(args({}).match(/--search-attribute \w+=Keyword/g)).toHaveLength(5)
  })

  it('closes the HTTP API, and puts the Web UI on the given port', () => {
    expect(args({})).toContain('--dynamic-config-value frontend.httpAllowedHosts=["closed.invalid"]')
    const hidden = serverArguments({ ...ports, uiHost: '127.9.8.7' }, {})
    expect(hidden.slice(hidden.indexOf('--ui-ip'))[1]).toBe('127.9.8.7')
  })

  it('writes a data file with a write-ahead log, and none unless it is named', () => {
    expect(args({ dataFile: '/data/temporal.db' })).toContain(
      '--db-filename /data/temporal.db --sqlite-pragma journal_mode=WAL --sqlite-pragma synchronous=NORMAL',
    )
    expect(args({})).not.toMatch(/db-filename|pragma/)
  })

  it('has one partition of each task queue in memory; those of a data file may hold tasks, and stay', () => {
    const partitions = /matching\.numTaskqueue(Read|Write)Partitions=1/g
    expect(args({}).match(partitions)).toHaveLength(2)
    expect(args({ dataFile: '/data/temporal.db' })).not.toMatch(partitions)
  })

  it('skips time only when asked to', () => {
    expect(args({ isTimeSkippingEnabled: true })).toContain('frontend.WorkflowTimeSkippingEnabled=true')
    expect(args({})).not.toContain('TimeSkipping')
  })
})
