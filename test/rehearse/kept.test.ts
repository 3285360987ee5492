import { describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readKept, type Kept } from '../../rehearse/kept'

/** Reads a checkpoint directory that `fill` has filled. */
function keptOf(fill: (checkpoints: string, root: string) => void): Kept & { root: string } {
  const root = mkdtempSync(join(tmpdir(), 'crucible-kept-'))
  const checkpoints = join(root, 'checkpoints')
  try {
    mkdirSync(checkpoints)
    fill(checkpoints, root)
    return { ...readKept(checkpoints, { roots: [root], jobId: 'job-train-1' }), root }
  } finally {
    rmSync(root, { recursive: true })
  }
}

describe('what a program left in its checkpoint directory', () => {
  it('has its files, links and empty folders, but no records', () => {
    const { paths } = keptOf((folder) => {
      mkdirSync(join(folder, 'step-1/empty'), { recursive: true })
      writeFileSync(join(folder, 'step-1/model.pt'), 'w')
      writeFileSync(join(folder, 'train.log'), 'line')
      symlinkSync('step-1', join(folder, 'latest'))
    })
    expect(paths).toEqual(['latest', 'step-1/empty', 'step-1/model.pt'])
  })

  it('names paths in JSON, texts, links and pickles, and tells which of them exist', () => {
    const { named, root } = keptOf((folder, inside) => {
      mkdirSync(join(folder, 'checkpoint-1'))
      writeFileSync(join(folder, 'a.json'), JSON.stringify({ best: join(folder, 'checkpoint-1'), n: 1 }))
      writeFileSync(join(folder, 'b.txt'), `model at ${join(inside, 'work/gone')}\nnext`)
      symlinkSync(join(folder, 'gone'), join(folder, 'c'))
      const program = `import pickle, sys; pickle.dump({"p": sys.argv[2], "q": "x" * 300, "long": sys.argv[3]}, open(sys.argv[1], "wb"))`
      const long = join(inside, 'work', 'd'.repeat(300))
      execFileSync('python3', [
        '-c',
        program,
        join(folder, 'd.pkl'),
        join(folder, 'checkpoint-1', 'model, 1.pt'),
        long,
      ])
    })
    expect(named.map(({ file, inner, exists }) => [file, inner, exists]).sort()).toEqual([
      ['a.json', 'checkpoints/checkpoint-1', true],
      ['b.txt', 'work/gone', false],
      ['c', 'checkpoints/gone', false],
      ['d.pkl', 'checkpoints/checkpoint-1/model, 1.pt', false],
      ['d.pkl', `work/${'d'.repeat(300)}`, false],
    ])
    expect(named[0]!.path.startsWith(root)).toBe(true)
  })

  it('names paths of other attempts, wherever their directories are', () => {
    const { named } = keptOf((folder) => {
      writeFileSync(
        join(folder, 'state.json'),
        '{"best": "/var/lib/crucible/job-train-1-2/checkpoints/step-4", "log": "see /job-train-10/x"}',
      )
    })
    expect(named).toEqual([
      {
        file: 'state.json',
        path: '/var/lib/crucible/job-train-1-2/checkpoints/step-4',
        inner: 'checkpoints/step-4',
        exists: false,
      },
    ])
  })
})
