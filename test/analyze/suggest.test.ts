import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import {
  analyze,
  analyzeAndSuggest,
  type PythonParser,
  type Suggestion,
} from '../../packages/analyzer/src/analyze'
import { edited, unifiedDiff, type Edit } from '../../packages/analyzer/src/suggest/diff'
import { testFolder } from '../support/folders'
import { filesOf, parser, samplesIn, type Label } from './corpus'

/** What a script's label says, written before the rules: the outcome, the files that a diff changes, the place of a refusal. */
interface SuggestLabel extends Label {
  outcome: Suggestion['outcome']
  edits?: string[]
  environment?: string
  at?: string
}

const SAMPLES = samplesIn('suggest').map((sample) => ({ ...sample, label: sample.label as SuggestLabel }))
const CHANGED = SAMPLES.filter(({ label }) => label.outcome === 'diff')

let python: PythonParser
beforeAll(async () => {
  python = await parser()
})

const suggest = (folder: string, command: string): Suggestion =>
  analyzeAndSuggest(python, { files: filesOf(folder), command }).suggestion

/** Applies a diff outside a repository. */
function gitApply(folder: string, diff: string): void {
  execFileSync('git', ['apply', '--whitespace=nowarn', '-'], {
    cwd: folder,
    input: diff,
    env: { ...process.env, GIT_CEILING_DIRECTORIES: dirname(folder) },
  })
}

function copyOf(folder: string, name: string): string {
  const copy = join(testFolder(name), 'copy')
  cpSync(folder, copy, { recursive: true })
  return copy
}

describe('crucible analyze --suggest-resume', () => {
  it.each([
    ['import keras', 'keras'],
    ['import keras as k', 'k'],
    ['from tensorflow import keras', 'keras'],
    ['import tensorflow as tf', 'tf.keras'],
  ])('reaches Keras by the name that `%s` gives it', (statement, name) => {
    const folder = copyOf(SAMPLES.find((sample) => sample.name === 'keras-functional')!.folder, 'keras-alias')
    const path = join(folder, 'train.py')
    const text = readFileSync(path, 'utf8').replaceAll('keras.', `${name}.`)
    writeFileSync(path, text.replace('import keras\n', `${statement}\n`))
    const added = suggest(folder, 'python train.py')
      .diff?.split('\n')
      .filter((line) => line.startsWith('+'))
    const places = added?.join('\n').match(/[\w.]*\bkeras\b\.|\bk\./g) ?? []
    expect(new Set(places)).toEqual(new Set([`${name}.`]))
  })

  it.each(SAMPLES)('does for $name what its label says', ({ folder, label }) => {
    const { outcome, diff, reasons } = suggest(folder, label.run)
    const [reason] = reasons
    expect({ outcome, at: reason && `${reason.file}:${reason.line}` }).toEqual({
      outcome: label.outcome,
      at: label.at,
    })
    const changed = diff?.split('\n').filter((line) => line.startsWith('+++ b/'))
    expect(changed).toEqual(label.edits?.map((path) => `+++ b/${path}`))
  })

  it.each(CHANGED)(
    'makes of $name a program that resumes, as the analysis and Python read it',
    ({ name, folder, label }) => {
      const copy = copyOf(folder, `suggest-${name}`)
      gitApply(copy, suggest(folder, label.run).diff!)
      const analysis = analyze(python, { files: filesOf(copy), command: label.run })
      expect(analysis.knowsCrucible).toBe(true)
      expect(analysis.findings.canResume.value).toBe('yes')
      expect(analysis.findings.saveKind.value).toBe('periodic')
      for (const path of label.edits!)
        execFileSync('python3', [
          '-c',
          'import ast, sys; ast.parse(open(sys.argv[1], "rb").read())',
          join(copy, path),
        ])
      expect(suggest(copy, label.run)).toMatchObject({ outcome: 'resumes', diff: null })
    },
  )
})

