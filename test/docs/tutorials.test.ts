/** The scripts of the tutorials, as printed, under `crucible rehearse`: each survives interruptions and resumes at the right step. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { beforeAll, describe, expect, it, jest } from '@jest/globals'
import { build } from '../cli/process'
import { testFolder } from '../support/folders'
import { parseJobFile } from '../../intake/job-file'
import { blocksOf } from './markdown'

jest.setTimeout(900_000)

const ROOT = join(__dirname, '..', '..')
const PYTHON = process.env['CRUCIBLE_TUTORIALS_PYTHON'] ?? 'python3'

/** Each tutorial, and what its script imports; one of the modules of each group must be there. */
const TUTORIALS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  pytorch: [['torch']],
  'hugging-face': [['torch'], ['transformers'], ['accelerate']],
  lightning: [['torch'], ['lightning', 'pytorch_lightning']],
}

interface Rehearsal {
  survives: boolean
  summary: string
  checks: { name: string; outcome: string }[]
}

const pageOf = (tutorial: string): string => readFileSync(join(ROOT, 'docs/guides', `${tutorial}.md`), 'utf8')
const scriptOf = (tutorial: string): string =>
  blocksOf(pageOf(tutorial), 'python').find(({ text }) => text.startsWith('# train.py\n'))!.text

/** Why the script cannot run with this Python, if it cannot. */
function obstacle(groups: readonly (readonly string[])[]): string | undefined {
  for (const modules of groups) {
    const reasons = modules.map((module) => {
      const { status, stderr, error } = spawnSync(PYTHON, ['-c', `import ${module}`], { encoding: 'utf8' })
      return status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n').at(-1)!)
    })
    if (reasons.every((reason) => reason !== undefined)) return reasons[0]
  }
  return undefined
}

beforeAll(() => build(), 600_000)

describe.each(Object.entries(TUTORIALS))('the tutorial %s', (tutorial, modules) => {
  const reason = obstacle(modules)
  const itIfInstalled = reason === undefined ? it : it.skip

  it('has a job file that can be submitted', () => {
    const [yaml] = blocksOf(pageOf(tutorial), 'yaml').filter(({ text }) => text.startsWith('# job.yaml\n'))
    expect(parseJobFile(yaml!.text, { fileName: 'job.yaml', nowMs: Date.now() })).toEqual({
      job: expect.any(Object),
    })
  })

  itIfInstalled(`survives interruptions${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
    const folder = testFolder(`tutorial-${tutorial}`)
    mkdirSync(join(folder, 'job'))
    writeFileSync(join(folder, 'job', 'train.py'), scriptOf(tutorial))
    const bin = existsSync(PYTHON) ? `${dirname(PYTHON)}${delimiter}` : ''
    const main = join(ROOT, 'dist/cli/main.js')
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [main, 'rehearse', 'train.py', '--interruptible', '--interruptions', '2', '--for', '12m', '--json'],
      {
        cwd: join(folder, 'job'),
        encoding: 'utf8',
        env: {
          PATH: `${bin}${process.env['PATH']}`,
          HOME: folder,
          USER: 'tester',
          CRUCIBLE_HOME: join(folder, 'home'),
          HF_HUB_OFFLINE: '1',
        },
      },
    )
    expect(stderr).not.toContain('error:')
    const { survives, summary, checks } = JSON.parse(stdout) as Rehearsal
    expect({ survives, summary }).toEqual({ survives: true, summary })
    expect(checks.filter(({ outcome }) => outcome === 'bad')).toEqual([])
  })
})
