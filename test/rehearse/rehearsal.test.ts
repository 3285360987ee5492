import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { parseJobFile } from '../../client/job/file'
import { SECOND_MS } from '../../core/time/time'
import { judge, type Report } from '../../rehearse/judge'
import { INTERRUPTIONS_DEFAULT } from '../../rehearse/moments'
import { rehearse } from '../../rehearse/rehearsal'
import type { RehearsalFacts } from '../../rehearse/seen'
import { Stage } from '../../rehearse/stage'
import { packRunner } from '../support/runner-program'
import { patient } from '../support/patience'
import { itInAll } from '../support/selection'

const folder = mkdtempSync(join(tmpdir(), 'crucible-rehearsal-test-'))
const runner = join(folder, 'runner.pyz')
beforeAll(() => packRunner(runner))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function rehearsed(program: string, interruptions?: number, env?: string): Promise<Report> {
  return judge(await factsOf(program, interruptions, env))
}

/** Rehearses a program of `programs/` for real. */
async function factsOf(
  program: string,
  interruptions = INTERRUPTIONS_DEFAULT,
  env = '',
): Promise<RehearsalFacts> {
  const code = mkdtempSync(join(folder, 'code-'))
  for (const name of ['training.py', `${program}.py`])
    writeFileSync(join(code, name), readFileSync(join(__dirname, 'programs', name)))
  const read = parseJobFile(`run: ${env} python3 -B ${program}.py\n`, {
    fileName: 'job.yaml',
    nowMs: Date.now(),
  })
  if (!('job' in read)) throw new Error('the job file is wrong')
  const { spec } = read.job
  const place = mkdtempSync(join(folder, 'stage-'))
  const environment = { ...process.env, CRUCIBLE_HOME: place, CRUCIBLE_CHECKPOINT_QUIET: '0.3s' }
  const options = {
    folder: join(place, 'rehearsal'),
    environment,
    spec,
    directory: code,
    secrets: {},
    now: Date.now,
    runner,
  }
  const stage = await Stage.open(options)
  try {
    return await rehearse({
      host: stage,
      directory: null,
      forMs: 40 * SECOND_MS,
      interruptions,
      now: Date.now,
      say: () => {},
      signal: AbortSignal.timeout(patient(55 * SECOND_MS)),
    })
  } finally {
    await stage.close()
  }
}

itInAll('finds that a program survives which renames whole checkpoints into place', async () => {
  const report = await rehearsed('good')
  expect({ survives: report.survives, checks: report.checks }).toMatchObject({ survives: true })
  expect(report.resumes.filter(({ kind }) => kind === 'right').length).toBeGreaterThan(1)
})

itInAll('finds that a program does not survive which loads a part of its state', async () => {
  const { survives, checks } = await rehearsed('loads_half', 3)
  expect(checks.find(({ name }) => name === 'Loss continues')).toMatchObject({ outcome: 'bad' })
  expect(survives).toBe(false)
})

it('finds that a program does not survive which fails on its checkpoint', async () => {
  const { survives, checks, changes } = await rehearsed('refuses', 3)
  expect(checks.find(({ name }) => name === 'Resumes')).toMatchObject({
    outcome: 'bad',
    text: expect.stringMatching(/program fails/),
  })
  expect(survives).toBe(false)
  expect(changes[0]!.text).toMatch(/CRUCIBLE_RESUME_FROM/)
})

itInAll(
  'finds that a program does not survive which needs the temporary files of an earlier machine',
  async () => {
    const { survives, summary } = await rehearsed('keeps_in_tmp', 2)
    expect(survives).toBe(false)
    expect(summary).toMatch(/the program fails after an interruption: .*No such file or directory: .*part/)
  },
)

itInAll('finds that a program survives which saves each checkpoint in a folder', async () => {
  expect(await rehearsed('hf_like', 2)).toMatchObject({ survives: true })
})

itInAll(
  'finds that a program survives which keeps its best checkpoint under the path that it has stored',
  async () => {
    const { survives, checks } = await rehearsed('keeps_best', 2)
    expect({ survives, kept: checks.find(({ name }) => name === 'Files kept') }).toMatchObject({
      survives: true,
      kept: { outcome: 'good' },
    })
  },
)

itInAll(
  'finds that a program does not survive which ends without the best checkpoint that its state names',
  async () => {
    const { survives, checks } = await rehearsed('keeps_best', 2, 'LOSES_BEST=yes')
    const wrong = checks.filter(({ outcome }) => outcome === 'bad')
    expect({ survives, wrong: wrong.map(({ name }) => name) }).toEqual({
      survives: false,
      wrong: ['Files kept', 'Stored paths'],
    })
  },
)

describe('a program that takes long to load', () => {
  itInAll('is not interrupted before its first step', async () => {
    const seen = await factsOf('loads_long', 2)
    expect(judge(seen)).toMatchObject({ survives: true })
    expect(seen.interrupted.attempts.map(({ steps }) => steps.length > 0)).toEqual([true, true, true])
  })

  itInAll('survives although it shows no step, and is interrupted once it has saved', async () => {
    const seen = await factsOf('loads_long', 2, 'SILENT=yes')
    const { survives, resumes, summary } = judge(seen)
    expect({ survives, summary }).toMatchObject({ survives: true })
    expect(resumes.at(-1)).toMatchObject({
      isAtMoment: true,
      restoredState: expect.any(String),
      hasGoneOn: true,
    })
    const [first, second] = seen.interrupted.attempts
    expect(second!.saved.length).toBeGreaterThan(0)
    expect(first!.strike!.atMs - first!.beganAtMs).toBeGreaterThan(4 * SECOND_MS)
  })
})
