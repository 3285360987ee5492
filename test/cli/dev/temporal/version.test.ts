import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from '@jest/globals'
import { GRACE_SECONDS } from '../../../../cli/dev/temporal/leash'
import {
  askVersion,
  isServerNewEnough,
  MIN_SERVER_VERSION,
  TEMPORAL_CLI_VERSION,
} from '../../../../cli/dev/temporal/version'

describe('the version of an executable', () => {
  const folder = mkdtempSync(join(tmpdir(), 'crucible-version-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it.each([
    ['temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)\n', { version: '1.9.1', serverVersion: '1.32.0' }],
    [
      'temporal version 0.0.0-DEV (Server 1.33.0-rc.1, UI 3)',
      { version: '0.0.0-DEV', serverVersion: '1.33.0-rc.1' },
    ],
    ['tctl version 1.18', undefined],
    ['', undefined],
  ])('that prints %j is read', async (text, expected) => {
    const path = join(folder, 'temporal')
    writeFileSync(path, `#!/bin/sh\nprintf '%s' '${text}'\n`, { mode: 0o755 })
    if (expected === undefined) await expect(askVersion(path)).rejects.toThrow('it is not the Temporal CLI')
    else expect(await askVersion(path)).toEqual(expected)
  })
})

describe('isServerNewEnough', () => {
  it.each([
    ['1.31.9', false],
    ['0.40.0', false],
    ['1.32.0', true],
    ['1.32.0-158.1', true],
    ['1.32.7', true],
    ['1.100.0', true],
    ['2.0.0', true],
  ])('%s: %s', (version, expected) => {
    expect(isServerNewEnough(version)).toBe(expected)
  })
})

describe('the guide', () => {
  it('names the versions, the place and the limits that the code has', () => {
    const guide = readFileSync(
      join(__dirname, '../../../../docs/reference/temporal-server.md'),
      'utf8',
    ).replaceAll('\n', ' ')
    for (const text of [
      `https://github.com/temporalio/cli/releases/download/v${TEMPORAL_CLI_VERSION}/temporal_cli_${TEMPORAL_CLI_VERSION}_<os>_<arch>.tar.gz`,
      `cache/temporal/${TEMPORAL_CLI_VERSION}/temporal`,
      `is ${MIN_SERVER_VERSION} or newer`,
      `SIGKILL after ${GRACE_SECONDS} seconds`,
    ]) {
      expect(guide).toContain(text)
    }
  })
})

describe('the pinned version', () => {
  it('is the one that the Go module builds', () => {
    const module = readFileSync(join(__dirname, '../../../../tools/temporal/go.mod'), 'utf8')
    expect(module).toContain(`require github.com/temporalio/cli v${TEMPORAL_CLI_VERSION}\n`)
  })
})
