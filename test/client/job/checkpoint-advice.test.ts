import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { checkpointAdvice } from '../../../client/job/checkpoint-advice'
import type { JobSpec } from '../../../core/job/job'
import { SPEC } from '../world'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'crucible-advice-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

async function advice(files: Record<string, string>, spec: Partial<JobSpec> = {}): Promise<string[]> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), text)
  }
  const base = { ...SPEC, run: 'python3 train.py', isInterruptible: true, checkpoint: {} }
  return checkpointAdvice({ spec: { ...base, ...spec }, directory })
}

describe('advice on the checkpoints of a job', () => {
  it('warns of an interruptible job that saves nowhere that Crucible knows', async () => {
    expect(await advice({ 'train.py': 'torch.save(model, "out/last.pt")' })).toEqual([
      'An interruption loses all work of this job: it has no checkpoint.directory, and train.py does not use CRUCIBLE_CHECKPOINT_DIR. Set checkpoint.directory to the folder where the program saves.',
    ])
  })

  it('says nothing where a loss of the machine is not expected', async () => {
    expect(await advice({ 'train.py': '' }, { isInterruptible: false })).toEqual([])
  })

  it.each([
    ['the program', { 'train.py': 'os.environ["CRUCIBLE_CHECKPOINT_DIR"]' }, {}],
    ['a module of it', { 'train.py': '', 'lib/saving.py': 'import crucible_job' }, {}],
    ['the command', { 'train.py': '' }, { run: 'python3 train.py --out "$CRUCIBLE_CHECKPOINT_DIR"' }],
  ])('says nothing where %s uses what the runner offers', async (_, files, spec) => {
    expect(await advice(files, spec)).toEqual([])
  })

  it('asks to check a directory that no file of the job mentions', async () => {
    const checkpoint = { directory: 'runs/ckpt' }
    expect(await advice({ 'train.py': 'save("out")' }, { checkpoint })).toEqual([
      'No file of the job mentions runs/ckpt, its checkpoint.directory: check that the program saves there, or an interruption loses its work.',
    ])
    expect(await advice({ 'conf/base.yaml': 'out: runs/ckpt' }, { checkpoint })).toEqual([])
    await rm(join(directory, 'conf'), { recursive: true })
    const run = 'python3 train.py --out runs/ckpt'
    expect(await advice({}, { checkpoint, run })).toEqual([])
  })

  it('looks into no virtual environment, and says nothing of more files than it reads', async () => {
    const files = { 'train.py': '', 'venv/pyvenv.cfg': '', 'venv/lib/x.py': 'crucible_job' }
    expect(await advice(files)).toHaveLength(1)
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`part-${index}.py`, '']))
    expect(await advice(many)).toEqual([])
  })

  it('goes by the command alone where nothing is sent along, and says nothing of an earlier code', async () => {
    const spec = { ...SPEC, run: './train', isInterruptible: true, checkpoint: {} }
    expect(await checkpointAdvice({ spec, directory: null })).toHaveLength(1)
    expect(await checkpointAdvice({ spec })).toEqual([])
    expect(
      await checkpointAdvice({ spec: { ...spec, checkpoint: { directory: 'ckpt' } }, directory: null }),
    ).toEqual([])
  })
})
