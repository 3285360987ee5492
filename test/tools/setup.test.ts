import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { writeScript } from '../cli/dev/temporal/fake-cli'
import { FakeCheckout } from './fake-checkout'

let checkout: FakeCheckout

beforeEach(() => {
  checkout = new FakeCheckout()
})

afterEach(() => {
  checkout.remove()
})

function setUp(...args: string[]): ReturnType<FakeCheckout['node']> {
  return checkout.node('tools/setup.mjs', ...args)
}

/** Every file with the moment it was last written. */
function everything(): string[] {
  return readdirSync(checkout.folder, { recursive: true, encoding: 'utf8' })
    .map((name) => `${name} ${statSync(join(checkout.folder, name)).mtimeMs}`)
    .sort()
}

describe('setup', () => {
  it('installs and builds at first, and then does and says nothing', async () => {
    const first = await setUp()
    expect(first).toMatchObject({ code: 0, stdout: '' })
    expect(first.stderr).toContain('Installing dependencies')
    expect(checkout.calls()).toEqual(['npm ci --include=dev --no-audit --no-fund', 'tsc'])
    for (const path of [
      'core/time.js',
      'core/units.json',
      'runner/crucible-runner.pyz',
      'workers/workflow-bundle.js',
    ]) {
      expect(existsSync(checkout.path(`dist/${path}`))).toBe(true)
    }
    const before = everything()
    expect(await setUp()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(checkout.calls()).toEqual([])
    expect(everything()).toEqual(before)
  })

  it('says nothing with --quiet, whatever it does', async () => {
    expect(await setUp('--quiet')).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(checkout.calls()).toHaveLength(2)
  })

  it.each([
    ['another version', { 'node_modules/one': { version: '1.0.1', integrity: 'sha512-one' } }],
    ['other bytes', { 'node_modules/one': { version: '1.0.0', integrity: 'sha512-other' } }],
  ])('installs again when package-lock.json wants %s', async (_what, packages) => {
    await setUp()
    checkout.calls()
    checkout.writeLock(packages)
    expect(await setUp()).toMatchObject({ code: 0 })
    expect(checkout.calls()).toContain('npm ci --include=dev --no-audit --no-fund')
    await setUp()
    expect(checkout.calls()).toEqual([])
  })

  it('builds again, and only what changed, when a source changed', async () => {
    await setUp()
    checkout.calls()
    checkout.write('core/time.ts', '// later')
    await setUp()
    expect(checkout.calls()).toEqual(['tsc'])
    expect(readFileSync(checkout.path('dist/core/time.js'), 'utf8')).toBe('// later')
    checkout.write('runner/__main__.py', 'print()')
    const { stderr } = await setUp()
    expect(stderr).toBe('Building: runner\n')
    expect(checkout.calls()).toEqual([])
  })

  it('builds again what was taken out of dist, and takes out what has no source', async () => {
    await setUp()
    checkout.calls()
    rmSync(checkout.path('dist/core/time.js'))
    await setUp()
    expect(existsSync(checkout.path('dist/core/time.js'))).toBe(true)
    rmSync(checkout.path('core/time.ts'))
    await setUp()
    expect(existsSync(checkout.path('dist/core/time.js'))).toBe(false)
    expect(existsSync(checkout.path('dist/workers/workflow-bundle.js'))).toBe(true)
  })

  it('tells what does not compile, and tries again the next time', async () => {
    checkout.write('core/time.ts', 'BROKEN')
    const failed = { code: 1, stderr: expect.stringContaining('core/time.ts(1,1): error TS1: it is broken') }
    expect(await setUp()).toMatchObject(failed)
    expect(await setUp()).toMatchObject(failed)
    checkout.write('core/time.ts', '// fixed')
    expect(await setUp()).toMatchObject({ code: 0 })
  })

  it('tells why npm failed and what to do', async () => {
    checkout.npm(
      'echo "npm error code ENOTFOUND" >&2; i=0; while [ $i -lt 90 ]; do i=$((i + 1)); echo "npm error $i" >&2; done; exit 1',
    )
    const { code, stderr } = await setUp()
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /could not be installed:\nnpm error code ENOTFOUND\n[^]*run this again when it is back/,
    )
    expect(stderr).not.toContain('npm error 90')
  })

  it('says so when there is no npm', async () => {
    rmSync(checkout.path('bin/npm'))
    const { code, stderr } = await checkout.run(process.execPath, ['tools/setup.mjs'], checkout.path('bin'))
    expect(code).toBe(1)
    expect(stderr).toContain('there is no npm on PATH')
  })

  it.each([
    ['no Python', undefined, 'python3 cannot be run'],
    ['it is too old', 'echo 3.7', 'python3 is 3.7'],
    ['it is broken', 'exit 1', 'python3 cannot be run'],
  ])('says how to get Python when %s', async (_what, script, message) => {
    rmSync(checkout.path('bin/python3'))
    if (script !== undefined) writeScript(checkout.path('bin/python3'), script)
    const { code, stderr } = await checkout.run(process.execPath, ['tools/setup.mjs'], checkout.path('bin'))
    expect(code).toBe(1)
    expect(stderr).toContain(message)
    expect(stderr).toContain('apt install python3')
  })

  it('looks for Python where machines will', async () => {
    rmSync(checkout.path('bin/python3'))
    writeScript(checkout.path('bin/python'), 'echo 3.11')
    const setUp = (python: string) =>
      checkout.run(
        '/usr/bin/env',
        [`CRUCIBLE_LOCAL_PYTHON=${python}`, process.execPath, 'tools/setup.mjs'],
        `${checkout.path('bin')}:/bin`,
      )
    const mine = checkout.path('my python')
    expect((await setUp(mine)).stderr).toContain(`${mine} cannot be run`)
    writeScript(mine, 'echo 3.8')
    expect((await setUp(mine)).code).toBe(0)
    // Unset, it is python3 and nothing else.
    const unset = await checkout.run(process.execPath, ['tools/setup.mjs'], checkout.path('bin'))
    expect(unset.stderr).toContain('python3 cannot be run')
  })

  it.each(['18.20.8', '20.18.3', '25.0.0'])('refuses Node %s and says which to get', async (version) => {
    const pretend = `Object.defineProperty(process, 'versions', { value: { node: '${version}' } })`
    const { code, stderr } = await checkout.node(
      '--import',
      `data:text/javascript,${pretend}`,
      'tools/setup.mjs',
    )
    expect(code).toBe(1)
    expect(stderr).toContain(`runs on Node 20.19 to 24, and this is ${version}`)
  })

  it('says so when package-lock.json is damaged', async () => {
    checkout.write('package-lock.json', '{ "packages": {')
    const { code, stderr } = await setUp()
    expect(code).toBe(1)
    expect(stderr).toContain('package-lock.json is missing or damaged')
  })

  it('does the work once when two run at once', async () => {
    const outcomes = await Promise.all([setUp(), setUp()])
    expect(outcomes.map(({ code }) => code)).toEqual([0, 0])
    expect(checkout.calls()).toEqual(['npm ci --include=dev --no-audit --no-fund', 'tsc'])
  })

  it('finds a Temporal server with --test', async () => {
    const { code, stderr } = await setUp('--test')
    expect(code).toBe(0)
    expect(stderr).toContain('Temporal 1.9.1: /bin/temporal')
    expect(stderr).toContain('S3 server: /bin/versitygw')
    expect(stderr).toContain('AWS clients: /bin/aws-clients')
    expect(stderr).toContain("Modal's client: /bin/modal-clients")
    expect(stderr).toContain("Lambda's client: /bin/lambda-clients")
    expect(stderr).toContain('Tools of the Python packages: /bin/python-packages')
  })
})

describe('./crucible', () => {
  const crucible = (...args: string[]): ReturnType<FakeCheckout['run']> =>
    checkout.run(
      checkout.path('crucible'),
      args,
      `${checkout.path('bin')}:${dirname(process.execPath)}:/usr/bin:/bin`,
    )

  it('sets the clone up, which it reports on stderr, and then runs the command', async () => {
    const first = await crucible('list', '--json', '--test', '--quiet')
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('Installing dependencies') })
    expect(JSON.parse(first.stdout)).toEqual({
      arguments: ['list', '--json', '--test', '--quiet'],
      startedAs: checkout.path('crucible'),
    })
    expect(await crucible('list', '--json')).toMatchObject({ code: 0, stderr: '' })
    expect(checkout.calls()).toEqual(['npm ci --include=dev --no-audit --no-fund', 'tsc'])
  })

  it('prints nothing on stdout and runs nothing when the clone cannot be set up', async () => {
    checkout.npm('echo "npm error no network" >&2; exit 1')
    expect(await crucible('list')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('The dependencies could not be installed'),
    })
  })
})
