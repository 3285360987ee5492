import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { inWorker } from '../../../client/analysis/thread'
import { patient } from '../../support/patience'

describe('the analysis of a program in a thread', () => {
  let root: string
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'analysis-'))
    writeFileSync(join(root, 'train.py'), 'import torch\nprint(1)\n')
    // Each of these keeps the analysis busy: a tree whose every level is followed.
    writeFileSync(
      join(root, 'large.py'),
      'import torch\n'.concat('x = [torch.nn.Linear(i, j) for i in y]\n'.repeat(50_000)),
    )
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  const work = (command: string) => ({ root, command, isSuggestionWanted: false })

  it(
    'answers as in the process itself',
    async () => {
      const { analysis } = await inWorker(work('python train.py'))
      expect(analysis).toMatchObject({ kind: 'not-training', entry: 'train.py' })
    },
    patient(30_000),
  )

  it('says that it could not tell when time is over', async () => {
    const { analysis } = await inWorker(work('python large.py'), { limitMs: 1, memoryMiB: 512 })
    expect(analysis.kind).toBe('unreadable')
    expect(analysis.obstacles).toEqual([
      { file: 'python large.py', line: 1, message: 'could not be analyzed within 0.001 seconds' },
    ])
    expect(analysis.findings.canResume.missing).toEqual(['could not be analyzed within 0.001 seconds'])
  })

  it(
    'says that it could not tell when the memory is full',
    async () => {
      const { analysis } = await inWorker(work('python large.py'), {
        limitMs: patient(60_000),
        memoryMiB: 16,
      })
      expect(analysis.kind).toBe('unreadable')
      expect(analysis.obstacles[0]?.message).toBe('could not be analyzed within 16 MiB of memory')
    },
    patient(90_000),
  )
})
