import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { buildFromModule, moduleFolder } from '../../../../cli/dev/programs/build'
import { TEMPORAL } from '../../../../cli/dev/temporal/program'
import { writeScript } from '../temporal/fake-cli'

let folder: string
let moduleDir: string
const updates: string[] = []
const progress = { note: () => {}, update: (line: string) => updates.push(line) }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible build '))
  moduleDir = join(folder, 'package', 'tools', 'temporal')
  mkdirSync(moduleDir, { recursive: true })
  writeFileSync(join(folder, 'package', 'package.json'), '{}')
  writeFileSync(join(moduleDir, 'go.mod'), 'module example')
  writeFileSync(join(moduleDir, 'go.sum'), 'sums')
  writeFileSync(join(moduleDir, 'main.go'), 'package main')
  updates.length = 0
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Builds with a `go` that is a shell script; the path of the result comes after `-o`. */
async function build(script: string | undefined, signal?: AbortSignal): Promise<string> {
  if (script !== undefined) writeScript(join(folder, 'bin', 'go'), script)
  const path = join(folder, 'temporal')
  const env = {
    PATH: script === undefined ? join(folder, 'bin') : `${join(folder, 'bin')}:/usr/bin:/bin`,
    GOFLAGS: '-mod=vendor',
  }
  await buildFromModule(TEMPORAL, { folder: moduleDir, path }, { env, progress, signal })
  return readFileSync(path, 'utf8')
}

const ANSWERS_VERSION = 'if [ "$1" = env ]; then echo go1.26.8; exit; fi'
const FINDS_TARGET = 'while [ "$1" != -o ]; do shift; done; target=$2'

describe('buildFromModule', () => {
  it('builds the pinned CLI from a copy of the module, whatever flags the user has', async () => {
    const told = await build(
      `${ANSWERS_VERSION}
       all="$*"
       ${FINDS_TARGET}
       { echo "$all"; ls; echo "GOFLAGS=[$GOFLAGS] GOWORK=$GOWORK CGO_ENABLED=$CGO_ENABLED"; pwd; } >"$target"`,
    )
    const [args, mod, sum, main, environment, cwd] = told.trimEnd().split('\n')
    expect(args).toMatch(/^build -mod=readonly .* github.com\/temporalio\/cli\/cmd\/temporal$/)
    expect(args).toContain('temporalcli.Version=1.9.1')
    expect([mod, sum, main]).toEqual(['go.mod', 'go.sum', 'main.go'])
    expect(environment).toBe('GOFLAGS=[] GOWORK=off CGO_ENABLED=0')
    expect(cwd).not.toBe(moduleDir)
    expect(existsSync(cwd!)).toBe(false)
    expect(readdirSync(moduleDir).sort()).toEqual(['go.mod', 'go.sum', 'main.go'])
  })

  it('reports its progress', async () => {
    await build(
      `${ANSWERS_VERSION}\n echo one/package >&2; echo another >&2; sleep 1.2\n ${FINDS_TARGET}; echo >"$target"`,
    )
    expect(updates.at(-1)).toMatch(/Building the Temporal server .*: 1s, 2 steps done/)
  })

  it('reports a missing go', async () => {
    await expect(build(undefined)).rejects.toThrow('go is not on PATH')
  })

  it('reports a go that is too old to fetch the required one', async () => {
    await expect(build('echo go1.20.14')).rejects.toThrow('needs Go 1.21 or newer, but PATH has go1.20.14')
  })

  it('reports the last output of a failed build', async () => {
    await expect(build(`${ANSWERS_VERSION}\n echo 'dial tcp: no such host' >&2; exit 1`)).rejects.toThrow(
      /go build failed:\ndial tcp: no such host/,
    )
  })

  it('stops on request', async () => {
    const giveUp = new AbortController()
    const building = build(`${ANSWERS_VERSION}\n exec sleep 60`, giveUp.signal)
    setTimeout(() => giveUp.abort(), 100)
    await expect(building).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('moduleFolder', () => {
  it('is found from the sources and from the built code', () => {
    const repository = join(__dirname, '../../../..')
    expect(moduleFolder(__dirname, 'temporal')).toBe(join(repository, 'tools', 'temporal'))
    const built = join(folder, 'package', 'dist', 'cli', 'dev', 'temporal')
    mkdirSync(built, { recursive: true })
    expect(moduleFolder(built, 'temporal')).toBe(moduleDir)
  })

  it('is not taken from outside the package', () => {
    rmSync(moduleDir, { recursive: true })
    mkdirSync(join(folder, 'tools', 'temporal'), { recursive: true })
    writeFileSync(join(folder, 'tools', 'temporal', 'go.sum'), '')
    expect(moduleFolder(join(folder, 'package'), 'temporal')).toBeUndefined()
  })
})
