import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { writeScript } from '../cli/dev/temporal/fake-cli'
import { testFolder } from '../support/folders'

const MODULE = join(__dirname, '../../tools/aws-clients.mjs')

let home: string
let bin: string

beforeEach(() => {
  home = testFolder('home')
  bin = testFolder('bin')
  // Makes an environment whose Python notes what it is asked, and fails as long as there is a file `offline`.
  writeScript(
    join(bin, 'python3'),
    `echo venv >>${home}/calls; mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@" >>${home}/calls\\nif [ -e ${home}/offline ]; then echo "No matching distribution" >&2; exit 1; fi\\n' >"$3/bin/python3"
chmod +x "$3/bin/python3"`,
  )
})

function get(): { folder: string; stderr: string } {
  const script = `import(${JSON.stringify(MODULE)}).then(async ({ getAwsClients }) =>
    console.log(String(await getAwsClients(${JSON.stringify(home)}, (line) => console.error(line)))))`
  const env = { PATH: `${bin}:/usr/bin:/bin` }
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8' })
  return { folder: stdout.trim(), stderr }
}

describe('the clients for the tests', () => {
  it('are got once, at their versions', () => {
    const { folder } = get()
    expect(existsSync(join(folder, 'bin/python3'))).toBe(true)
    const calls = readFileSync(join(home, 'calls'), 'utf8')
    expect(calls).toMatch(/^venv\n-m pip install .*aws-clients\.txt\n$/)
    expect(get()).toEqual({ folder, stderr: '' })
    expect(readFileSync(join(home, 'calls'), 'utf8')).toBe(calls)
  })

  it('that cannot be had are done without, in words, and tried again the next time', () => {
    writeFileSync(join(home, 'offline'), '')
    const { folder, stderr } = get()
    expect(folder).toBe('undefined')
    expect(stderr).toContain('their tests are skipped: No matching distribution')
    expect(readdirSync(join(home, 'cache/aws-clients'))).toEqual([])
    writeFileSync(join(bin, 'python3'), '#!/bin/sh\nexit 1\n')
    expect(get().stderr).toContain('ended with exit code 1')
  })
})