describe('a suggested diff', () => {
  const TEXT = readFileSync(join(__dirname, 'suggest', 'torch-epochs', 'train.py'), 'utf8')

  /** The changed text, from `git apply` and, where it is installed, from `patch`. */
  function applied(text: string): string {
    const folder = testFolder('suggested')
    const files = {
      list: () => ['train.py'],
      read: (path: string) => (path === 'train.py' ? text : undefined),
    }
    const { diff, reasons } = analyzeAndSuggest(python, { files, command: 'python train.py' }).suggestion
    expect(reasons).toEqual([])
    const [one, other] = ['git', 'patch'].map((program) => {
      mkdirSync(join(folder, program), { recursive: true })
      const path = join(folder, program, 'train.py')
      writeFileSync(path, text)
      if (program === 'git') gitApply(join(folder, program), diff!)
      else if (spawnSync('patch', ['-p1', '--binary'], { cwd: join(folder, program), input: diff! }).error)
        return undefined
      return readFileSync(path, 'utf8')
    })
    if (other !== undefined) expect(other).toBe(one)
    execFileSync('python3', [
      '-c',
      'import ast, sys; ast.parse(open(sys.argv[1], "rb").read())',
      join(folder, 'git', 'train.py'),
    ])
    return one!
  }

  it('stores a counter that is read after its loop once, and restores it', () => {
    const read = TEXT.replace('    torch.save(', '    print("last", epoch)\n    torch.save(')
    const lines = applied(read)
      .split('\n')
      .filter((line) => line.includes('"epoch"'))
    expect(lines.map((line) => line.trim())).toEqual(['epoch = checkpoint["epoch"]', '"epoch": epoch,'])
  })

  it('keeps line ends of Windows', () => {
    const lines = applied(TEXT.replaceAll('\n', '\r\n')).split('\n')
    expect(lines.slice(0, -1).filter((line) => !line.endsWith('\r'))).toEqual([])
  })

  it('indents with tabs where the file does', () => {
    const result = applied(TEXT.replaceAll('    ', '\t'))
    expect(result).toContain('\n\tif resume_from:\n\t\tcheckpoint = torch.load(')
    expect(result.split('\n').filter((line) => line.startsWith(' '))).toEqual([])
  })

  it('fits a file that begins with a byte order mark', () => {
    expect(applied(`\uFEFF${TEXT}`).startsWith('\uFEFF"""A regression')).toBe(true)
    expect(
      applied(`\uFEFF${TEXT.slice(TEXT.indexOf('import time'))}`).startsWith(
        '\uFEFFimport os\nimport random\n',
      ),
    ).toBe(true)
  })

  it('fits a file without an end of its last line', () => {
    const body = TEXT.slice(0, TEXT.indexOf('    torch.save('))
    const loop = body
      .slice(body.indexOf('    torch.manual_seed'))
      .replaceAll('\n    ', '\n')
      .trim()
      .replaceAll('args.', '')
    const head = body
      .slice(0, body.indexOf('def main'))
      .replace('def train(args, ', 'epochs, batch_size = 3, 25\n\n\ndef train(args, ')
    const text = `${head}${loop.replace('train(args', 'train(None')}`
    expect(text.endsWith('\n')).toBe(false)
    expect(applied(text).endsWith('os.replace(checkpoint_path + ".tmp", checkpoint_path)')).toBe(true)
  })

  it('leaves the docstring and imports from __future__ first', () => {
    const result = applied(TEXT)
    expect(
      result.startsWith(
        '"""A regression with dropout, shuffled batches and a schedule of the learning rate."""\nfrom __future__',
      ),
    ).toBe(true)
    expect(result.indexOf('import os')).toBeGreaterThan(result.indexOf('from __future__'))
  })

  it('uses the imports and the quotes of the file', () => {
    const result = applied(
      TEXT.replace('import time\n', 'import os as system\nimport random\nimport time\n').replaceAll('"', "'"),
    )
    expect(result.match(/import random/g)).toHaveLength(1)
    expect(result).not.toMatch(/import os\n/)
    expect(result).toContain("system.environ.get('CRUCIBLE_RESUME_FROM')")
  })

  it('takes names that the file does not use', () => {
    const result = applied(
      TEXT.replace('model = Net()', 'model = Net()\n    checkpoint = checkpoint_dir = None'),
    )
    expect(result).toContain('resume_checkpoint = torch.load(')
    expect(result).toContain('resume_checkpoint_dir = os.environ')
  })
})

describe('a unified diff', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed))(
    'is applied by git as its edits say (seed %i)',
    (seed) => {
      const random = generator(seed)
      const count = 1 + random(40)
      const ends = ['\n', '\r\n'][random(2)]!
      const text =
        Array.from({ length: count }, (_, at) => `line ${at}${' x'.repeat(random(3))}`).join(ends) +
        (random(2) === 0 ? ends : '')
      const edits = editsOf(text, random)
      const folder = testFolder('unified')
      writeFileSync(join(folder, 'a file.txt'), text)
      gitApply(folder, unifiedDiff('a file.txt', text, edits))
      expect(readFileSync(join(folder, 'a file.txt'), 'utf8')).toBe(edited(text, edits))
    },
  )
})

function generator(seed: number): (limit: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

/** Whole lines put in, and words replaced, in order and apart. */
function editsOf(text: string, random: (limit: number) => number): Edit[] {
  const edits: Edit[] = []
  let at = 0
  for (const line of text.split('\n').slice(0, -1)) {
    const kind = random(5)
    if (kind === 0) edits.push({ start: at, length: 0, text: 'put in\nand more\n' })
    if (kind === 1) edits.push({ start: at + 2, length: 2, text: 'NE' })
    at += line.length + 1
  }
  if (!text.endsWith('\n') && random(2) === 0)
    edits.push({ start: text.length, length: 0, text: '\nnew last line' })
  if (edits.length === 0) edits.push({ start: 0, length: 0, text: 'first\n' })
  return edits
}
