import { describe, expect, it } from '@jest/globals'
import { checkpointId } from '../../core/job/checkpoint'
import { judge, type Report } from '../../rehearse/judge'
import {
  stepOf,
  type RehearsedAttempt,
  type RehearsedCheckpoint,
  type RehearsedFile,
  type RehearsedLife,
  type RehearsedRestore,
  type RehearsalFacts,
  type RehearsedStep,
  type StrikeDone,
} from '../../rehearse/seen'

const STEP_MS = 100

/** The attempt's steps from one to another, as an attempt that began at `atMs` makes them. */
function steps(from: number, to: number, { atMs = 0, lossOf = smooth } = {}): RehearsedStep[] {
  return Array.from({ length: to - from + 1 }, (_, index) => {
    const step = from + index
    return { step, loss: lossOf(step), atMs: atMs + index * STEP_MS }
  })
}

function smooth(step: number): number {
  return 10 / (1 + step / 10)
}

function file(step: number, changes: Partial<RehearsedFile> = {}): RehearsedFile {
  return { path: `model-${step}.bin`, sizeBytes: 1_000, digest: `model of ${step}`, ...changes }
}

function checkpoint(
  step: number,
  attempt: number,
  changes: Partial<RehearsedCheckpoint> = {},
): RehearsedCheckpoint {
  return {
    id: checkpointId(step, attempt),
    step,
    attempt,
    isStepKnown: true,
    revision: 1,
    state: 'complete',
    evidence: { kind: 'next', text: 'the next checkpoint started' },
    savedAtMs: step * STEP_MS,
    saveMs: 50,
    totalBytes: 1_000,
    files: [file(step)],
    ...changes,
  }
}

function attempt(number: number, changes: Partial<RehearsedAttempt> = {}): RehearsedAttempt {
  return {
    number,
    beganAtMs: 0,
    endedAtMs: 60_000,
    steps: [],
    restores: [],
    saved: [],
    strike: null,
    end: null,
    warning: null,
    ...changes,
  }
}

function restored(from: RehearsedCheckpoint, changes: Partial<RehearsedRestore> = {}): RehearsedRestore {
  return { checkpoint: from, atMs: 0, outcome: 'went-on', message: null, ...changes }
}

const KILL: StrikeDone = { moment: 'during-save', manner: 'kill', isAtMoment: true, atMs: 2_500, noticeMs: 0 }
const UNDISTURBED: RehearsedLife = {
  attempts: [
    attempt(1, { steps: steps(1, 60), saved: [10, 20, 30, 40, 50].map((step) => checkpoint(step, 1)) }),
  ],
  outputs: {},
}

/** The undisturbed run, with these checkpoints. */
function saving(saved: RehearsedCheckpoint[]): RehearsedLife {
  return { ...UNDISTURBED, attempts: [{ ...UNDISTURBED.attempts[0]!, saved }] }
}

/** A checkpoint in a folder of its own. */
function saved(step: number): RehearsedCheckpoint {
  return checkpoint(step, 1, { files: [file(step, { path: `checkpoint-${step}/model.bin` })] })
}
/** Killed at step 25, resumed from step 20. */
const FIRST = attempt(1, {
  steps: steps(1, 25),
  saved: [10, 20].map((step) => checkpoint(step, 1)),
  strike: KILL,
})
const SECOND = attempt(2, {
  restores: [restored(checkpoint(20, 1))],
  steps: steps(21, 45),
  saved: [30, 40].map((step) => checkpoint(step, 2)),
})

function judged(attempts: RehearsedAttempt[], changes: Partial<RehearsalFacts> = {}): Report {
  const interrupted = { attempts, outputs: {} }
  return judge({
    directory: null,
    undisturbed: UNDISTURBED,
    interrupted,
    outside: [],
    tookMs: 60_000,
    ...changes,
  })
}

function outcomes({ checks }: Report): Record<string, string> {
  return Object.fromEntries(checks.map(({ name, outcome }) => [name, outcome]))
}

