import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { obtain } from '../../../../cli/dev/programs/obtain'
import type { Program } from '../../../../cli/dev/programs/program'
import { VERSITYGW } from '../../../../cli/dev/versitygw/program'
import { writeScript } from '../temporal/fake-cli'

let home: string
const notes: string[] = []
const progress = { note: (line: string) => notes.push(line), update: () => {} }

/** The server for a platform without a release: it is built. */
const program: Program<{ version: string }> = { ...VERSITYGW, releaseFor: () => undefined }

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'crucible obtain '))
  notes.length = 0
})

afterEach(() => {
  rmSync(home, { recursive: true, force: true })
})

function writeProgram(path: string, version: string): string {
  mkdirSync(dirname(path), { recursive: true })
  writeScript(path, `echo "Version  : v${version}"; echo "Build    : norev"`)
  return path
}

/** A `go` that builds a program of the version, or fails. */
function writeGo(version: string | undefined): void {
  const build =
    version === undefined
      ? 'echo "no network" >&2; exit 1'
      : `while [ "$1" != -o ]; do shift; done; printf '#!/bin/sh\\necho "Version  : v${version}"\\n' >"$2"; chmod +x "$2"`
  writeScript(join(home, 'bin', 'go'), `if [ "$1" = env ]; then echo go1.26.8; exit; fi\n${build}`)
}

function get(env: Record<string, string> = {}): Promise<string> {
  const path = `${join(home, 'bin')}:/usr/bin:/bin`
  return obtain(program, { home, env: { PATH: path, ...env }, variable: 'CRUCIBLE_VERSITYGW', progress })
}

describe('a program that is needed', () => {
  it('comes from the path in its variable, or is reported as an error', async () => {
    const named = writeProgram(join(home, 'named'), '1.0.0')
    expect(await get({ CRUCIBLE_VERSITYGW: named })).toBe(named)
    await expect(get({ CRUCIBLE_VERSITYGW: '/bin/true' })).rejects.toThrow(
      /CRUCIBLE_VERSITYGW names \/bin\/true, which cannot be used: it is not versitygw/,
    )
  })

  it('is taken from PATH when it is new enough, and built when it is not', async () => {
    const path = writeProgram(join(home, 'bin', 'versitygw'), '1.10.0')
    expect(await get()).toBe(path)
    writeProgram(path, '1.7.9')
    writeGo('1.8.0')
    expect(await get()).toBe(join(home, 'cache', 'versitygw', '1.8.0', 'versitygw'))
    expect(notes.join('\n')).toContain('Building the S3 server with Go')
  })

  it('is built once, and found again', async () => {
    writeGo('1.8.0')
    const built = await get()
    writeGo(undefined)
    expect(await get()).toBe(built)
  })

  it('is reported with each attempted source and the remedies when all fail', async () => {
    writeGo(undefined)
    const failing = get()
    await expect(failing).rejects.toThrow(/No S3 server was found, and none could be installed/)
    await expect(failing).rejects.toThrow(/versitygw is not on PATH/)
    await expect(failing).rejects.toThrow(/the download failed: there is no release/)
    await expect(failing).rejects.toThrow(/no network/)
    await expect(failing).rejects.toThrow(/name it in CRUCIBLE_VERSITYGW/)
  })

  it('is of the version that its Go module builds', () => {
    const module = readFileSync(join(__dirname, '../../../../tools/versitygw/go.mod'), 'utf8')
    expect(module).toContain(`github.com/versity/versitygw v${VERSITYGW.version}`)
  })
})
