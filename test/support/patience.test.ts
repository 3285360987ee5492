import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PATIENCE_SETTING, patient, patienceOf } from './patience'

const { projects } = jest.requireActual<{ projects: { transform: Record<string, [string, object]> }[] }>(
  '../../jest.config.js',
)
const ROOT = join(__dirname, '..', '..')
const run = promisify(execFile)

describe('the patience factor', () => {
  it('is 1 on an idle machine, and grows with the processes that want each processor, up to 4', () => {
    expect([0, 0.4, 1, 1.5, 3, 40].map((busy) => patienceOf(undefined, busy))).toEqual([1, 1, 1, 1.5, 3, 4])
  })

  it('is what the setting says, however busy the machine is', () => {
    expect(['1', '2.5', '20'].map((setting) => patienceOf(setting, 3))).toEqual([1, 2.5, 20])
    expect(patienceOf('', 3)).toBe(3)
  })

  it.each(['0', '0.5', '-1', 'Infinity', 'much'])('cannot be %s', (setting) => {
    expect(() => patienceOf(setting, 1)).toThrow(`${PATIENCE_SETTING}=${setting}: must be`)
  })

  it('is one for all that a test file starts', async () => {
    const set = process.env[PATIENCE_SETTING]!
    expect(patient(1_000)).toBe(Math.ceil(1_000 * Number(set)))
    const code = 'import support; print(support.patient(1.0))'
    const at = { cwd: join(ROOT, 'test/runner/python'), env: { ...process.env } }
    const { stdout } = await run('python3', ['-c', code], at)
    expect(Number(stdout)).toBeCloseTo(Number(set))
  })
})

describe('the time limits of Jest', () => {
  /** Jest's configuration with nothing in it but the environment. */
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'crucible-patience-'))
    const lasting = (ms: number) => `() => new Promise((done) => setTimeout(done, ${ms}))`
    writeFileSync(
      join(folder, 'limits.test.js'),
      [
        `beforeEach(${lasting(600)}, 400)`,
        `it('its own', ${lasting(600)}, 400)`,
        `it('its own once more', ${lasting(600)}, 400)`,
        `it("the file's", ${lasting(600)})`,
        `jest.setTimeout(400)`,
      ].join('\n'),
    )
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  async function outcomes(patience: string): Promise<string[]> {
    const testEnvironment = join(ROOT, 'test/support/patient-environment.ts')
    const [[files, [, settings]]] = Object.entries(projects[0]!.transform) as [[string, [string, object]]]
    const transform = { [files]: [require.resolve('@swc/jest'), settings] }
    const config = JSON.stringify({ rootDir: folder, testEnvironment, transform })
    const args = [join(ROOT, 'node_modules/jest/bin/jest.js'), '--json', '-i', '--config', config]
    const at = { cwd: ROOT, env: { ...process.env, [PATIENCE_SETTING]: patience } }
    const { stdout } = await run(process.execPath, args, at).catch((failed: { stdout: string }) => failed)
    const { testResults } = JSON.parse(stdout) as {
      testResults: { assertionResults: { status: string }[] }[]
    }
    return testResults[0]!.assertionResults.map(({ status }) => status)
  }

  it('grow by it, and are kept without it', async () => {
    expect(await outcomes('10')).toEqual(['passed', 'passed', 'passed'])
    expect(await outcomes('1')).toEqual(['failed', 'failed', 'failed'])
  })
})
