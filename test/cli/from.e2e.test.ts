import { readFileSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { JobView } from '../../client/job/job-view'
import { hasSaved, isOver, Stage } from './stage'

let stage: Stage
beforeAll(async () => {
  stage = await Stage.set()
}, 120_000)
afterAll(() => stage.close())

describe('a job that was cancelled', () => {
  let [id, gate] = ['', '']

  it('shows the command that continues from where it stopped', async () => {
    gate = stage.gate()
    id = await stage.submit('--env', `GATE=${gate}`)
    await stage.untilShown(id, hasSaved(1))
    const early = await stage.crucible.run('submit', '--from', id)
    expect(early).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('is still open') })
    await stage.crucible.run('cancel', id)
    const { continuation } = await stage.untilShown(id, isOver)
    expect(continuation).toEqual({ command: `crucible submit --from ${id}`, step: 10 })
    for (const command of ['show', 'events'])
      expect((await stage.crucible.run(command, id)).stdout).toContain(
        `Resume from step 10: crucible submit --from ${id}\n`,
      )
  }, 120_000)

  it('continues from there as a new job, to the end', async () => {
    writeFileSync(join(gate, '1'), '')
    const { exitCode, stdout, stderr } = await stage.crucible.run('submit', '--from', id, '--follow')
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(`step 10 of ${id}`),
    })
    const steps = stdout.split('\n').filter((line) => line.startsWith('step'))
    expect([steps[0], steps.at(-1)]).toEqual(['step 11/60', 'step 60/60'])
    const next = /Submitted (\S+)/.exec(stderr)![1]!
    const view: JobView = await stage.show(next)
    expect(view.attempts[0]!.restoredFrom).toEqual({ id: '000000000010-0', step: 10, attempt: 0 })
    expect(view.continuation).toBeNull()
  }, 120_000)

  it('starts over where that is asked for, and a dry run says which of the two', async () => {
    const dry = await stage.crucible.json<{ source: object | null }>('submit', '--from', id, '--dry-run')
    expect(dry.source).toMatchObject({ jobId: id, checkpoint: { step: 10 } })
    const { exitCode, stdout } = await stage.crucible.run('submit', '--from', id, '--fresh', '--follow')
    expect(exitCode).toBe(0)
    expect(stdout.split('\n').find((line) => line.startsWith('step'))).toBe('step 1/60')
  }, 120_000)

  it('has its checkpoint downloaded as the program wrote it', async () => {
    const got = await stage.crucible.json('checkpoints', id, '--download', '10', '--to', 'model')
    expect(got).toMatchObject({ checkpoint: { step: 10 }, resumePath: 'step-0010.json', damaged: [] })
    expect(readFileSync(join(stage.folder, 'model', 'step-0010.json'), 'utf8')).toBe('10')
    const before = await readdir(stage.folder)
    const again = await stage.crucible.run('checkpoints', id, '--download', '--to', 'model')
    expect(again).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('is not empty') })
    expect(await readdir(stage.folder)).toEqual(before)
  }, 60_000)
})

describe('a job that failed before it saved anything', () => {
  it('says how to start over, and cannot be continued', async () => {
    writeFileSync(join(stage.folder, 'fail.py'), 'raise SystemExit(3)\n')
    const { id } = await stage.crucible.json<{ id: string }>('submit', 'fail.py', '--max-failures', '0')
    await stage.untilShown(id, isOver)
    const { stdout } = await stage.crucible.run('show', id)
    expect(stdout).toContain(`Start over: crucible submit --from ${id} --fresh\n`)
    expect(stdout).toContain('--workdir')
    const refused = await stage.crucible.run('submit', '--from', id)
    expect(refused).toMatchObject({ exitCode: 5, stderr: expect.stringContaining(`--from ${id} --fresh`) })
  }, 120_000)
})
