import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { lineThatNames } from '../../rehearse/script'
import { testFolder } from '../support/folders'

function code(files: Record<string, string>): string {
  const folder = testFolder('script')
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

describe('the line of the code that names a saved file', () => {
  it.each([
    ['runs/exp1/last.pt', 'import torch\ntorch.save(m, "./runs/exp1/last.pt")\n', 'train.py:2'],
    [
      'runs/last.pt',
      '"""Saves last.pt."""\n# last.pt is it\nP = os.path.join("runs", "last.pt")\n',
      'train.py:3',
    ],
    ['out/model-120.bin', 'x = 1\nsave(f"out/model-{step}.bin")\n', 'train.py:2'],
    ['out/step_000120.pt', 'open("out/step_%06d.pt" % step, "wb")\n', 'train.py:1'],
    ['last.pt', 'm = torch.load("last.pt")\ntorch.save(m, "last.pt")\n', 'train.py:2'],
    ['last.pt', 'torch.save(a, "last.pt")\ntorch.save(b, "last.pt")\n', undefined],
    ['last.pt', 'torch.save(a, "atlast.pt")\n', undefined],
    ['out/5', 'print("5")\n', undefined],
  ])('of %s is found where it is the only one', (path, text, line) => {
    expect(lineThatNames(path, code({ 'train.py': text }))).toBe(line)
  })

  it('is looked for in folders, too, and not among installed packages', () => {
    const files = { 'src/save.py': 'a\nsave("last.pt")\n', 'venv/site-packages/x.py': 'save("last.pt")\n' }
    expect(lineThatNames('last.pt', code(files))).toBe('src/save.py:2')
  })

  it('is none without code', () => {
    expect(lineThatNames('last.pt', join(testFolder('script'), 'missing'))).toBeUndefined()
  })
})
