import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { leftOutWarnings } from '../../../client/job/left-out'
import type { JobSpec } from '../../../core/job/job'
import { readTree } from '../../../storage/bundle-tree'
import { SPEC } from '../../support/spec'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'crucible-left-out-'))
  const files = {
    '.gitignore': '/data/\n*.bin\nconfig.json\nmodel.pt\nout/\n*.log\n',
    'data/train.bin': '',
    'lib/vocab.bin': '',
    'config.json': '',
    'model.pt': '',
    'out/a.txt': '',
    'run.log': '',
    'sent.txt': '',
  }
  for (const [path, text] of Object.entries(files)) write(path, text)
})
afterEach(() => rmSync(root, { recursive: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

async function warned(
  text: string,
  { at = 'train.py', spec = {} }: { at?: string; spec?: Partial<JobSpec> } = {},
) {
  write(at, text)
  const { entries } = await readTree(root, [], 100)
  return leftOutWarnings({ ...SPEC, ...spec }, { root, entries })
}

describe('a file that a program opens and an ignore rule leaves out', () => {
  it('is named with the line and the remedy', async () => {
    expect(await warned('import json\ncfg = json.load(open("config.json"))\n')).toEqual([
      'train.py:2 names config.json, which an ignore rule leaves out, so the machine will not have it. If the program reads it, add the line !/config.json to .crucibleignore, or make it an input.',
    ])
  })

  it.each<[string, string, { at?: string; spec?: Partial<JobSpec> }, RegExp]>([
    [
      'in an ignored folder',
      'np.memmap("data/train.bin")',
      {},
      /^train\.py:1 names data\/train\.bin.* !\/data\/ to/,
    ],
    ['an ignored folder itself', 'for f in os.listdir("data"): pass', {}, /names data, .* !\/data to/],
    [
      'next to the program',
      'open(HERE / "vocab.bin")',
      { at: 'lib/read.py' },
      /^lib\/read\.py:1 names lib\/vocab\.bin/,
    ],
    [
      'the default of an option',
      'p.add_argument("--data", default="data/train.bin")',
      {},
      /names data\/train\.bin/,
    ],
    ['in a configuration', 'train:\n  file: data/train.bin\n', { at: 'conf.yaml' }, /^conf\.yaml:2 names/],
    [
      'in the command',
      '',
      { spec: { run: 'python3 train.py --data data/train.bin' } },
      /^The command names data/,
    ],
    ['in a notebook', '"x = pd.read_csv(\\"data/train.bin\\")"', { at: 'a.ipynb' }, /^a\.ipynb:1 names data/],
  ])('is found %s', async (_where, text, options, pattern) => {
    expect(await warned(text, options)).toEqual([expect.stringMatching(pattern)])
  })

  it.each<[string, string, Partial<JobSpec>]>([
    ['is sent', 'open("sent.txt")', {}],
    ['does not exist', 'open("data/other.bin")', {}],
    ['is written', 'torch.save(m, "model.pt"); torch.load("model.pt")', {}],
    ['is opened to be written', 'open("config.json", "w")', {}],
    [
      'is written by a name',
      'PATH = "model.pt"\nif os.path.exists(PATH): load(PATH)\ntorch.save(m, PATH)',
      {},
    ],
    ['is an output by its option', 'p.add_argument("--output", default="out/a.txt")', {}],
    ['is an output of the job', 'read("out/a.txt")', { outputs: ['out'] }],
    ['is an input of the job', 'read("data/train.bin")', { inputs: [{ path: 'data', source: 's3://b/x/' }] }],
    ['is in the checkpoint directory', 'load("out/a.txt")', { checkpoint: { directory: 'out' } }],
    ['only a comment names', '# open("config.json")', {}],
    ['is a word', 'd["data"] = 1', {}],
    ['is a log of the command', '', { run: 'python3 train.py > run.log' }],
  ])('is not meant if it %s', async (_why, text, spec) => {
    expect(await warned(text, { spec })).toEqual([])
  })
})