describe('the judgement of a rehearsal', () => {
  it('is that a job survives if it continues where its checkpoint ends, with the same files', () => {
    const report = judged([FIRST, SECOND])
    expect(report).toMatchObject({ survives: true, changes: [] })
    expect(new Set(Object.values(outcomes(report)))).toEqual(new Set(['good']))
    expect(report.resumes).toMatchObject([{ kind: 'right', restoredStep: 20, firstStep: 21, lostSteps: 5 }])
  })

  it('does not count the load time of a program without output as work lost', () => {
    const silent = (number: number, restoresFrom: number[], savesAt: number[]): RehearsedAttempt =>
      attempt(number, {
        restores: restoresFrom.map((step) => restored(checkpoint(step, 1))),
        saved: savesAt.map((step) => checkpoint(step, number)),
        strike: { ...KILL, atMs: 40_000 },
      })
    const lostOf = (...attempts: RehearsedAttempt[]): string | undefined =>
      judged([...attempts, attempt(9, { saved: [checkpoint(390, 9)] })]).checks.find(
        ({ name }) => name === 'Work lost',
      )?.text
    expect(lostOf(silent(1, [], []))).toBe('unknown: the program reports no steps')
    expect(lostOf(silent(1, [], [380]), silent(2, [380], []))).toBe(
      '2s at worst; unknown where neither a step nor a save was seen',
    )
  })

  it('warns of more runs at a tracker than an undisturbed training has', () => {
    const run = (runId: string) => ({ kind: 'mlflow', runId })
    const textOf = (trackers: { kind: string; runId: string }[], before = [run('x')]) => {
      const [alone] = UNDISTURBED.attempts
      const undisturbed = { ...UNDISTURBED, attempts: [{ ...alone!, trackers: before }] }
      const { checks } = judged([FIRST, { ...SECOND, trackers }], { undisturbed })
      const { outcome, text } = checks.find(({ name }) => name === 'Tracker runs') ?? {}
      return [outcome, text]
    }
    expect(textOf([run('a')])).toEqual(['good', '1 MLflow run'])
    expect(textOf([run('a'), run('b')])).toEqual(['warning', '2 MLflow runs instead of 1'])
    expect(textOf([run('a'), run('b')], [run('x'), run('y')])).toEqual(['good', '2 MLflow runs'])
    expect(textOf([run('a'), { kind: 'wandb', runId: 'c' }])).toEqual(['good', '1 MLflow run, 1 W&B run'])
    expect(textOf([])).toEqual([undefined, undefined])
  })

  it('fails a program that ends without a file that it keeps without interruptions, or with a path that leads nowhere', () => {
    const end: RehearsedAttempt['end'] = {
      outcome: 'succeeded',
      reason: 'completed',
      message: '',
      exitCode: 0,
    }
    const named = (file: string, inner: string, exists: boolean) => ({
      file,
      path: `/jobs/train/${inner}`,
      inner,
      exists,
    })
    const best = named('checkpoint-50/state.json', 'checkpoints/checkpoint-10', true)
    const temporary = named('checkpoint-50/state.json', 'work/tmp-1', false)
    const paths = ['checkpoint-10/model.bin', 'checkpoint-50/model.bin']
    const [alone] = saving([10, 20, 50].map(saved)).attempts
    const undisturbed = {
      attempts: [{ ...alone!, end }],
      outputs: {},
      kept: { paths, named: [best, temporary] },
    }
    const checksOf = (kept: RehearsedLife['kept']) => {
      const first = { ...FIRST, saved: [10, 20].map(saved) }
      const second = { ...SECOND, restores: [restored(saved(20))], saved: [saved(50)], end }
      const interrupted = { attempts: [first, second], outputs: {}, kept }
      const report = judged([], { undisturbed, interrupted })
      const checks = report.checks.filter(({ name }) => ['Files kept', 'Stored paths'].includes(name))
      return [report.survives, ...checks.map(({ outcome, text }) => `${outcome}: ${text}`)]
    }
    const moved = named('checkpoint-50/state.json', 'work/tmp-7', false)
    expect(checksOf({ paths, named: [best, moved] })).toEqual([true, 'good: 2 files at the end'])
    expect(checksOf({ paths: paths.slice(1), named: [{ ...best, exists: false }] })).toEqual([
      false,
      'bad: after interruptions it ends without checkpoint-10/model.bin, which the undisturbed run keeps',
      'bad: after an interruption checkpoint-50/state.json names /jobs/train/checkpoints/checkpoint-10, which does not exist',
    ])
    expect(checksOf({ paths: [...paths, 'checkpoint-20/model.bin'], named: [best] })).toEqual([
      true,
      'warning: checkpoint-20/model.bin is there, although the program had deleted it',
    ])
    expect(checksOf(undefined)).toEqual([true])
  })

  it('fails a program that begins at the beginning in spite of its checkpoint', () => {
    const report = judged([FIRST, { ...SECOND, steps: steps(1, 30) }])
    expect(report.survives).toBe(false)
    expect(report.summary).toMatch(/got the checkpoint of step 20 but began at step 1/)
    expect(report.changes[0]!.text).toMatch(/CRUCIBLE_RESUME_FROM/)
  })

  it('fails a program that resumes one save earlier, also where every other save of the interrupted run was missed', () => {
    const saved = [20, 40].map((step) => checkpoint(step, 1, { isStepKnown: false }))
    const first = { ...FIRST, steps: steps(1, 45), saved }
    const second = { ...SECOND, restores: [restored(saved[1]!)], steps: steps(31, 60), saved: [] }
    expect(judged([first, second]).summary).toMatch(/got the checkpoint of step 41 but began at step 31/)
  })

  it('fails a program that was given no checkpoint although it had saved a complete one', () => {
    const report = judged([FIRST, { ...SECOND, restores: [], steps: steps(1, 30) }])
    expect(report.summary).toMatch(/started over although it had saved/)
  })

  it('fails a loss that is not what it was', () => {
    const forgetful = { ...SECOND, steps: steps(21, 45, { lossOf: (step) => smooth(step - 20) }) }
    const report = judged([FIRST, forgetful])
    expect(report.survives).toBe(false)
    expect(outcomes(report)['Loss continues']).toBe('bad')
  })

  it('lets a save in the background hold an earlier step than was printed when its file was written', () => {
    const named = { files: [file(0, { path: 'model.pt' })] }
    const life = [checkpoint(14, 1, named), checkpoint(24, 1, named)]
    const seen = { undisturbed: saving(life) }
    const second = attempt(2, { restores: [restored(life[1]!)], steps: steps(21, 45) })
    expect(judged([{ ...FIRST, saved: life }, second], seen).resumes).toMatchObject([{ kind: 'right' }])
    const again = { ...second, steps: steps(1, 30) }
    expect(judged([{ ...FIRST, saved: life }, again], seen).resumes).toMatchObject([{ kind: 'ignored' }])
    const first = attempt(2, { restores: [restored(life[0]!)], steps: steps(1, 30) })
    const short = { ...FIRST, saved: life.slice(0, 1) }
    expect(judged([short, first], seen).resumes).toMatchObject([{ kind: 'ignored' }])
  })

  it('fails a program that continues from the checkpoint before the complete one', () => {
    const named = { files: [file(0, { path: 'model.pt' })] }
    const life = [10, 20, 30].map((step) => checkpoint(step, 1, named))
    const first = { ...FIRST, steps: steps(1, 35), saved: life }
    const behind = attempt(2, { restores: [restored(life[2]!)], steps: steps(21, 45) })
    const { resumes } = judged([first, behind], { undisturbed: saving(life) })
    expect(resumes).toMatchObject([{ kind: 'ignored', restoredStep: 30 }])
  })

  it('lets a program take the checkpoint before one that may be damaged', () => {
    const life = [10, 20, 30].map((step) => checkpoint(step, 1))
    const quiet = checkpoint(30, 1, { state: 'quiet' })
    const first = { ...FIRST, steps: steps(1, 35), saved: life }
    const from = (step: number): RehearsedAttempt =>
      attempt(2, { restores: [restored(quiet)], steps: steps(step, step + 24) })
    const behind = judged([first, from(21)])
    expect(behind.resumes).toMatchObject([{ kind: 'behind' }])
    expect(behind.summary).toBe(
      'Not proven that this job survives: it always began at the checkpoint before the newest.',
    )
    expect(behind.changes.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/did not load its checkpoint/),
    )
    const second = { ...from(21), strike: KILL }
    const third = attempt(3, { restores: [restored(quiet)], steps: steps(31, 45) })
    expect(judged([first, second, third])).toMatchObject({
      survives: true,
      resumes: [{ kind: 'behind' }, { kind: 'right' }],
    })
    expect(judged([first, from(11)]).resumes).toMatchObject([{ kind: 'ignored' }])
  })

  it('holds a program to the step of a checkpoint that proves itself', () => {
    const exact = checkpoint(20, 1, { evidence: { kind: 'format', text: 'it can be read to its end' } })
    const second = attempt(2, { restores: [restored(exact)], steps: steps(11, 45) })
    expect(judged([FIRST, second]).resumes).toMatchObject([{ kind: 'ignored' }])
  })

  it('takes no machine that was lost before its program began for a restart from the beginning', () => {
    const early = attempt(2, { strike: { ...KILL, isAtMoment: false } })
    const report = judged([FIRST, early, { ...SECOND, number: 3 }])
    expect(report.resumes.map(({ kind }) => kind)).toEqual(['unknown', 'right'])
    expect(report.survives).toBe(true)
  })

  it('lets a loss be as noisy after a resume as it is without one', () => {
    const noisy = (step: number): number => smooth(step) + (step % 2 === 0 ? 0.5 : -0.5)
    const undisturbed = {
      ...UNDISTURBED,
      attempts: [{ ...UNDISTURBED.attempts[0]!, steps: steps(1, 60, { lossOf: noisy }) }],
    }
    const other = steps(21, 45, { lossOf: (step) => smooth(step) - (step % 2 === 0 ? 0.5 : -0.5) })
    expect(outcomes(judged([FIRST, { ...SECOND, steps: other }], { undisturbed }))['Loss continues']).toBe(
      'good',
    )
  })

  it('warns of files that differ after a resume, where two undisturbed stretches have the same', () => {
    const other = [30, 40].map((step) => checkpoint(step, 2, { files: [file(step, { digest: 'other' })] }))
    const report = judged([FIRST, { ...SECOND, saved: other }])
    expect(report).toMatchObject({
      survives: true,
      changes: [{ text: expect.stringMatching(/random number generators/) }],
    })
    expect(outcomes(report)['Same results']).toBe('warning')
  })

  it('takes one different file without a step in its name for a save that the undisturbed run made unseen', () => {
    const unnamed = (step: number, number: number, digest = `model of ${step}`): RehearsedCheckpoint =>
      checkpoint(step, number, { isStepKnown: false, files: [file(step, { path: 'model.bin', digest })] })
    const undisturbed = {
      ...UNDISTURBED,
      attempts: [
        { ...UNDISTURBED.attempts[0]!, saved: [10, 20, 30, 40, 50].map((step) => unnamed(step, 1)) },
      ],
    }
    const first = { ...FIRST, saved: [10, 20].map((step) => unnamed(step, 1)) }
    const outcomeOf = (others: number[]): string | undefined => {
      const saved = others.map((step) => unnamed(step, 2, `model of ${step + 1}`))
      return outcomes(judged([first, { ...SECOND, saved }], { undisturbed }))['Same results']
    }
    expect(outcomeOf([30])).not.toBe('warning')
    expect(outcomeOf([30, 40])).toBe('warning')
  })

  it('does not compare files that differ without any interruption, such as ones with a time in them', () => {
    const timed = (step: number, number: number): RehearsedCheckpoint =>
      checkpoint(step, number, { files: [file(step, { digest: `at ${number}.${step}` })] })
    const lossOf = (step: number): number => smooth(step) * 1.001
    const report = judged([
      { ...FIRST, saved: [timed(10, 7), timed(20, 7)], steps: steps(1, 25, { lossOf }) },
      { ...SECOND, saved: [timed(30, 8)] },
    ])
    expect(report.survives).toBe(true)
    expect(report.checks.find(({ name }) => name === 'Same results')).toMatchObject({
      outcome: 'unknown',
      text: expect.stringMatching(/not deterministic/),
    })
  })

  it('fails a program that silently continues from a part of a checkpoint', () => {
    const half = checkpoint(20, 1, { state: 'quiet', files: [file(20, { sizeBytes: 500 })] })
    const report = judged([FIRST, { ...SECOND, restores: [restored(half)] }])
    expect(report.summary).toMatch(/torn checkpoint: model-\*\.bin had 500 of 1000 bytes/)
    expect(report.changes.map(({ text }) => text).join()).toMatch(/os\.replace/)
  })

  it('takes a database that was smaller at the time for whole', () => {
    const withDatabase = (step: number, sizeBytes: number): RehearsedCheckpoint =>
      checkpoint(step, 1, { files: [file(step), file(0, { path: 'mlflow.db', sizeBytes })] })
    const undisturbed = saving([20, 30, 40].map((step) => withDatabase(step, 8_192)))
    const early = withDatabase(20, 4_096)
    const next = { ...SECOND, restores: [restored(early)], steps: steps(21, 45) }
    expect(judged([{ ...FIRST, saved: [early] }, next], { undisturbed }).survives).toBe(true)
  })

  it.each([
    [10, true],
    [20, false],
    [30, false],
  ])('lets files that take turns come one by one: the first alone at step %i, %s', (step, survives) => {
    const both = [20, 30, 40].map((each) =>
      checkpoint(each, 1, { files: [file(0, { path: 'a.pt' }), file(0, { path: 'b.pt' })] }),
    )
    const undisturbed = saving(both)
    const alone = checkpoint(step, 1, { files: [file(0, { path: 'a.pt' })] })
    const next = { ...SECOND, restores: [restored(alone)], steps: steps(step + 1, 45) }
    const report = judged([{ ...FIRST, saved: [alone] }, next], { undisturbed })
    expect(report.survives).toBe(survives)
    if (!survives) expect(report.summary).toMatch(/torn checkpoint: b\.pt was missing/)
  })

  it.each([
    ['continues from the previous one', [10], 11, 'right', true],
    // No resume has been seen then: it is not proven.
    ['begins from the beginning, there being none before', [], 1, 'fresh', false],
    ['begins from the beginning although there is one before', [10], 1, 'ignored', false],
    ['continues from it', [10], 21, 'right', false],
  ])('of a program that finds a torn checkpoint and %s', (_, before, firstStep, kind, survives) => {
    const whole = (step: number): RehearsedCheckpoint =>
      checkpoint(step, 1, { files: [file(step), file(step, { path: `done-${step}` })] })
    const undisturbed = saving([10, 20, 30, 40].map(whole))
    const torn = checkpoint(20, 1)
    const first = { ...FIRST, saved: [...before.map(whole), torn] }
    const next = { ...SECOND, restores: [restored(torn)], steps: steps(firstStep, 45) }
    for (const state of ['complete', 'quiet'] as const) {
      const given = { ...next, restores: [restored({ ...torn, state })] }
      const report = judged([first, given], { undisturbed })
      expect(report.resumes[0]).toMatchObject({ kind })
      expect(report.survives).toBe(survives)
    }
  })

  it.each([
    [900, true],
    [2_100, false],
  ])('goes by the time without a reported step: one file alone after %i ms, %s', (savedAtMs, survives) => {
    const untold = { step: 1, isStepKnown: false }
    const both = [2_000, 3_000].map((atMs) => {
      const files = [file(0, { path: 'mlflow.db' }), file(0, { path: 'model.pkl' })]
      return checkpoint(1, 1, { ...untold, savedAtMs: atMs, files })
    })
    const undisturbed = { attempts: [attempt(1, { saved: both })], outputs: {} }
    const alone = checkpoint(1, 1, { ...untold, savedAtMs, files: [file(0, { path: 'mlflow.db' })] })
    const first = attempt(1, { saved: [alone], strike: KILL })
    const second = attempt(2, { restores: [restored(alone)] })
    expect(judged([first, second], { undisturbed }).survives).toBe(survives)
  })

  it('takes no text for torn that has a few digits less', () => {
    const text = (step: number, sizeBytes: number): RehearsedCheckpoint =>
      checkpoint(step, 1, { files: [file(step, { sizeBytes })] })
    const short = text(20, 22)
    const undisturbed = saving([text(20, 24), text(30, 24)])
    const next = { ...SECOND, restores: [restored(short)] }
    expect(judged([{ ...FIRST, saved: [short] }, next], { undisturbed }).resumes).toMatchObject([
      { torn: null },
    ])
  })

  it('warns of a checkpoint on which the program failed before it was given an older one', () => {
    const older = [
      restored(checkpoint(20, 1), { outcome: 'failed', message: 'cut off' }),
      restored(checkpoint(10, 1)),
    ]
    const report = judged([FIRST, { ...SECOND, restores: older, steps: steps(11, 45) }])
    expect(report.survives).toBe(true)
    expect(outcomes(report)['Resumes']).toBe('warning')
  })

  it('names the directory in which a program saves that is looked for elsewhere', () => {
    const bare = { attempts: [attempt(1, { steps: steps(1, 60) })], outputs: {} }
    const again = [attempt(1, { steps: steps(1, 25), strike: KILL }), attempt(2, { steps: steps(1, 30) })]
    const outside = [{ path: 'runs/exp1/last.pt', sizeBytes: 5, line: 'train.py:8' }]
    const report = judged(again, { undisturbed: bare, outside, directory: 'checkpoints' })
    expect(report.survives).toBe(false)
    expect(report.changes[0]).toEqual({
      text: 'Your program saved to ./runs/exp1/last.pt (train.py:8), outside checkpoints/.',
      yaml: 'checkpoint:\n  directory: runs/exp1',
      line: 'train.py:8',
    })
    expect(judged(again, { undisturbed: bare }).changes[0]!.text).toMatch(/Nothing was saved/)
  })

  it('says which key makes a half-written directory no checkpoint', () => {
    const whole = [checkpoint(20, 1, { files: [file(20), file(20, { path: 'trainer_state.json' })] })]
    const undisturbed = saving(whole)
    const end = {
      outcome: 'failed',
      reason: 'workload',
      message: 'no trainer_state.json.',
      exitCode: 1,
    } as const
    const failed = attempt(2, { restores: [restored(checkpoint(20, 1), { outcome: 'failed' })], end })
    const report = judged([FIRST, failed], { undisturbed })
    expect(report.summary).toMatch(/the program fails after an interruption: no trainer_state\.json\.$/)
    expect(report.changes[0]!.yaml).toBe('checkpoint:\n  complete: trainer_state.json')
  })

  it('fails a program that fails on its checkpoint and is interrupted before it ends', () => {
    const failed = restored(checkpoint(20, 1), { outcome: 'failed', message: 'the folder is not empty.' })
    const struck = attempt(2, { restores: [failed], strike: KILL })
    const report = judged([FIRST, struck, attempt(3)])
    expect(report.survives).toBe(false)
    expect(report.summary).toMatch(/fails on its checkpoint: the folder is not empty\.$/)
    expect(report.changes[0]!.text).toMatch(/CRUCIBLE_RESUME_FROM/)
  })

  it('is that nothing is proven where no resume from a checkpoint was seen', () => {
    expect(judged([{ ...FIRST, strike: null }]).summary).toMatch(/^Not proven that this job survives: /)
    expect(judged([{ ...FIRST, saved: [] }, attempt(2, { steps: steps(1, 5) })]).survives).toBe(false)
  })

  it('is about the program alone where it fails without an interruption', () => {
    const end = {
      outcome: 'failed',
      reason: 'workload',
      message: 'No module named torch.',
      exitCode: 1,
    } as const
    const report = judged([], { undisturbed: { attempts: [attempt(1, { end })], outputs: {} } })
    expect(report.summary).toMatch(/fails without any interruption: No module named torch/)
    expect(report.checks).toHaveLength(1)
  })

  it('advises a handler where much was lost after a notice', () => {
    const told = { ...KILL, manner: 'notice', moment: 'between-saves', noticeMs: 10_000 } as const
    const late = attempt(1, { ...FIRST, steps: steps(1, 59), strike: told })
    expect(
      judged([late, SECOND])
        .changes.map(({ text }) => text)
        .join(),
    ).toMatch(/checkpoint\.signal: SIGUSR1/)
  })
})

describe('the step of a checkpoint without a step in its name', () => {
  const life: RehearsedLife = { attempts: [attempt(1), attempt(2, { steps: steps(1, 9) })], outputs: {} }

  it.each([
    [-1, null],
    [0, 1],
    [2 * STEP_MS - 1, 2],
    [2 * STEP_MS, 3],
    [99 * STEP_MS, 9],
  ])('that was saved after %d ms is that of the last step of its attempt before: %s', (savedAtMs, step) => {
    expect(stepOf(checkpoint(7, 2, { isStepKnown: false, savedAtMs }), life)).toBe(step)
    expect(stepOf(checkpoint(7, 1, { isStepKnown: false, savedAtMs }), life)).toBeNull()
    expect(stepOf(checkpoint(7, 2, { savedAtMs }), life)).toBe(7)
  })
})
