/** The shell block of the page on checkpoints, as it is printed, and what the page says that it prints. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { beforeAll, describe, expect, it, jest } from '@jest/globals'
import { build } from '../cli/process'
import { testFolder } from '../support/folders'
import { blocksOf } from './markdown'

jest.setTimeout(120_000)

const ROOT = join(__dirname, '..', '..')
const PAGE = readFileSync(join(ROOT, 'docs/guides/checkpoints.md'), 'utf8')

beforeAll(() => build(), 600_000)

describe('the page on checkpoints', () => {
  it('makes a script resume with its command, and finds nothing to change in the result', () => {
    const folder = testFolder('checkpoints-page')
    const code = join(folder, 'code')
    for (const each of ['bin', 'code']) mkdirSync(join(folder, each))
    symlinkSync(join(ROOT, 'crucible'), join(folder, 'bin', 'crucible'))
    copyFileSync(join(ROOT, 'test/analyze/suggest/torch-epochs/train.py'), join(code, 'train.py'))
    const env = {
      PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`,
      HOME: folder,
      USER: 'tester',
      CRUCIBLE_HOME: join(folder, 'home'),
      GIT_CEILING_DIRECTORIES: dirname(folder),
    }
    const shell = (script: string): { status: number | null; stdout: string; stderr: string } =>
      spawnSync('bash', ['-e', '-o', 'pipefail', '-c', script], { cwd: code, encoding: 'utf8', env })

    const [command, stderr] = ['sh', 'text'].map((language) => blocksOf(PAGE, language)[0]!.text)
    expect(shell(command!)).toMatchObject({ status: 0, stdout: '', stderr })
    expect(readFileSync(join(code, 'train.py'), 'utf8')).toContain('CRUCIBLE_RESUME_FROM')

    const again = shell('crucible analyze train.py --suggest-resume')
    expect(again).toMatchObject({ status: 0, stdout: '' })
    expect(again.stderr).toMatch(/^train\.py resumes already, .* No change is needed\.\n$/)
  })
})
